package polite

import (
	"container/heap"
	"net/netip"
	"time"
)

// address is the state of an IP address. Several hosts may share one address.
type address struct {
	ip     netip.Addr
	due    time.Time // when a host may next get a grant for the address; only an estimate, because a request is written later than its grant is given
	next   time.Time // when the next request to the address may be written; exact
	parked byWork    // hosts that are due and wait for the address
	wait   waiter
}

// addressOf returns the state of an address, and creates it if necessary. The invalid address has
// no delay, so addressOf returns nil for it.
func (s *Scheduler) addressOf(a netip.Addr) *address {
	if !a.IsValid() {
		return nil
	}
	a = a.Unmap().WithZone("")
	addr := s.addresses[a]
	if addr == nil {
		s.seq++
		addr = &address{ip: a, wait: waiter{order: s.seq, index: -1}}
		addr.wait.addr = addr
		s.addresses[a] = addr
	}
	return addr
}

// meet records the address of a host.
func (s *Scheduler) meet(h *host, addr *address) {
	h.met = true
	if h.addr == addr {
		return
	}
	if h.place == parked {
		s.remove(h)
	}
	h.addr = addr
	s.reschedule(h)
}

// park makes a due host wait for its address.
func (s *Scheduler) park(h *host) {
	h.place = parked
	heap.Push(&h.addr.parked, h)
	s.arm(h.addr)
}

// arm sets the address's timer if a host waits for the address.
func (s *Scheduler) arm(a *address) {
	if len(a.parked) > 0 {
		setTime(&s.timed, &a.wait, a.due)
	}
}

// wake makes a host ready: the first of those that wait for the address. When this host gets its grant, the
// timer is set for the next host.
func (s *Scheduler) wake(a *address) {
	if len(a.parked) > 0 {
		s.makeReady(heap.Pop(&a.parked).(*host))
	}
}

// Clear returns how long the grant's request must wait before it is written to address a. It reserves
// the moment at the end of this wait. The caller calls Clear right before the write. For the invalid
// address the wait is 0.
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
	at := s.clocks.takeAddress(addr.ip, later(now, addr.next), s.cfg.PerAddressDelay)
	addr.next = at.Add(s.cfg.PerAddressDelay)
	addr.due = later(addr.due, addr.next)
	s.arm(addr)
	return at.Sub(now)
}
