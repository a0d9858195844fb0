package polite

import (
	"container/heap"
	"net/netip"
	"time"
)

// address is the state of an IP address that hosts share.
type address struct {
	due    time.Time // when a host may be given a grant to it: an estimate, since connecting takes time
	next   time.Time // when the next request may be written to it: exact
	parked byWork    // hosts that are due, waiting for it
	wait   waiter
}

// addressOf finds or makes the state of an address; nil for the invalid address,
// which is exempt from pace.
func (s *Scheduler) addressOf(a netip.Addr) *address {
	if !a.IsValid() {
		return nil
	}
	a = a.Unmap().WithZone("")
	addr := s.addresses[a]
	if addr == nil {
		s.seq++
		addr = &address{wait: waiter{order: s.seq, index: -1}}
		addr.wait.addr = addr
		s.addresses[a] = addr
	}
	return addr
}

// meet notes the address that a host's request goes to.
func (s *Scheduler) meet(h *host, addr *address) {
	h.met = true
	if h.addr == addr {
		return
	}
	if h.place == parked {
		s.remove(h)
	}
	h.addr = addr
	s.settle(h)
}

// park lets a host wait for its address.
func (s *Scheduler) park(h *host) {
	h.place = parked
	heap.Push(&h.addr.parked, h)
	s.arm(h.addr)
}

// arm has the address wake when it is due, if a host waits for it.
func (s *Scheduler) arm(a *address) {
	if len(a.parked) > 0 {
		setTime(&s.timed, &a.wait, a.due)
	}
}

// wake makes the best host that waits for the address ready. The others follow
// when that one has been given its grant.
func (s *Scheduler) wake(a *address) {
	if len(a.parked) > 0 {
		s.makeReady(heap.Pop(&a.parked).(*host))
	}
}

// Clear is asked when the address of the grant's request is known, right before
// it is written. It gives how long to wait first; the moment at the end of that
// wait is the grant's alone. An invalid address is exempt.
func (g *Grant) Clear(a netip.Addr) time.Duration {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.addressOf(a)
	s.meet(g.h, addr)
	if addr == nil {
		return 0
	}
	now := s.clock.Now()
	at := later(now, addr.next)
	addr.next = at.Add(s.cfg.PerAddressDelay)
	addr.due = later(addr.due, addr.next)
	s.arm(addr)
	return at.Sub(now)
}
