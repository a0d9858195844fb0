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

	"crawlbatch.io/crawlbatch/formats/http1/buffers"
)

// Route tells how a connection reaches its target.
type Route string

// The routes.
const (
	RouteDirect    Route = "direct"
	RouteConnectTo Route = "connect_to" // goes to the address that a rule of Config.ConnectTo names
	RouteProxy     Route = "proxy"      // goes to the proxy (Config.Proxy)
)

// Peer describes the other end of a connection.
type Peer struct {
	Addr       netip.AddrPort // address of the server, or of the proxy
	Route      Route
	TLSVersion string // such as "TLS 1.3"; "" without TLS
	TLSCipher  string // such as "TLS_AES_128_GCM_SHA256"; "" without TLS
	Reused     bool   // whether the connection has served an earlier exchange
	// Certificate says what is wrong with the server's certificate, in the form of the column certificate; "" if it
	// is valid, and without TLS.
	Certificate string
}

// Conn is one connection. Its methods may be called concurrently.
type Conn struct {
	net.Conn
	Peer

	origin  string // key of the connection in the pool (http1.Target.Origin)
	forward *proxy // proxy that forwards the requests; nil if the connection reaches the server itself

	mu      sync.Mutex
	aborted bool

	element   *list.Element // element of Pool.order that holds the connection
	idleUntil time.Time
}

// pastTime is a time before any deadline, on any clock.
var pastTime = time.Unix(1, 0)

// Abort makes all current and later reads and writes fail.
func (c *Conn) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	c.Conn.SetDeadline(pastTime)
}

// Limit sets the deadline of reads and writes. Zero removes it. Limit does nothing after Abort.
func (c *Conn) Limit(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aborted {
		c.Conn.SetDeadline(t)
	}
}

// Interrupt makes reads and writes fail until the next Limit.
func (c *Conn) Interrupt() { c.Limit(pastTime) }

// Absolute reports whether request lines need the whole URL, because a proxy forwards the requests.
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

// isAlive reports whether an idle connection can serve a request: the peer has not closed it, and
// no bytes are unread. Unread bytes would be taken for the response to the next request. isAlive
// does not wait.
func (c *Conn) isAlive() bool {
	t, ok := c.Conn.(*tls.Conn)
	if !ok {
		return isQuiet(c.Conn)
	}
	// TLS may have read more from the socket than it has returned. It returns such buffered records
	// even after the deadline, and the connection is then unusable.
	t.SetReadDeadline(pastTime)
	var b [1]byte
	n, err := t.Read(b[:])
	t.SetReadDeadline(time.Time{})
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && isQuiet(t.NetConn())
}
