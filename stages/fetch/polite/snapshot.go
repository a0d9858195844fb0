package polite

import (
	"cmp"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Snapshot returns the state of all hosts that must wait, were slowed down, or failed within the window
// of Breaker, sorted by name, for a checkpoint. Its times are relative to now, because the clocks of two machines may
// differ.
func (s *Scheduler) Snapshot() []manifest.HostClock {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var out []manifest.HostClock
	for _, h := range s.inOrder {
		wait := max(h.pace().Sub(now), 0)
		if h.held && h.inFlight > 0 {
			wait = max(wait, h.delay()) // the request of an open grant may be written at any moment
		}
		h.br.dropOld(&s.brk, now)
		b := h.br.clock(now)
		failing := !h.failing.IsZero() && (h.postponed || h.remaining() > 0 || h.inFlight > 0) // otherwise nothing depends on it
		refusing := h.refusals > 0 && (h.remaining() > 0 || h.inFlight > 0)
		if wait > 0 || h.raised > 0 || h.limited > 0 || refusing || failing || h.postponed || b != (manifest.HostBreaker{OK: b.OK}) {
			c := manifest.HostClock{
				Host: h.name, DelayMS: Millis(h.delay()), BaseMS: Millis(h.required()), RaisedMS: Millis(h.raised), Limited: h.limited, WaitMS: Millis(wait),
				Postponed: h.postponed, Refusals: h.refusals,
			}
			if failing {
				c.FailingMS = max(1, now.Sub(h.failing).Milliseconds())
			}
			if b != (manifest.HostBreaker{}) {
				kept := b // a copy, so that only this case allocates
				c.Breaker = &kept
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b manifest.HostClock) int { return cmp.Compare(a.Host, b.Host) })
	return out
}

// Millis converts a duration to milliseconds, rounded up.
func Millis(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// pace returns the time at which the host's delay and pauses allow the next request, even if no
// item is due then.
func (h *host) pace() time.Time {
	at := h.notBefore
	if !h.paced.IsZero() {
		at = later(at, h.paced.Add(h.delay()))
	}
	return at
}

func (b *breaker) clock(now time.Time) manifest.HostBreaker {
	c := manifest.HostBreaker{Open: b.open, GaveUp: b.gaveUp, Probes: int(b.probes), Opened: int(b.opened)}
	c.OK, c.Failed = b.record.sum()
	if b.open {
		c.ProbeMS, c.PauseMS = Millis(max(b.probeAt.Sub(now), 0)), Millis(b.pause)
	}
	return c
}

// Restore applies the state of hosts that an earlier attempt or round stored. The caller must have
// added all planned hosts. waited is the time since Snapshot. If the delay that config and
// robots.txt required then (BaseMS) is longer than the configured one, it applies until Reload is
// called. But if fresh is true, the config is newer than the stored state, and Restore ignores
// BaseMS.
func (s *Scheduler) Restore(clocks []manifest.HostClock, waited time.Duration, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, c := range clocks {
		h := s.host(c.Host)
		if wait := duration(c.WaitMS) - waited; wait > 0 {
			why := ByEarlier
			if c.Limited > 0 {
				why = ByLimit // the next item may have failed for another reason
			}
			h.keepFrom(now.Add(wait), why)
		}
		h.raised, h.limited = duration(c.RaisedMS), c.Limited
		if !fresh {
			h.refusals = c.Refusals
		}
		if c.FailingMS > 0 {
			h.failing = now.Add(-duration(c.FailingMS) - waited)
		}
		switch {
		case c.Postponed && !fresh:
			h.postponed = true
		case c.Postponed:
			h.carried, h.owed = true, true
			if c.FailingMS > 0 {
				h.keepFrom(h.failing.Add(s.late), ByLate)
			}
		}
		if base := duration(c.BaseMS); !fresh && base > h.base {
			h.stored = base
		}
		if c.Breaker == nil {
			c.Breaker = &manifest.HostBreaker{}
		}
		h.br.restore(&s.brk, now, c.Breaker, waited)
		s.reschedule(h)
	}
}

// restore restores a breaker as if the stored requests had just ended.
func (b *breaker) restore(cfg *Breaker, now time.Time, c *manifest.HostBreaker, waited time.Duration) {
	r := &record{newest: cfg.part(now)}
	r.counts[r.newest%windowParts] = struct{ ok, failed int32 }{int32(c.OK), int32(c.Failed)}
	b.record = r
	b.open, b.gaveUp, b.probes, b.opened = c.Open, c.GaveUp, int32(c.Probes), int32(c.Opened)
	if c.Open {
		b.pause, b.probeAt = duration(c.PauseMS), now.Add(max(duration(c.ProbeMS)-waited, 0))
	}
}

// HoldAddresses lets every host wait, from now, as long as the delay per address. Hosts that are added
// later wait too. A new attempt calls it after Restore. It cannot know which hosts share an
// address, because checkpoints do not store addresses.
func (s *Scheduler) HoldAddresses() { s.holdHosts(false) }

// HoldAll makes every host wait from now for its own delay or the delay per address, whichever is
// longer. Hosts that are added later wait too. A new attempt calls it after Restore if nobody knows
// when the earlier attempt sent its last requests.
func (s *Scheduler) HoldAll() { s.holdHosts(true) }

func (s *Scheduler) holdHosts(wholly bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.wholly = s.clock.Now(), wholly
	for _, h := range s.inOrder {
		s.hold(h)
		s.reschedule(h)
	}
}

// hold applies the last HoldAddresses or HoldAll to a host.
func (s *Scheduler) hold(h *host) {
	if s.held.IsZero() {
		return
	}
	wait := s.cfg.PerAddressDelay
	if s.wholly {
		wait = max(wait, h.delay())
	}
	h.keepFrom(s.held.Add(wait), ByEarlier)
}
