package polite

import (
	"cmp"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Snapshot gives the clocks of the hosts that have to wait, were slowed down or have
// failed, by name, as a checkpoint keeps them. Their times are relative, since no clocks
// of two machines are compared.
func (s *Scheduler) Snapshot() []manifest.HostClock {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var out []manifest.HostClock
	for _, h := range s.inOrder {
		wait := max(h.pace().Sub(now), 0)
		if h.held && h.inFlight > 0 {
			wait = max(wait, h.delay()) // its request may be written at any moment
		}
		b := h.br.clock(now)
		if wait > 0 || h.raised > 0 || h.limited > 0 || b != (manifest.HostBreaker{OK: b.OK}) {
			c := manifest.HostClock{
				Host: h.name, DelayMS: Millis(h.delay()), BaseMS: Millis(h.asked()), RaisedMS: Millis(h.raised), Limited: h.limited, WaitMS: Millis(wait),
			}
			if b != (manifest.HostBreaker{}) {
				kept := b // so that b itself needs no memory for every host
				c.Breaker = &kept
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b manifest.HostClock) int { return cmp.Compare(a.Host, b.Host) })
	return out
}

// Millis is a time in milliseconds, rounded up.
func Millis(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// pace is when the host may be asked again for its own sake, whether or not it has
// something to be asked for.
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

// Restore takes over the clocks of an earlier attempt, waited after they were kept; call
// it when the hosts with planned rows were added. A delay above the configured one holds
// until Reload, unless fresh says that this scheduler's config is newer than the one that
// the clocks were kept under.
func (s *Scheduler) Restore(clocks []manifest.HostClock, waited time.Duration, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, c := range clocks {
		h := s.hosts[c.Host]
		if h == nil {
			h = s.add(c.Host, noRows{}) // one that redirects led to
		}
		if wait := duration(c.WaitMS) - waited; wait > 0 {
			h.keepFrom(now.Add(wait), ByEarlier)
		}
		h.raised, h.limited = duration(c.RaisedMS), c.Limited
		if base := duration(c.BaseMS); !fresh && base > h.base {
			h.stored = base
		}
		if c.Breaker == nil {
			c.Breaker = &manifest.HostBreaker{}
		}
		h.br.restore(&s.brk, now, c.Breaker, waited)
		s.settle(h)
	}
}

// restore takes a record over as if its requests had just ended.
func (b *breaker) restore(cfg *Breaker, now time.Time, c *manifest.HostBreaker, waited time.Duration) {
	r := &record{newest: now.UnixNano() / int64(cfg.Window/windowParts)}
	r.counts[r.newest%windowParts] = struct{ ok, failed int32 }{int32(c.OK), int32(c.Failed)}
	b.record = r
	b.open, b.gaveUp, b.probes, b.opened = c.Open, c.GaveUp, int32(c.Probes), int32(c.Opened)
	if c.Open {
		b.pause, b.probeAt = duration(c.PauseMS), now.Add(max(duration(c.ProbeMS)-waited, 0))
	}
}

// HoldAddresses has every host wait the delay of an address from now, those too that
// are added later. A successor calls it after Restore: which addresses were asked
// last is not remembered, a host that fell due may share one of them.
func (s *Scheduler) HoldAddresses() { s.holdHosts(false) }

// HoldAll has every host wait its whole delay from now, or that of an address if it
// is longer, those too that are added later. A successor that cannot know when its
// predecessor sent its last requests calls it after Restore.
func (s *Scheduler) HoldAll() { s.holdHosts(true) }

func (s *Scheduler) holdHosts(wholly bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.wholly = s.clock.Now(), wholly
	for _, h := range s.inOrder {
		s.hold(h)
		s.settle(h)
	}
}

// hold has a host wait for what the last holdHosts asked for.
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
