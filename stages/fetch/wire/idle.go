package wire

import (
	"container/list"
	"sync"
	"time"
)

// idlePool keeps connections that may serve another exchange, for each origin
// the newest first, and closes the oldest of all when there are too many.
type idlePool struct {
	max, perHost int
	now          func() time.Time

	mu     sync.Mutex
	closed bool
	hosts  map[string][]*conn // by origin; the last is the newest
	order  *list.List         // *conn, the front is the oldest
}

func newIdlePool(max, perHost int, now func() time.Time) *idlePool {
	return &idlePool{max: max, perHost: perHost, now: now, hosts: make(map[string][]*conn), order: list.New()}
}

// take removes and returns a live connection to origin, or nil.
func (p *idlePool) take(origin string) *conn {
	for {
		p.mu.Lock()
		stale := p.expire()
		var c *conn
		if cs := p.hosts[origin]; len(cs) > 0 {
			c = cs[len(cs)-1]
			p.remove(c)
		}
		p.mu.Unlock()
		closeAll(stale)
		if c == nil || p.now().Before(c.idleUntil) && c.alive() {
			return c
		}
		c.Close()
	}
}

// put keeps c until its idle time is over; it reports false, and the caller
// closes c, if the pool is closed.
func (p *idlePool) put(c *conn, d time.Duration) bool {
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
		oldest := p.order.Front().Value.(*conn)
		stale = append(stale, oldest)
		p.remove(oldest)
	}
	p.mu.Unlock()
	closeAll(stale)
	return true
}

func (p *idlePool) close() {
	p.mu.Lock()
	p.closed = true
	var all []*conn
	for e := p.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*conn))
	}
	p.order.Init()
	clear(p.hosts)
	p.mu.Unlock()
	closeAll(all)
}

// len is how many connections are kept.
func (p *idlePool) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order.Len()
}

// expire removes connections whose time is over, from the oldest on. One that
// a server gave a shorter time may stay behind an older one until that goes;
// take sees by itself whether it still lives. The caller holds mu and closes
// what is returned after giving it up.
func (p *idlePool) expire() (stale []*conn) {
	now := p.now()
	for e := p.order.Front(); e != nil; e = p.order.Front() {
		c := e.Value.(*conn)
		if now.Before(c.idleUntil) {
			return stale
		}
		p.remove(c)
		stale = append(stale, c)
	}
	return stale
}

// remove takes c out of both indexes; the caller holds mu.
func (p *idlePool) remove(c *conn) {
	p.order.Remove(c.element)
	c.element = nil
	cs := p.hosts[c.origin]
	for i := range cs {
		if cs[i] == c {
			cs = append(cs[:i], cs[i+1:]...)
			break
		}
	}
	if len(cs) == 0 {
		delete(p.hosts, c.origin)
	} else {
		p.hosts[c.origin] = cs
	}
}

func closeAll(cs []*conn) {
	for _, c := range cs {
		c.Close()
	}
}
