package dial

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/buffers"
)

// Route tells how a connection reaches its target.
type Route string

// The routes.
const (
	RouteDirect    Route = "direct"
	RouteConnectTo Route = "connect_to" // a rule of Config.ConnectTo named the address
	RouteProxy     Route = "proxy"      // the connection goes to the proxy (Config.Proxy)
)

// Peer describes the other end of a connection.
type Peer struct {
	Addr       netip.AddrPort // address of the server, or of the proxy
	Route      Route
	TLSVersion string // such as "TLS 1.3"; "" without TLS
	TLSCipher  string // such as "TLS_AES_128_GCM_SHA256"; "" without TLS
	Reused     bool   // whether the connection has served an earlier exchange
}

// Conn is one connection. Its methods may be called concurrently.
type Conn struct {
	net.Conn
	Peer

	origin  string // key of the connection in the pool (http1.Target.Origin)
	forward *proxy // proxy that forwards the requests; nil if the server itself reads the requests

	mu      sync.Mutex
	aborted bool

	element   *list.Element // the connection's element of Pool.order
	idleUntil time.Time
}

// past is a time before any deadline, on any clock.
var past = time.Unix(1, 0)

// Abort makes every read and write on c fail from now on.
func (c *Conn) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	c.Conn.SetDeadline(past)
}

// Limit sets the deadline of reads and writes. It does nothing if c was aborted. The zero time
// removes the deadline.
func (c *Conn) Limit(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aborted {
		c.Conn.SetDeadline(t)
	}
}

// Interrupt makes the current reads and writes on c fail, until the next call of Limit.
func (c *Conn) Interrupt() { c.Limit(past) }

// Absolute reports whether request lines need the whole URL. Request lines need the whole URL if a
// proxy forwards the requests.
func (c *Conn) Absolute() bool { return c.forward != nil }

// WriteRequest writes a request head. It adds the proxy's credentials, so callers never see them.
func (c *Conn) WriteRequest(head []byte) (int, error) {
	if c.forward == nil || c.forward.authorization == "" {
		return c.Write(head)
	}
	b := append(buffers.Get(len(head)+256), head[:len(head)-len("\r\n")]...)
	b = c.forward.appendCredentials(b)
	b = append(b, "\r\n"...)
	defer buffers.Put(b)
	return c.Write(b)
}

// isAlive reports whether an idle connection can serve a request. A connection that the peer has
// closed cannot serve a request. A connection with unread bytes from the peer is useless too,
// because these bytes would count as the response to the next request. isAlive does not wait.
func (c *Conn) isAlive() bool {
	t, ok := c.Conn.(*tls.Conn)
	if !ok {
		return quiet(c.Conn)
	}
	// TLS may have read more from the socket than it has returned. If a TLS connection has buffered
	// records, it returns them even after the deadline. Such a connection cannot be used.
	t.SetReadDeadline(past)
	var b [1]byte
	n, err := t.Read(b[:])
	t.SetReadDeadline(time.Time{})
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && quiet(t.NetConn())
}
