package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

const (
	// attemptDelay is the time after which the dialer also dials the next address if an address
	// does not answer (RFC 8305, 5 "Connection Attempt Delay").
	attemptDelay = 250 * time.Millisecond
	// maxAttempts limits how many addresses are dialled for one connection.
	maxAttempts = 32
	// maxPending limits how many addresses are dialled at the same time. If another one is to be dialled, the one
	// that has been silent longest is given up, after maxPending times attemptDelay: a lost packet is sent again
	// after a second (RFC 6298, 2.1).
	maxPending = 6
)

// Config configures a Dialer. Guard, Names and Now are required.
type Config struct {
	Guard     *guard.Guard
	ConnectTo []ConnectTo // the first matching rule applies; the guard does not check its target
	Proxy     string      // "http://[user:password@]host:port", or "" for no proxy; the guard does not check its address
	// ProxyFilters declares that the proxy refuses private addresses by itself. Requests of plain
	// http then go to the proxy in absolute form, and the proxy looks up the host again.
	ProxyFilters bool
	TLS          *tls.Config // the dialer uses a copy; nil means TLS 1.2 or later and the system's roots
	// Tolerant takes servers with TLS 1.0 and with certificates that are not valid. Peer.Certificate says what is
	// wrong.
	Tolerant bool
	Names    *dns.Cache
	// Dial opens a TCP connection to an address that passed the guard or is exempt from it. The
	// default is a net.Dialer whose Control runs the guard again.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	Now  func() time.Time
}

// Dialer makes connections. It is safe for concurrent use.
type Dialer struct {
	Config
	proxy *proxy // nil if there is no proxy
	tls   *tls.Config
}

// New returns a Dialer. It returns an error if cfg.Proxy is invalid.
func New(cfg Config) (*Dialer, error) {
	d := &Dialer{Config: cfg, tls: clientTLS(cfg.TLS, cfg.Tolerant)}
	if cfg.Proxy != "" {
		p, err := parseProxy(cfg.Proxy)
		if err != nil {
			return nil, fmt.Errorf("fetch.proxy: %w", err)
		}
		d.proxy = p
	}
	return d, nil
}

// Step is the part of connecting in which an error happened.
type Step string

// The steps, in the order in which they happen.
const (
	StepReachProxy Step = "reach proxy" // the proxy's name was not found, or no connection to the proxy was made
	StepDNS        Step = "dns"
	StepConnect    Step = "connect" // TCP failed, or the guard refused
	StepProxy      Step = "proxy"   // CONNECT to the proxy failed
	StepTLS        Step = "tls"
)

// Error is a failure to connect.
type Error struct {
	Step Step
	Addr netip.AddrPort // address that failed, if any
	Err  error          // cause; wraps guard.ErrAddressBlocked if the guard refused
}

// Error returns the step and the cause.
func (e *Error) Error() string { return string(e.Step) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Location says where the connections for a target go.
type Location struct {
	Addrs []netip.AddrPort // addresses of the target's host, in the order to try; none if a proxy looks it up
	Route Route
	DNS   time.Duration // time for look-ups; 0 if none

	dial    []netip.AddrPort // addresses to dial: either Addrs or the proxy's addresses
	exempt  bool             // whether the guard skips the addresses in dial
	tunnels []string         // authorities for CONNECT, in the order to try
}

// Locate applies connect-to rules, then DNS, the guard and the proxy. Even with an error, the
// Location holds the Route and the time for DNS.
func (d *Dialer) Locate(ctx context.Context, t http1.Target) (Location, error) {
	var l Location
	host, port, route, named := d.redirected(t)
	l.Route, l.exempt = route, named
	if err := guard.CheckPort(port); err != nil && !named {
		return l, &Error{Step: StepConnect, Err: err}
	}
	// If there is a proxy, it looks up the names whose addresses the guard does not check.
	exempt := named || d.proxy != nil && d.Guard.AllowsPrivate()
	var err error
	if d.proxy == nil || !exempt {
		l.Addrs, err = d.resolve(ctx, &l, host, port)
		if err == nil && !exempt {
			l.Addrs, err = d.permitted(l.Addrs)
		}
	}
	if err != nil || d.proxy == nil {
		l.dial = l.Addrs
		return l, err
	}
	if t.HTTPS || l.Route == RouteConnectTo || !d.ProxyFilters {
		for _, a := range l.Addrs[:min(len(l.Addrs), maxAttempts)] {
			l.tunnels = append(l.tunnels, a.String())
		}
		if len(l.Addrs) == 0 {
			l.tunnels = []string{net.JoinHostPort(host, strconv.Itoa(int(port)))}
		}
	}
	l.Route, l.exempt = RouteProxy, true
	if l.dial, err = d.resolve(ctx, &l, d.proxy.host, d.proxy.port); err != nil {
		err = &Error{Step: StepReachProxy, Err: errors.Unwrap(err)}
	}
	return l, err
}

// redirected applies the connect-to rules to a target. named reports whether a rule names the host.
func (d *Dialer) redirected(t http1.Target) (host string, port uint16, route Route, named bool) {
	for _, rule := range d.ConnectTo {
		if h, p, ok := rule.Match(t.Host, t.Port); ok {
			return h, p, RouteConnectTo, rule.Addr != ""
		}
	}
	return t.Host, t.Port, RouteDirect, false
}

// permitted returns the addresses that pass the guard, or the guard's error if none passes.
func (d *Dialer) permitted(all []netip.AddrPort) ([]netip.AddrPort, error) {
	open := make([]netip.AddrPort, 0, len(all))
	var refused error
	for _, a := range all {
		if err := d.Guard.Check(a); err != nil {
			refused = err
			continue
		}
		open = append(open, a)
	}
	if len(open) == 0 {
		return nil, &Error{Step: StepConnect, Err: refused}
	}
	return open, nil
}

// resolve returns the addresses of host. IPv4 and IPv6 addresses alternate, beginning with the
// resolver's first address (RFC 8305, 4).
func (d *Dialer) resolve(ctx context.Context, l *Location, host string, port uint16) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(a, port)}, nil
	}
	begin := d.Now()
	addrs, err := d.Names.Lookup(ctx, host)
	l.DNS += d.elapsedSince(begin)
	if err != nil {
		return nil, &Error{Step: StepDNS, Err: err}
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

// elapsedSince returns the duration of a step, at least 1 ns, because 0 means that there was no
// such step.
func (d *Dialer) elapsedSince(begin time.Time) time.Duration { return max(d.Now().Sub(begin), 1) }

// Attempt describes a call of Connect, successful or not.
type Attempt struct {
	Addr              netip.AddrPort // address of the peer, or after an error the first address that failed
	Route             Route
	DNS, Connect, TLS time.Duration // duration of each step, at least 1 ns; 0 if there was no such step
}

// Connect makes a new connection to t. The error is an *Error.
func (d *Dialer) Connect(ctx context.Context, t http1.Target) (*Conn, Attempt, error) {
	l, err := d.Locate(ctx, t)
	a := Attempt{Route: l.Route, DNS: l.DNS}
	if err != nil {
		return nil, a, err
	}
	begin := d.Now()
	nc, addr, err := d.reach(ctx, l)
	a.Connect, a.Addr = d.elapsedSince(begin), addr
	if err != nil {
		if at, ok := errors.AsType[*Error](err); ok && at.Step == StepProxy && !t.HTTPS {
			at.Err = needsTunnel(at.Err)
		}
		return nil, a, err
	}
	c := &Conn{Conn: nc, origin: t.Origin(), Peer: Peer{Addr: addr, Route: l.Route}}
	if l.Route == RouteProxy && len(l.tunnels) == 0 {
		c.forward = d.proxy
	}
	if t.HTTPS {
		begin = d.Now()
		err = c.handshake(ctx, d.tls, t.Host, d.Tolerant)
		a.TLS = d.elapsedSince(begin)
		if err != nil {
			nc.Close()
			return nil, a, &Error{StepTLS, addr, err}
		}
	}
	return c, a, nil
}

// reach connects to the target, directly or through the proxy. If the proxy cannot connect to one
// address of the target, reach asks the proxy for the next address. The error is an *Error.
func (d *Dialer) reach(ctx context.Context, l Location) (nc net.Conn, addr netip.AddrPort, err error) {
	var first error
	for i := 0; ; i++ {
		nc, addr, err = d.race(ctx, l)
		if err != nil {
			step := StepConnect
			if l.Route == RouteProxy {
				step = StepReachProxy
			}
			return nil, addr, cmp.Or(first, error(&Error{step, addr, err}))
		}
		if len(l.tunnels) == 0 {
			return nc, addr, nil
		}
		err = d.proxy.tunnel(ctx, nc, l.tunnels[i])
		if err == nil {
			return nc, addr, nil
		}
		nc.Close()
		first = cmp.Or(first, error(&Error{StepProxy, addr, err}))
		if i+1 == len(l.tunnels) || !isUnreachable(err) || ctx.Err() != nil {
			return nil, addr, first
		}
	}
}

// race dials l's addresses and returns the first connection (RFC 8305, 5). It dials the next
// address after attemptDelay, or as soon as one fails. If all fail, it returns the address that
// failed first and its error, but rather one whose family this machine has a network for: the error of
// the other says nothing about the host.
func (d *Dialer) race(ctx context.Context, l Location) (net.Conn, netip.AddrPort, error) {
	addrs := l.dial[:min(len(l.dial), maxAttempts)]
	if len(addrs) == 1 {
		nc, err := d.dialOne(ctx, addrs[0], l.exempt)
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
	failed := map[netip.AddrPort]bool{}
	type attempt struct {
		addr   netip.AddrPort
		giveUp context.CancelCauseFunc
	}
	var pending []attempt // the oldest first
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
			timer.Reset(attemptDelay)
			if running == maxPending { // the next address is dialled once this one has ended
				pending[0].giveUp(os.ErrDeadlineExceeded)
				continue
			}
			addr := addrs[started]
			one, giveUp := context.WithCancelCause(ctx)
			pending = append(pending, attempt{addr, giveUp})
			started++
			running++
			go func() {
				nc, err := d.dialOne(one, addr, l.exempt)
				if cause := context.Cause(one); err != nil && cause == os.ErrDeadlineExceeded {
					err = cause
				}
				select {
				case results <- result{nc, addr, err}:
				case <-ctx.Done():
					if nc != nil {
						nc.Close()
					}
				}
			}()
		case r := <-results:
			running--
			if r.err == nil {
				return r.nc, r.addr, nil
			}
			failed[r.addr] = true
			pending = slices.DeleteFunc(pending, func(a attempt) bool { return a.addr == r.addr })
			if firstErr.err == nil || IsNoNetwork(firstErr.addr, firstErr.err) && !IsNoNetwork(r.addr, r.err) {
				firstErr = r
			}
			timer.Reset(0)
		case <-ctx.Done():
			silent := slices.IndexFunc(addrs, func(a netip.AddrPort) bool { return !failed[a] })
			return nil, addrs[max(silent, 0)], context.Cause(ctx)
		}
	}
	return nil, firstErr.addr, firstErr.err
}

// IsNoNetwork reports whether err, from a connect to addr, says that this machine has no network of the
// address's family, or lost it. Linux without IPv6 addresses has no local address for a connect either.
func IsNoNetwork(addr netip.AddrPort, err error) bool {
	for _, no := range []error{syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT} {
		if errors.Is(err, no) {
			return true
		}
	}
	return addr.Addr().Is6() && errors.Is(err, syscall.EADDRNOTAVAIL)
}

// Reach opens and closes a connection to t without sending a request: to the given address, or through
// the proxy, which is asked for the connection unless it forwards requests to t itself.
func (d *Dialer) Reach(ctx context.Context, t http1.Target, addr netip.AddrPort) error {
	var l Location
	var err error
	if d.proxy == nil {
		_, _, l.Route, l.exempt = d.redirected(t)
		l.dial = []netip.AddrPort{addr}
	} else if l, err = d.Locate(ctx, t); err != nil {
		return err
	}
	nc, _, err := d.reach(ctx, l)
	if err != nil {
		return err
	}
	return nc.Close()
}

// dialOne opens one TCP connection. The guard has already checked addr, unless it is exempt. As a
// second safeguard, the guard checks the address again when the system connects.
func (d *Dialer) dialOne(ctx context.Context, addr netip.AddrPort, exempt bool) (net.Conn, error) {
	if d.Dial != nil {
		return d.Dial(ctx, addr)
	}
	dialer := net.Dialer{KeepAlive: -1} // the pool checks idle connections before use
	if !exempt {
		dialer.Control = d.Guard.Control
	}
	nc, err := dialer.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
			err = op.Err // the Error of the caller already names the address
		}
		return nil, err
	}
	return nc, nil
}
