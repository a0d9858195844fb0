package polite

import (
	"net/netip"
	"sync"
	"time"
)

// Clocks lets the Schedulers of several tasks in one process keep the delays of hosts and addresses
// together. A partition has all hosts of its domains, but hosts of several partitions may share an
// address, and their robots.txt may redirect to the same host. Pauses and raised delays are not shared. A
// nil Clocks shares nothing. Clocks is safe for concurrent use.
type Clocks struct {
	mu        sync.Mutex
	hosts     map[string]sending
	addresses map[netip.Addr]sending
	many      int // number of entries at which entries that matter no more are removed
}

// sending is the last request to a host or an address.
type sending struct {
	at    time.Time
	delay time.Duration // delay in force for it
}

func (s sending) next(delay time.Duration) time.Time {
	if s.at.IsZero() {
		return s.at
	}
	return s.at.Add(delay)
}

// takeHost notes a request to a host at the given time, and returns that time. If the delay since the
// last request of another task has not passed by then, it notes nothing and returns when it will have.
func (c *Clocks) takeHost(name string, at time.Time, delay time.Duration) time.Time {
	if c == nil {
		return at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if due := c.hosts[name].next(delay); due.After(at) {
		return due
	}
	c.tidy(at)
	c.hosts[name] = sending{at, delay}
	return at
}

// takeAddress reserves the first moment, at the earliest at, at which a request to an address is due.
func (c *Clocks) takeAddress(a netip.Addr, at time.Time, delay time.Duration) time.Time {
	if c == nil {
		return at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at = later(at, c.addresses[a].next(delay))
	c.tidy(at)
	c.addresses[a] = sending{at, delay}
	return at
}

// sent notes when a request to a host and an address was really sent. The address may be invalid.
func (c *Clocks) sent(host string, a netip.Addr, at time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.hosts[host]; ok {
		c.hosts[host] = sending{later(s.at, at), s.delay}
	}
	if s, ok := c.addresses[a]; ok {
		c.addresses[a] = sending{later(s.at, at), s.delay}
	}
}

// tidy makes room for an entry. The caller holds c.mu.
func (c *Clocks) tidy(now time.Time) {
	if c.hosts == nil {
		c.hosts, c.addresses = map[string]sending{}, map[netip.Addr]sending{}
	}
	if len(c.hosts)+len(c.addresses) < max(c.many, 1024) {
		return
	}
	for name, s := range c.hosts {
		if s.next(s.delay).Before(now) {
			delete(c.hosts, name)
		}
	}
	for a, s := range c.addresses {
		if s.next(s.delay).Before(now) {
			delete(c.addresses, a)
		}
	}
	c.many = 2 * (len(c.hosts) + len(c.addresses))
}
