package polite

import (
	"errors"
	"net/netip"
	"time"
)

// Kind says what a grant is for.
type Kind uint8

// The kinds of grants.
const (
	Fetch     Kind = iota // send one request
	Probe                 // send one request, to a host whose breaker is open
	Stopped               // send none: the host's domain is stopped
	Suspended             // send none: the host failed until it was given up, or until Close
	Closed                // send none: Close was called
)

// Grant is the right to send one request to one host, and the item it is for. Of
// a grant of kind Fetch or Probe, Clear and Written are called when the request is
// written and Done when it ended, or Done alone if none was sent. Of others, all
// items are taken with Another, then Done is called. It is for one goroutine.
type Grant struct {
	Host   string
	Item   Item
	Kind   Kind
	Reason string        // of Stopped
	Due    time.Time     // when the host was due: what came later is time in the queue
	Delay  time.Duration // in force for this request

	s        *Scheduler
	h        *host
	given    time.Time
	at       time.Time // when the request was written; zero: it was not
	doubtful bool
	done     bool
}

// ErrNotDue: the grant's request must not be written now. Since the grant was given the
// host's domain was stopped, or what was asked of it became more. The item is to be
// put back.
var ErrNotDue = errors.New("the host is not due any more")

// Pace is what a request kept to as it was written.
type Pace struct {
	Delay time.Duration // in force
	Gap   time.Duration // since the host's request before
	First bool          // there was none
}

// Another takes a further item of the host into the grant, in place of one that
// needed no request; false if none is due.
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

// PutBack returns an item that was not used, to come first when the host is due again.
func (g *Grant) PutBack(it Item) { g.s.Push(g.Host, it) }

// HasAddress reports whether the host's address is known, or that it is exempt from
// pace. If it is not, who can find it out tells it with Meet before connecting.
func (g *Grant) HasAddress() bool {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	return g.h.met
}

// Meet tells the address that the grant's request would go to, and reports whether a
// request may be made to it now. If not, the item is put back and the grant ended: the
// host waits for its address without a slot.
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

// Written says when the grant's request is written, right before it is, and gives the
// pace that it keeps. On ErrNotDue it must not be written.
func (g *Grant) Written(at time.Time, a netip.Addr) (Pace, error) {
	s, h := g.s, g.h
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.stop != "" || at.Before(h.pace()) {
		return Pace{}, ErrNotDue
	}
	p := Pace{Delay: h.delay(), First: h.written.IsZero()}
	if !p.First {
		p.Gap = at.Sub(h.written)
	}
	h.written, h.paced = at, later(h.paced, at)
	s.meet(h, s.addressOf(a))
	if h.addr != nil {
		h.addr.next = later(h.addr.next, at.Add(s.cfg.PerAddressDelay))
		h.addr.due = later(h.addr.due, h.addr.next)
	}
	g.at, g.Delay, h.held, s.sent = at, p.Delay, false, true
	s.settle(h)
	s.wake1()
	return p, nil
}

// Sent tells that the request that Written announced has left at the given time.
// The host's next request is due a delay after that, so that a machine that is too
// busy to write at once does not shorten the gap that the server sees.
func (g *Grant) Sent(at time.Time) {
	s, h := g.s, g.h
	s.mu.Lock()
	defer s.mu.Unlock()
	h.paced = later(h.paced, at)
	if h.addr != nil {
		h.addr.next = later(h.addr.next, at.Add(s.cfg.PerAddressDelay))
		h.addr.due = later(h.addr.due, h.addr.next)
	}
	s.settle(h)
}

// Class is what the end of a request says of its host.
type Class uint8

// The classes.
const (
	Unsent      Class = iota // no request was tried: it says nothing
	Success                  // any response that is not one of the following
	ClientError              // 4xx but 429: the host's word, no failure
	Failure                  // 5xx, or no valid response
	RateLimited              // 429, or 503
	Unanswered               // no connection, or silence: the host cost a slot its time-out
)

// Result is how a grant ended.
type Result struct {
	Class      Class
	RetryAfter time.Duration // of RateLimited, 0 if not said
	// Hold keeps all requests from the host for so long, whatever its delay.
	Hold time.Duration
	// Requeue, if not nil, is put back into the host's queue: the item's retry or next hop.
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
		s.seq++
		it := *r.Requeue
		it.seq = s.seq
		h.push(it)
		s.left++
	}
	if h.inFlight == 0 && h.remaining() == 0 {
		h.br.forget()
	}
	s.settle(h)
	s.wake1()
}

// account takes what the request says of its host into the host's state.
func (g *Grant) account(r Result, now time.Time) {
	s, h := g.s, g.h
	if r.Class == Unsent {
		return
	}
	if g.at.IsZero() {
		h.paced = later(h.paced, now) // a try to connect is paced like a request
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
	default:
		h.speedUp()
	}
	if r.Class == Unanswered {
		h.silent++
	} else {
		h.silent = 0
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
	case h.br.open: // of a request that was in flight when the breaker opened
	case h.br.count(&s.brk, now, failed, h.silent):
		s.log.Warn("host suspended: too many of its requests failed", "host", h.name, "probe_in", h.br.pause)
	}
}
