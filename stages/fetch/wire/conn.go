package wire

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// conn is one connection, its read buffer and what is to be told about it.
type conn struct {
	net.Conn
	source *source
	origin string // target.origin, the key in the pool
	addr   netip.AddrPort
	route  Route
	// absolute: requests name the whole URL, the peer being a proxy.
	absolute              bool
	tlsVersion, tlsCipher string
	reused                bool

	mu      sync.Mutex
	aborted bool

	element   *list.Element // in idlePool.order
	idleUntil time.Time
}

// past is a deadline that has passed on any clock.
var past = time.Unix(1, 0)

// abort makes every read and write on c fail from now on.
func (c *conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	c.Conn.SetDeadline(past)
}

// limit sets the deadline of reads and writes, unless c was aborted.
func (c *conn) limit(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aborted {
		c.Conn.SetDeadline(t)
	}
}

// alive reports whether an idle connection can still serve a request: neither
// closed by the peer nor spoken on out of turn, since what is there before a request
// is sent would be taken for its answer. It does not wait.
func (c *conn) alive() bool {
	if c.source.buffered() > 0 {
		return false
	}
	t, ok := c.Conn.(*tls.Conn)
	if !ok {
		return quiet(c.Conn)
	}
	// TLS may have read more from the socket than it has given out: whole records
	// are delivered even after the deadline, and there must be none.
	t.SetReadDeadline(past)
	var b [1]byte
	n, err := t.Read(b[:])
	t.SetReadDeadline(time.Time{})
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && quiet(t.NetConn())
}
