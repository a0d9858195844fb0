package dial

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"
)

// Pool keeps idle connections. Take returns the newest connection of an origin. If there are too
// many connections, Put closes the oldest. A Pool is safe for concurrent use.
type Pool struct {
	max, perHost int
	now          func() time.Time

	mu     sync.Mutex
	closed bool
	hosts  map[string][]*Conn // connections by origin, the newest last
	order  *list.List         // all connections (*Conn), the oldest first
}

// NewPool returns a pool that keeps at most max connections, and at most perHost per origin.
func NewPool(max, perHost int, now func() time.Time) *Pool {
	return &Pool{max: max, perHost: perHost, now: now, hosts: make(map[string][]*Conn), order: list.New()}
}

// Take removes and returns a live connection to origin and marks it as reused. It returns nil if
// the pool has no such connection.
func (p *Pool) Take(origin string) *Conn {
	for {
		p.mu.Lock()
		stale := p.expire()
		var c *Conn
		if cs := p.hosts[origin]; len(cs) > 0 {
			c = cs[len(cs)-1]
			p.remove(c)
		}
		p.mu.Unlock()
		closeAll(stale)
		if c == nil {
			return nil
		}
		if p.now().Before(c.idleUntil) && c.isAlive() {
			c.Reused = true
			return c
		}
		c.Close()
	}
}

// Put removes c's deadline and keeps c for at most d. If the pool is closed, it returns false, and
// the caller closes c.
func (p *Pool) Put(c *Conn, d time.Duration) bool {
	c.Limit(time.Time{})
	c.idleUntil = p.now().Add(d)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	stale := p.expire()
	c.element = p.order.PushBack(c)
	p.hosts[c.origin] = append(p.hosts[c.origin], c)
	if cs := p.hosts[c.origin]; len(cs) > p.perHost {
		stale = append(stale, cs[0])
		p.remove(cs[0])
	}
	if p.order.Len() > p.max {
		oldest := p.order.Front().Value.(*Conn)
		stale = append(stale, oldest)
		p.remove(oldest)
	}
	p.mu.Unlock()
	closeAll(stale)
	return true
}

// Close closes all idle connections, and the pool keeps no more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	all := slices.Concat(slices.Collect(maps.Values(p.hosts))...)
	p.order.Init()
	clear(p.hosts)
	p.mu.Unlock()
	closeAll(all)
}

// expire removes expired connections, the oldest first. It stops at the first connection that has
// not expired. A later connection with a shorter idle time may already have expired, so Take checks
// the time again. The caller holds p.mu, and closes the returned connections after unlocking it.
func (p *Pool) expire() (stale []*Conn) {
	now := p.now()
	for e := p.order.Front(); e != nil; e = p.order.Front() {
		c := e.Value.(*Conn)
		if now.Before(c.idleUntil) {
			return stale
		}
		p.remove(c)
		stale = append(stale, c)
	}
	return stale
}

// remove deletes c from hosts and order. The caller holds p.mu.
func (p *Pool) remove(c *Conn) {
	p.order.Remove(c.element)
	c.element = nil
	cs := slices.DeleteFunc(p.hosts[c.origin], func(k *Conn) bool { return k == c })
	if len(cs) == 0 {
		delete(p.hosts, c.origin)
	} else {
		p.hosts[c.origin] = cs
	}
}

func closeAll(cs []*Conn) {
	for _, c := range cs {
		c.Close()
	}
}
