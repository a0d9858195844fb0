package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/stages/fetch/guard"
)

const (
	// attemptDelay is how long an address has the field to itself before the
	// next one is tried as well (RFC 8305, 5 "Connection Attempt Delay").
	attemptDelay = 250 * time.Millisecond
	// maxAttempts bounds the addresses tried for one connection.
	maxAttempts = 6
)

// errTimedOut is the cause of contexts that end because of Timeouts.
var errTimedOut = errors.New("time limit passed")

// location is where the connection for a target goes.
type location struct {
	addrs  []netip.AddrPort // the origin's, guarded unless exempt
	dial   []netip.AddrPort // what is dialled: addrs, or the proxy's
	route  Route
	exempt bool          // dial is not guarded
	tunnel string        // the authority to CONNECT to, or ""
	dns    time.Duration // spent looking up
}

// locate applies connect-to rules, DNS, guard and proxy, in this order.
func (c *Client) locate(ctx context.Context, t target) (location, error) {
	l := location{route: RouteDirect}
	host, port, named := t.host, t.port, false
	for _, rule := range c.cfg.ConnectTo {
		if h, p, ok := rule.Match(host, port); ok {
			host, port, named = h, p, rule.Addr != ""
			l.route = RouteConnectTo
			break
		}
	}
	l.exempt = named
	if err := guard.CheckPort(port); err != nil && !named {
		return l, blocked(t, err)
	}
	addrs, err := c.addresses(ctx, t, &l, host, port, named || c.proxy != nil && c.cfg.Guard.AllowsPrivate())
	if err == nil && c.proxy != nil {
		l.addrs = addrs
		if t.https || l.route == RouteConnectTo {
			l.tunnel = joinHostPort(host, port)
			if len(addrs) > 0 {
				l.tunnel = addrs[0].String()
			}
		}
		// Who configures a proxy names it, wherever it is.
		l.route, l.exempt = RouteProxy, true
		l.dial, err = c.resolve(ctx, t, &l, c.proxy.host, c.proxy.port)
	} else {
		l.addrs, l.dial = addrs, addrs
	}
	return l, err
}

// since is how long a phase that happened took: never 0, which says that it did not.
func (c *Client) since(begin time.Time) time.Duration { return max(c.cfg.Now().Sub(begin), 1) }

func blocked(t target, err error) error {
	return &Error{Kind: ErrAddressBlocked, Phase: PhaseConnect, Host: t.origin(), Err: err}
}

// addresses looks up host and keeps what the guard lets pass. With a proxy,
// exempt targets are left for it to look up.
func (c *Client) addresses(ctx context.Context, t target, l *location, host string, port uint16, exempt bool) ([]netip.AddrPort, error) {
	if exempt {
		if c.proxy != nil {
			return nil, nil
		}
		return c.resolve(ctx, t, l, host, port)
	}
	all, err := c.resolve(ctx, t, l, host, port)
	if err != nil {
		return nil, err
	}
	open := make([]netip.AddrPort, 0, len(all))
	for _, a := range all {
		if e := c.cfg.Guard.Check(a); e != nil {
			err = e
			continue
		}
		open = append(open, a)
	}
	if len(open) == 0 {
		return nil, blocked(t, err)
	}
	return open, nil
}

// resolve returns the addresses of host, alternating between families and
// beginning with the one the resolver put first (RFC 8305, 4).
func (c *Client) resolve(ctx context.Context, t target, l *location, host string, port uint16) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(a, port)}, nil
	}
	begin := c.cfg.Now()
	addrs, err := c.dns.lookup(ctx, host)
	l.dns += c.since(begin)
	if err != nil {
		return nil, c.connectError(ctx, PhaseDNS, t, netip.AddrPort{}, ErrDNS, err)
	}
	var first, other []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			other = append(other, a)
		}
	}
	out := make([]netip.AddrPort, 0, len(addrs))
	for i := range max(len(first), len(other)) {
		if i < len(first) {
			out = append(out, netip.AddrPortFrom(first[i], port))
		}
		if i < len(other) {
			out = append(out, netip.AddrPortFrom(other[i], port))
		}
	}
	return out, nil
}

// connect makes a new connection for t. ctx ends with Timeouts.Connect or
// Timeouts.Total, whichever is first.
func (c *Client) connect(ctx context.Context, t target, x *Exchange) (*conn, error) {
	l, err := c.locate(ctx, t)
	x.Timing.DNS, x.Route = l.dns, l.route
	if err != nil {
		return nil, err
	}
	begin := c.cfg.Now()
	nc, addr, err := c.race(ctx, l)
	x.Timing.Connect, x.Addr = c.since(begin), addr
	if err != nil {
		return nil, c.connectError(ctx, PhaseConnect, t, addr, ErrConnect, err)
	}
	if l.tunnel != "" {
		err = c.proxy.tunnel(ctx, nc, l.tunnel)
		x.Timing.Connect = c.since(begin)
		if err != nil {
			nc.Close()
			return nil, c.connectError(ctx, PhaseProxy, t, addr, ErrConnect, err)
		}
	}
	k := &conn{
		Conn: nc, origin: t.origin(), addr: addr, route: l.route,
		absolute: c.proxy != nil && l.tunnel == "",
	}
	if t.https {
		begin = c.cfg.Now()
		cfg := c.tls.Clone()
		cfg.ServerName = strings.TrimSuffix(t.host, ".")
		tc := tls.Client(nc, cfg)
		err = tc.HandshakeContext(ctx)
		x.Timing.TLS = c.since(begin)
		if err != nil {
			nc.Close()
			return nil, c.connectError(ctx, PhaseTLS, t, addr, ErrTLS, err)
		}
		state := tc.ConnectionState()
		k.Conn = tc
		k.tlsVersion, k.tlsCipher = tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite)
	}
	k.source = newSource(k.Conn)
	return k, nil
}

// connectError gives a failure before the request its kind: kind, unless a
// limit or the caller's context ended it, or the guard did.
func (c *Client) connectError(ctx context.Context, phase Phase, t target, addr netip.AddrPort, kind, err error) error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, ErrAddressBlocked):
		kind = ErrAddressBlocked
	case ctx.Err() != nil:
		if kind, err = ErrAborted, context.Cause(ctx); err == errTimedOut {
			kind = ErrTimeout
		}
	case errors.Is(err, ErrNXDomain):
		kind = ErrNXDomain
	case phase != PhaseDNS && isTimeout(err): // the system's own limit on connecting
		kind = ErrTimeout
	}
	return &Error{Kind: kind, Phase: phase, Host: t.origin(), Addr: addr, Err: err}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// race dials l's addresses, each a little after the one before or as soon as
// that has failed, and returns the first connection there is (RFC 8305, 5).
// With an error it returns the first address that failed, and why.
func (c *Client) race(ctx context.Context, l location) (net.Conn, netip.AddrPort, error) {
	addrs := l.dial[:min(len(l.dial), maxAttempts)]
	if len(addrs) == 1 {
		nc, err := c.dialOne(ctx, addrs[0], l.exempt)
		return nc, addrs[0], err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		nc   net.Conn
		addr netip.AddrPort
		err  error
	}
	results := make(chan result)
	var firstErr result
	started, running := 0, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for started < len(addrs) || running > 0 {
		var next <-chan time.Time
		if started < len(addrs) {
			next = timer.C
		}
		select {
		case <-next:
			addr := addrs[started]
			started++
			running++
			go func() {
				nc, err := c.dialOne(ctx, addr, l.exempt)
				select {
				case results <- result{nc, addr, err}:
				case <-ctx.Done():
					if nc != nil {
						nc.Close()
					}
				}
			}()
			timer.Reset(attemptDelay)
		case r := <-results:
			running--
			if r.err == nil {
				return r.nc, r.addr, nil
			}
			if firstErr.err == nil {
				firstErr = r
			}
			timer.Reset(0)
		case <-ctx.Done():
			return nil, addrs[0], context.Cause(ctx)
		}
	}
	return nil, firstErr.addr, firstErr.err
}

// dialOne opens one TCP connection. The guard has seen addr; it sees it once
// more as the system connects, where nothing can come between.
func (c *Client) dialOne(ctx context.Context, addr netip.AddrPort, exempt bool) (net.Conn, error) {
	if c.cfg.Dial != nil {
		return c.cfg.Dial(ctx, addr)
	}
	d := net.Dialer{KeepAlive: -1} // idle connections are checked before use
	if !exempt {
		d.Control = c.cfg.Guard.Control
	}
	nc, err := d.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Err != nil {
			err = op.Err // Error names the address already
		}
		return nil, err
	}
	return nc, nil
}

// clientTLS completes a TLS configuration: HTTP/1.1 by ALPN, sessions resumed.
func clientTLS(base *tls.Config) *tls.Config {
	cfg := &tls.Config{}
	if base != nil {
		cfg = base.Clone()
	}
	cfg.NextProtos = []string{"http/1.1"}
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	if cfg.ClientSessionCache == nil {
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1024)
	}
	return cfg
}

// describe is for errors about an answer's status line.
func describe(status int, text string) string {
	if text == "" {
		return fmt.Sprintf("%d", status)
	}
	return fmt.Sprintf("%d %.60q", status, text)
}
