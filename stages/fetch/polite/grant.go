package polite

import (
	"errors"
	"net/netip"
	"time"
)

// Kind tells what a grant permits.
type Kind uint8

// The kinds of grants.
const (
	Fetch     Kind = iota // permits one request
	Probe                 // permits one request, to a host whose breaker is open
	Stopped               // permits no request, because the host's domain is stopped
	Suspended             // permits no request, because the host was given up or its breaker was open at Close
	Closed                // permits no request, because Close was called
	Postponed             // permits no request, because only late tries are left, and the next round makes them
)

// Grant permits one request to a host for one item. For the kinds Fetch and Probe, the caller calls
// Clear and Written right before the write, and Done when the request has ended. If it sends no
// request, it just calls Done. For other kinds, it calls Another until no item is left, and then
// Done. Only one goroutine may use a Grant.
type Grant struct {
	Host   string
	Item   Item
	Kind   Kind
	Reason string        // reason why the domain is stopped; "" unless Kind is Stopped
	Due    time.Time     // when the host became due and began to wait for a slot
	Delay  time.Duration // delay of the host for this request

	s        *Scheduler
	h        *host
	given    time.Time // when the grant was given
	at       time.Time // when the request was written; zero if the request was not written
	doubtful bool      // whether the last request to the host got no response
	done     bool
}

// ErrNotDue means that the grant's request must not be written now: after the grant was given, the
// host's domain was stopped, its delay grew, or another task of the process requested the host. The caller puts the item back.
var ErrNotDue = errors.New("the host is not due any more")

// Pace tells how a request was paced.
type Pace struct {
	Delay time.Duration // delay of the host for the request
	Gap   time.Duration // time since the host's previous request
	First bool          // whether the host has no previous request
}

// Another returns the host's next item, for a grant whose item turned out to need no request. It
// returns false if no item is due.
func (g *Grant) Another() (Item, bool) {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := g.h.take(s.clock.Now(), g.Kind > Probe)
	if ok {
		s.left--
		g.Item = it
	}
	return it, ok
}

// PutBack returns an unused item to the front of its host's queue.
func (g *Grant) PutBack(it Item) { g.s.Push(g.Host, it) }

// HasAddress reports whether the caller may connect: either the host's address is known, or the
// host needs no delay per address. Otherwise the caller must first resolve the name and call Meet.
func (g *Grant) HasAddress() bool {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	return g.h.met
}

// Meet sets the host's address and reports whether a request to this address is due. If no request
// is due, the caller puts the item back and calls Done; the host then waits for its address without
// a slot.
func (g *Grant) Meet(a netip.Addr) bool {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.addressOf(a)
	s.meet(g.h, addr)
	if addr == nil {
		return true
	}
	now := s.clock.Now()
	if addr.due.After(now) {
		return false
	}
	addr.due = now.Add(s.cfg.PerAddressDelay)
	s.arm(addr)
	return true
}

// Written announces that the grant's request is about to be written, and returns the pace of the
// request. The caller calls it right before the write. If it returns ErrNotDue, the request must
// not be written.
func (g *Grant) Written(at time.Time, a netip.Addr) (Pace, error) {
	s, h := g.s, g.h
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.stop != "" || at.Before(h.pace()) {
		return Pace{}, ErrNotDue
	}
	if due := s.clocks.takeHost(h.name, at, h.delay()); due.After(at) {
		h.keepFrom(due, ByDelay)
		return Pace{}, ErrNotDue
	}
	p := Pace{Delay: h.delay(), First: h.written.IsZero()}
	if !p.First {
		p.Gap = at.Sub(h.written)
	}
	h.written = at
	s.meet(h, s.addressOf(a))
	s.sentAt(h, at)
	g.at, g.Delay, h.held, s.sent = at, p.Delay, false, true
	s.reschedule(h)
	s.wakeNext()
	return p, nil
}

// Sent reports when the announced request was really sent. The host's delay starts at this time. A
// busy machine may write late, and the server must still see the whole delay between two requests.
func (g *Grant) Sent(at time.Time) {
	s, h := g.s, g.h
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sentAt(h, at)
	ip := netip.Addr{}
	if h.addr != nil {
		ip = h.addr.ip
	}
	s.clocks.sent(h.name, ip, at)
	s.reschedule(h)
}

// sentAt starts the delays of a host and its address.
func (s *Scheduler) sentAt(h *host, at time.Time) {
	h.paced = later(h.paced, at)
	if h.addr != nil {
		h.addr.next = later(h.addr.next, at.Add(s.cfg.PerAddressDelay))
		h.addr.due = later(h.addr.due, h.addr.next)
	}
}

// Class says how the end of a request affects its host.
type Class uint8

// The classes of results.
const (
	Unsent      Class = iota // no request was tried, so the host's state does not change
	Success                  // any response not covered by another class
	ClientError              // any other 4xx; not a failure of the host
	Forbidden                // 401, 402, 403 or 451
	Refused                  // a service in front of the site refused the request
	Failure                  // 5xx, or no valid response
	RateLimited              // 429 or 503
	Unanswered               // no connection or no response, so the request may have blocked a slot until its time-out
)

// Result tells how a grant ended.
type Result struct {
	Class      Class
	Page       bool          // whether the host gave a page, or said that it has not changed
	NoAnswer   bool          // whether the host sent nothing (see LateTry)
	RetryAfter time.Duration // Retry-After of a response of class RateLimited; 0 if it has none
	// Hold is the time during which the host gets no request, even if its delay is shorter.
	Hold time.Duration
	// Requeue is the item's retry or next hop, or nil. Done puts it into the host's queue.
	Requeue *Item
}

// Done ends the grant. A second call does nothing.
func (g *Grant) Done(r Result) {
	s, h := g.s, g.h
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.done {
		return
	}
	g.done = true
	now := s.clock.Now()
	s.grants--
	if g.at.IsZero() {
		h.held = false
	}
	if g.doubtful {
		s.doubtfulGrants--
	}
	if g.Kind <= Probe {
		h.inFlight--
		g.account(r, now)
	}
	if r.Hold > 0 {
		h.keepFrom(now.Add(r.Hold), ByHold)
	}
	if r.Requeue != nil {
		s.push(h, *r.Requeue)
	}
	if h.inFlight == 0 && h.remaining() == 0 {
		h.br.forget()
	}
	s.reschedule(h)
	s.wakeNext()
}

// account updates the host's state with the result of the request.
func (g *Grant) account(r Result, now time.Time) {
	s, h := g.s, g.h
	if r.Class == Unsent {
		return
	}
	if g.at.IsZero() {
		h.paced = later(h.paced, now) // a failed connect counts as a request
	} else {
		h.answered(now.Sub(g.at), s.cfg.SlowFactor)
	}
	took := now.Sub(g.given)
	h.served(took)
	s.service += serviceWeight / 20 * (took.Seconds() - s.service)
	failed := false
	switch r.Class {
	case RateLimited:
		h.slowDown(s, now, r.RetryAfter)
		failed = true
	case Failure, Unanswered:
		failed = true
	case Forbidden, Refused:
		h.refusals++
		failed = g.Kind == Probe
	default:
		h.refusals, h.gavePages = 0, h.gavePages || r.Page
		h.speedUp()
	}
	if r.Class == Unanswered {
		h.silent++
	} else {
		h.silent = 0
	}
	h.owed = false
	switch {
	case !r.NoAnswer:
		h.failing = time.Time{}
	case h.failing.IsZero():
		h.failing = now
	}
	switch {
	case g.Kind == Probe:
		h.br.probed(&s.brk, now, failed)
		switch {
		case h.br.gaveUp:
			s.log.Warn("host given up", "host", h.name, "left", h.remaining())
		case !h.br.open:
			s.log.Info("host resumed", "host", h.name)
		}
	case h.br.open: // the request was sent before the breaker opened, so its result does not count
	case (r.Class == Forbidden || r.Class == Refused) && h.refusals >= h.mostRefusals(r.Class):
		h.br.refuse(&s.brk, now)
		h.refusals = 0
		s.log.Warn("host suspended: it refuses all requests", "host", h.name, "probe_in", h.br.pause)
	case h.br.count(&s.brk, now, failed, h.silent):
		s.log.Warn("host suspended: too many of its requests failed", "host", h.name, "probe_in", h.br.pause)
	}
}
