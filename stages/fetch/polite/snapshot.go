package polite

import (
	"cmp"
	"slices"
	"time"
)

// Clock is a host's pace as a checkpoint keeps it.
type Clock struct {
	Host  string
	Delay time.Duration // in force
	Wait  time.Duration // until its next request is due
}

// Snapshot gives the clocks of the hosts that have to wait or were slowed down,
// by name. For the others there is nothing to remember.
func (s *Scheduler) Snapshot() []Clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var out []Clock
	for _, h := range s.inOrder {
		c := Clock{Host: h.name, Delay: h.delay(), Wait: h.pace().Sub(now)}
		if h.held && h.inFlight > 0 {
			c.Wait = max(c.Wait, c.Delay) // its request may be written at any moment
		}
		if c.Wait > 0 || h.raised > 0 {
			c.Wait = max(c.Wait, 0)
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

// Restore takes clocks of an earlier attempt over hosts that were added, each
// with the wait still left. A delay above the configured one holds until the host
// has shown that it needs it no more.
func (s *Scheduler) Restore(clocks []Clock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, c := range clocks {
		h := s.hosts[c.Host]
		if h == nil {
			continue
		}
		if c.Wait > 0 {
			h.notBefore = later(h.notBefore, now.Add(c.Wait))
		}
		if c.Delay > h.delay() {
			h.raised = c.Delay
		}
		s.settle(h)
	}
}

// HoldAll has every host wait its whole delay from now. A successor that cannot
// know when its predecessor sent its last requests calls it after Restore.
func (s *Scheduler) HoldAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, h := range s.inOrder {
		h.notBefore = later(h.notBefore, now.Add(h.delay()))
		s.settle(h)
	}
}
