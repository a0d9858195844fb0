package polite

import (
	"cmp"
	"slices"
	"time"
)

// Reason tells why a host may get no request now.
type Reason uint8

// The reasons for a wait.
const (
	ByDelay      Reason = iota // the host's configured delay
	ByCrawlDelay               // the Crawl-delay of its robots.txt
	BySlowness                 // the host is slow (Config.SlowFactor)
	ByRaised                   // the host's delay was raised by 429 or 503
	ByEarlier                  // an earlier attempt or round left a pause or a longer delay
	ByLate                     // the host gave no answer in the round before, and its late try is not due
	ByLimit                    // the host answered 429 or 503, perhaps in an earlier attempt or round
	ByRetryAfter               // the host answered 429 or 503 with Retry-After
	ByHold                     // Result.Hold was set
	ByBreaker                  // the host is suspended
	ByItem                     // no remaining item is due yet; Wait.Item is the first item
)

// Wait describes a host that may get no request now.
type Wait struct {
	Host   string
	Reason Reason
	Until  time.Time
	Delay  time.Duration // current delay of the host
	Left   int           // number of items that are not urgent
	Item   Item          // first pushed item; set for ByEarlier and the reasons after it

	Rest      time.Duration // predicted time until the host has no items left
	Suspended bool          // whether the host's breaker is open
}

// Overview is a snapshot of all hosts, for people.
type Overview struct {
	Left     int // number of items in queues
	InFlight int
	Asked    string // a host with a request in flight; "" if none
	Ready    int    // number of due hosts
	Delayed  int    // number of hosts with a short wait
	Waits    []Wait // other waiting hosts, longest Rest first
	More     int    // number of waiting hosts that are not in Waits

	Suspended int // number of the hosts above whose breaker is open
	// Rest is a lower bound for the remaining time. It is the longer of two times: the Rest of the
	// slowest host, and the time that all items take if all slots are busy. It is never longer than
	// the time until the window closes.
	Rest    time.Duration
	Slowest []Wait    // the hosts with the longest Rest, longest first, even if they do not wait now; at most mostSlowest
	Closes  time.Time // end of the window; zero if unknown
}

// mostSlowest bounds Overview.Slowest.
const mostSlowest = 20

// noteSlowest puts a host among the slowest, if it belongs there. Of hosts with the same Rest, the first
// stays.
func (s *Overview) noteSlowest(w Wait) {
	n := len(s.Slowest)
	if n == mostSlowest {
		if n--; w.Rest <= s.Slowest[n].Rest {
			return
		}
		s.Slowest = s.Slowest[:n]
	}
	for n > 0 && s.Slowest[n-1].Rest < w.Rest {
		n--
	}
	s.Slowest = slices.Insert(s.Slowest, n, w)
}

// shortWait limits the waits that count as Delayed although their reason is not a delay.
const shortWait = 5 * time.Second

// Overview returns the state of all hosts, with at most n waits. A host counts as Delayed if it
// waits at most brief for its delay or for a pause from an earlier attempt, or if it waits at most
// brief and at most shortWait for another reason. Overview visits every host, so callers call it at
// most about once a second.
func (s *Scheduler) Overview(n int, brief time.Duration) Overview {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	out := Overview{Left: s.left, Closes: s.closesAt}
	for _, h := range s.inOrder {
		if out.InFlight += h.inFlight; h.inFlight > 0 {
			out.Asked = h.name
		}
		if h.remaining() == 0 || h.drain != Fetch {
			continue
		}
		w := h.waiting()
		wait := max(w.Until.Sub(now), 0)
		w.Rest = wait + h.restTime()
		if s.later != nil {
			w.Rest += h.laterTime(s.later(h.name))
		}
		if w.Suspended = h.br.open; w.Suspended {
			out.Suspended++
		}
		out.noteSlowest(w)
		switch {
		case h.place == ready, h.place == parked, wait == 0 && h.inFlight == 0:
			out.Ready++
		case h.inFlight > 0:
		case wait <= min(shortWait, brief), w.Reason <= ByEarlier && wait <= brief:
			out.Delayed++
		default:
			out.Waits = append(out.Waits, w)
		}
	}
	if len(out.Slowest) > 0 {
		out.Rest = out.Slowest[0].Rest
	}
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

// Expects reports whether a host has items left or an open grant. If later is true, Expects also reports whether an item
// that is pushed later may get a request, because the host is neither stopped nor given up.
func (s *Scheduler) Expects(host string, later bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[host]; h != nil {
		return h.remaining() > 0 || h.inFlight > 0 || later && s.drainKind(h) == Fetch
	}
	return later && !s.closed && s.cfg.termsOf(host).stop == ""
}

// NotBefore returns the time before which the delay and the pauses of a host forbid requests. Zero means
// that they forbid none.
func (s *Scheduler) NotBefore(host string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[host]; h != nil {
		return h.pace()
	}
	return time.Time{}
}

// Limited returns the number of 429 and 503 in a row with which a host answered, those of earlier rounds
// included.
func (s *Scheduler) Limited(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[host]; h != nil {
		return h.limited
	}
	return 0
}

// Carried returns the host that waits longest for its first request, of those that answered 429 or 503 at
// least n times in a row in an earlier round, and the number of these answers. Without such a host, host
// is empty.
func (s *Scheduler) Carried(n int) (host string, limited int, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.inOrder {
		if at := h.pace(); h.limited >= n && h.written.IsZero() && h.remaining() > 0 && (host == "" || at.After(until)) {
			host, limited, until = h.name, h.limited, at
		}
	}
	return host, limited, until
}

// restTime predicts the time from the host's next request to the end of its last request. It
// assumes that a delay raised by 429 and 503 falls again (speedUp).
func (h *host) restTime() time.Duration {
	n, raised, required := h.remaining()-1, h.raised, max(h.required(), h.slowed)
	var sum time.Duration
	for ; n > calmAfter && raised > required; raised /= 2 {
		sum += calmAfter * raised
		n -= calmAfter
	}
	service := time.Duration(h.service * float64(time.Second))
	return sum + time.Duration(n)*max(required, raised, service/time.Duration(h.allowed)) + service
}

// laterTime predicts how much longer the host takes because of n items that are pushed later. It
// assumes that they come two delays apart. While other items wait, each takes a turn between two of
// these, which adds one delay. Each further item adds two delays.
func (h *host) laterTime(n int) time.Duration {
	between := min(n, h.remaining())
	return time.Duration(between+2*(n-between)) * h.delay()
}

// Foresee sets a function that returns how many items will be pushed to a host later, for the
// predictions of Overview. It must be called before the first call of Next or Overview.
func (s *Scheduler) Foresee(later func(host string) int) { s.later = later }

// waiting returns why and how long the host waits. If there are several reasons to wait, it returns
// the wait that ends last.
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
		w.Item = h.nextItem() // most likely this item failed
	}
	return w
}

// pacedBy returns the reason of the current delay.
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

// nextItem returns the pushed item that comes next.
func (h *host) nextItem() Item {
	if len(h.urgent) > 0 && (h.blocked || len(h.extra) == 0 || h.urgent[0].NotBefore.Before(h.extra[0].NotBefore)) {
		return h.urgent[0]
	}
	return h.extra[0]
}

// keepFrom forbids requests to the host before the given time, for reason r.
func (h *host) keepFrom(at time.Time, r Reason) {
	if at.After(h.notBefore) {
		h.notBefore, h.putOff = at, r
	}
}
