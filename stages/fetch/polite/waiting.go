package polite

import (
	"cmp"
	"slices"
	"time"
)

// Reason is why a host may not be asked now.
type Reason uint8

// The reasons.
const (
	ByDelay      Reason = iota // its usual delay
	ByCrawlDelay               // that of its robots.txt
	BySlowness                 // its answers take long
	ByRaised                   // the delay after 429 or 503
	ByEarlier                  // a wait that an earlier attempt or round left
	ByLimit                    // it answered 429 or 503
	ByRetryAfter               // the same, and said for how long
	ByHold                     // Result.Hold
	ByBreaker                  // it is suspended
	ByItem                     // nothing that is left is due: Wait.Item
)

// Wait is a host that may not be asked now.
type Wait struct {
	Host   string
	Reason Reason
	Until  time.Time
	Delay  time.Duration // in force
	Left   int           // items that are not urgent
	Item   Item          // from ByEarlier on: what was pushed and comes first; zero: nothing was

	Rest time.Duration // until the host is done, as predicted
}

// Standing is how the scheduler's hosts stand at one moment.
type Standing struct {
	Left     int // items in queues
	InFlight int
	Asked    string // a host that a request is under way to; "": none
	Ready    int    // hosts that are due
	Delayed  int    // hosts that wait briefly for their delay
	Waits    []Wait // the other hosts that wait, those that take longest first
	More     int    // that Waits leaves out
	// Rest is how long the rest takes at least: the slowest host with its waits, or
	// all of them in the slots. It ends with the window.
	Rest    time.Duration
	Slowest Wait      // the host with the longest Rest, waiting or not; no Host: none is left
	Closes  time.Time // zero: not known
}

// moment is the longest wait of any kind that is not worth a word.
const moment = 5 * time.Second

// Stand tells how things stand, with at most n of the hosts that wait; those that wait for
// their delay count as Delayed up to brief. It looks at every host, so ask it for people
// only, not more than once a second or so.
func (s *Scheduler) Stand(n int, brief time.Duration) Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	out := Standing{Left: s.left, Closes: s.closesAt}
	for _, h := range s.inOrder {
		if out.InFlight += h.inFlight; h.inFlight > 0 {
			out.Asked = h.name
		}
		if h.remaining() == 0 || h.drain != Fetch {
			continue
		}
		w := h.waiting()
		wait := max(w.Until.Sub(now), 0)
		w.Rest = wait + h.rest()
		if w.Rest > out.Slowest.Rest {
			out.Slowest = w
		}
		switch {
		case h.place == ready, h.place == parked, wait == 0 && h.inFlight == 0:
			out.Ready++
		case h.inFlight > 0:
		case wait <= min(moment, brief), w.Reason <= ByEarlier && wait <= brief:
			out.Delayed++
		default:
			out.Waits = append(out.Waits, w)
		}
	}
	out.Rest = out.Slowest.Rest
	if s.slots > 0 {
		out.Rest = max(out.Rest, time.Duration(float64(s.left)*s.service/float64(s.slots)*float64(time.Second)))
	}
	if !s.closesAt.IsZero() {
		out.Rest = min(out.Rest, max(s.closesAt.Sub(now), 0))
	}
	slices.SortStableFunc(out.Waits, func(a, b Wait) int { return cmp.Compare(b.Rest, a.Rest) })
	if more := len(out.Waits) - n; more > 0 {
		out.Waits, out.More = out.Waits[:n], more
	}
	return out
}

// rest is how long the host takes from its next request on, if it answers from then
// on: a delay that 429 and 503 raised shrinks again (speedUp).
func (h *host) rest() time.Duration {
	n, raised, asked := h.remaining()-1, h.raised, max(h.asked(), h.slowed)
	var sum time.Duration
	for ; n > calmAfter && raised > asked; raised /= 2 {
		sum += calmAfter * raised
		n -= calmAfter
	}
	service := time.Duration(h.service * float64(time.Second))
	return sum + time.Duration(n)*max(asked, raised, service/time.Duration(h.allowed)) + service
}

// waiting says what due is made of: the latest of its parts.
func (h *host) waiting() Wait {
	w := Wait{Host: h.name, Reason: h.putOff, Until: h.notBefore, Delay: h.delay(), Left: h.rows.Len() + len(h.extra)}
	take := func(at time.Time, r Reason) {
		if at.After(w.Until) {
			w.Until, w.Reason = at, r
		}
	}
	if !h.paced.IsZero() {
		take(h.paced.Add(h.delay()), h.pacedBy())
	}
	if h.br.open {
		take(h.br.probeAt, ByBreaker)
	}
	take(h.firstItem(), ByItem)
	if w.Reason >= ByEarlier && len(h.urgent)+len(h.extra) > 0 {
		w.Item = h.first() // most likely what failed
	}
	return w
}

// pacedBy is what makes the delay in force as long as it is.
func (h *host) pacedBy() Reason {
	switch d := h.delay(); {
	case d == h.raised:
		return ByRaised
	case d == h.slowed:
		return BySlowness
	case d == h.crawlDelay && d > h.base:
		return ByCrawlDelay
	}
	return ByDelay
}

// first is the pushed item that comes first.
func (h *host) first() Item {
	if len(h.urgent) > 0 && (h.blocked || len(h.extra) == 0 || h.urgent[0].NotBefore.Before(h.extra[0].NotBefore)) {
		return h.urgent[0]
	}
	return h.extra[0]
}

// keepFrom has nothing asked of the host before a time, for a reason.
func (h *host) keepFrom(at time.Time, r Reason) {
	if at.After(h.notBefore) {
		h.notBefore, h.putOff = at, r
	}
}
