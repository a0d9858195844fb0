package polite

import (
	"cmp"
	"slices"
	"time"
)

// Clock is what is known of a host's pace and health, as a checkpoint keeps it.
// Times are relative, since no two machines' clocks are compared.
type Clock struct {
	Host    string
	Delay   time.Duration // in force
	Base    time.Duration // of it, what config and robots.txt ask for
	Raised  time.Duration // by the host's own answers; 0: not
	Limited int           // 429 and 503 in a row
	Wait    time.Duration // until its next request may be sent
	Breaker BreakerClock
}

// BreakerClock is a breaker's record.
type BreakerClock struct {
	OK, Failed int           // requests in the window
	Open       bool          // the host is suspended
	GaveUp     bool          // for good
	Probe      time.Duration // until the next probe of a suspended host
	Pause      time.Duration // after which that probe comes
	Probes     int           // failed in a row
	Opened     int           // times
}

// Snapshot gives the clocks of the hosts that have to wait, were slowed down or
// have failed, by name. For the others there is nothing to remember.
func (s *Scheduler) Snapshot() []Clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var out []Clock
	for _, h := range s.inOrder {
		c := Clock{
			Host: h.name, Delay: h.delay(), Base: h.asked(), Raised: h.raised, Limited: h.limited,
			Wait: max(h.pace().Sub(now), 0), Breaker: h.br.clock(now),
		}
		if h.held && h.inFlight > 0 {
			c.Wait = max(c.Wait, c.Delay) // its request may be written at any moment
		}
		if c.Wait > 0 || c.Raised > 0 || c.Limited > 0 || c.Breaker != (BreakerClock{OK: c.Breaker.OK}) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Clock) int { return cmp.Compare(a.Host, b.Host) })
	return out
}

// pace is when the host may be asked again for its own sake, whether or not it has
// something to be asked for.
func (h *host) pace() time.Time {
	at := h.notBefore
	if !h.paced.IsZero() {
		at = later(at, h.paced.Add(h.delay()))
	}
	return at
}

func (b *breaker) clock(now time.Time) BreakerClock {
	c := BreakerClock{Open: b.open, GaveUp: b.gaveUp, Probes: int(b.probes), Opened: int(b.opened)}
	c.OK, c.Failed = b.record.sum()
	if b.open {
		c.Probe, c.Pause = max(b.probeAt.Sub(now), 0), b.pause
	}
	return c
}

// Restore takes over the clocks of an earlier attempt, each with the waits that
// are left of it; call it when the hosts with planned rows were added. A delay
// above the configured one holds until Reload, unless fresh says that this
// scheduler's config is newer than the one that the clocks were kept under.
func (s *Scheduler) Restore(clocks []Clock, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, c := range clocks {
		h := s.hosts[c.Host]
		if h == nil {
			h = s.add(c.Host, noRows{}) // one that redirects led to
		}
		if c.Wait > 0 {
			h.keepFrom(now.Add(c.Wait), ByEarlier)
		}
		h.raised, h.limited = c.Raised, c.Limited
		if !fresh && c.Base > h.base {
			h.stored = c.Base
		}
		h.br.restore(&s.brk, now, c.Breaker)
		s.settle(h)
	}
}

// restore takes a record over as if its requests had just ended.
func (b *breaker) restore(cfg *Breaker, now time.Time, c BreakerClock) {
	r := &record{newest: now.UnixNano() / int64(cfg.Window/windowParts)}
	r.counts[r.newest%windowParts] = struct{ ok, failed int32 }{int32(c.OK), int32(c.Failed)}
	b.record = r
	b.open, b.gaveUp, b.probes, b.opened = c.Open, c.GaveUp, int32(c.Probes), int32(c.Opened)
	if c.Open {
		b.pause, b.probeAt = c.Pause, now.Add(c.Probe)
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
