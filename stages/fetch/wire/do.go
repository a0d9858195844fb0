package wire

import (
	"context"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// Do makes one request and reads its response to the end, or to a limit. The
// Exchange is never nil; Release it. The error is nil or an *Error; a response
// whose body breaks off is no error but Truncated. Do may be called by any
// number of goroutines.
func (c *Client) Do(ctx context.Context, req *Request) (*Exchange, error) {
	begin := c.cfg.Now()
	x := &Exchange{}
	err := c.do(ctx, req, x)
	x.Timing.Total = c.cfg.Now().Sub(begin)
	return x, err
}

func (c *Client) do(ctx context.Context, req *Request, x *Exchange) error {
	t, err := parseTarget(req.URL)
	if err != nil {
		return &Error{Kind: ErrInvalid, Phase: PhaseRequest, Err: err}
	}
	if err := req.validate(); err != nil {
		return &Error{Kind: ErrInvalid, Phase: PhaseRequest, Host: t.origin(), Err: err}
	}
	timeout, maxBody := req.within(&c.cfg)
	e := &exchanger{client: c, req: req, target: t, x: x, deadline: time.Now().Add(timeout), maxBody: maxBody}
	k := c.idle.take(t.origin())
	if k != nil {
		k.reused = true
		err = e.run(ctx, k)
		if !errors.Is(err, errStale) {
			return err
		}
		// The server closed the connection as the request was on its way, which
		// it may do at any time (RFC 9112, 9.3.1); nothing was answered.
		e.retry = true
	}
	if k, err = e.connect(ctx); err != nil {
		return err
	}
	return e.run(ctx, k)
}

// errStale: a kept connection ended before it answered.
var errStale = errors.New("kept connection closed by the server")

// exchanger is one call of Do under way.
type exchanger struct {
	client   *Client
	req      *Request
	target   target
	x        *Exchange
	deadline time.Time // of the whole, on the system's clock
	maxBody  int64
	retry    bool
}

// connect makes a new connection within the time there is for it.
func (e *exchanger) connect(ctx context.Context) (*conn, error) {
	until := time.Now().Add(e.client.cfg.Timeouts.Connect)
	if e.deadline.Before(until) {
		until = e.deadline
	}
	ctx, cancel := context.WithDeadlineCause(ctx, until, errTimedOut)
	defer cancel()
	return e.client.connect(ctx, e.target, e.x)
}

// run writes the request on k, reads the response, and keeps or closes k.
func (e *exchanger) run(ctx context.Context, k *conn) error {
	x := e.x
	x.Addr, x.Route, x.Reused = k.addr, k.route, k.reused
	x.TLSVersion, x.TLSCipher = k.tlsVersion, k.tlsCipher
	stop := context.AfterFunc(ctx, k.abort)
	keep, err := e.exchange(ctx, k)
	k.source.rest()
	if !stop() || !keep || err != nil {
		k.Close()
		return err
	}
	k.limit(time.Time{})
	x.KeptAlive = e.client.idle.put(k, e.idleTime())
	if !x.KeptAlive {
		k.Close()
	}
	return nil
}

// exchange is the exchange on k; keep tells that k may serve another.
func (e *exchanger) exchange(ctx context.Context, k *conn) (keep bool, err error) {
	c, x := e.client, e.x
	if ctx.Err() != nil {
		return false, e.fail(k, ErrAborted, PhaseRequest, context.Cause(ctx))
	}
	wire := e.req.appendTo(getBuffer(1), e.target, c.cfg.UserAgent, k.absolute)
	x.buffers = append(x.buffers, wire)
	x.RawRequest = wire

	x.Start = c.cfg.Now()
	if e.req.OnWrite != nil {
		if err := e.req.OnWrite(Write{At: x.Start, Addr: k.addr, Route: k.route, Reused: k.reused, Retry: e.retry}); err != nil {
			x.Start = time.Time{}
			return false, e.fail(k, ErrAborted, PhaseWrite, err)
		}
	}
	k.limit(e.within(c.cfg.Timeouts.FirstByte))
	read := k.source.n
	defer func() { x.BytesIn += k.source.n - read }()
	n, werr := e.write(k, wire)
	x.BytesOut += int64(n)
	if e.req.OnWritten != nil && werr == nil {
		e.req.OnWritten(c.cfg.Now())
	}
	if werr != nil && (isTimeout(werr) || ctx.Err() != nil) {
		return false, e.ioError(ctx, k, PhaseWrite, werr)
	}
	// A server may answer and close before it has read a request that it does
	// not want: read what it said even if writing failed.
	_, rerr := k.source.peek(1)
	x.Timing.FirstByte = c.since(x.Start)
	if rerr != nil {
		x.Timing.FirstByte = 0
		if k.reused && ctx.Err() == nil && !isTimeout(rerr) {
			return false, errStale
		}
		if werr != nil {
			rerr = werr
		}
		return false, e.ioError(ctx, k, PhaseFirstByte, rerr)
	}
	k.limit(e.deadline)
	return e.receive(ctx, k)
}

// write writes the request, on a proxied connection with credentials that are
// not kept with the exchange.
func (e *exchanger) write(k *conn, b []byte) (int, error) {
	if !k.absolute || e.client.proxy.authorization == "" {
		return k.Write(b)
	}
	with := append(getBuffer(len(b)+256), b[:len(b)-2]...)
	with = append(with, "Proxy-Authorization: "...)
	with = append(with, e.client.proxy.authorization...)
	with = append(with, "\r\n\r\n"...)
	defer putBuffer(with)
	return k.Write(with)
}

// receive reads the response whose first byte has come.
func (e *exchanger) receive(ctx context.Context, k *conn) (keep bool, err error) {
	c, x := e.client, e.x
	x.hold = &holding{room: c.room}
	d := decoder{maxBody: e.maxBody, maxRatio: c.cfg.MaxRatio}
	m := &message{
		source: k.source, x: x, method: e.req.method(), https: e.target.https,
		maxHeader: c.cfg.MaxHeader, maxBody: e.maxBody,
		deadline: e.deadline, grow: func(bytes int64) error { return e.grow(ctx, bytes) },
		wait: func(d time.Duration) {
			if wasCut, _ := x.hold.state(); wasCut {
				return
			}
			if d == 0 {
				k.limit(e.deadline)
			} else {
				k.limit(e.within(d))
			}
		},
	}
	if e.req.OnPrefix != nil {
		m.onPrefix = func() bool {
			c.decode <- struct{}{}
			b, owned := d.prefix(x)
			<-c.decode
			first := b[:min(len(b), prefixLen)]
			ok := e.req.OnPrefix(x, first)
			if ok && e.req.Allow != nil {
				m.maxBody = max(m.maxBody, e.req.Allow(x, first))
				d.maxBody = m.maxBody
			}
			if owned {
				putBuffer(b)
			}
			return ok
		}
	}
	err = m.readHead()
	if x.RawHead != nil {
		x.buffers = append(x.buffers, x.RawHead)
	}
	if err != nil {
		return false, e.ioError(ctx, k, PhaseHead, err)
	}
	if e.req.OnHead != nil && !e.req.OnHead(x) {
		x.Filtered, m.definite = true, m.headEnded && m.bodyless()
		if m.headEnded && !m.definite {
			x.Truncated = TruncFiltered
		}
	} else {
		x.hold.reads(func() { k.limit(past) })
		err = m.readBody()
		x.hold.reads(nil)
	}
	for _, b := range [][]byte{x.Payload, x.framing.bytes} {
		if b != nil {
			x.buffers = append(x.buffers, b)
		}
	}
	if ctx.Err() != nil {
		return false, e.fail(k, ErrAborted, PhaseBody, context.Cause(ctx))
	}
	if errors.Is(err, ErrNoRoom) {
		return false, e.fail(k, ErrAborted, PhaseBody, err)
	}
	switch wasCut, waited := x.hold.state(); {
	case wasCut && !m.definite && x.Truncated == Complete:
		x.Truncated = TruncTime // what looks like its end is ours
	case !wasCut && waited > noWait && x.Truncated == TruncTime:
		return false, e.fail(k, ErrAborted, PhaseBody, ErrNoRoom) // the peer had less than all the time
	}
	x.PayloadDigest = digest(x.Payload)
	if x.Filtered {
		x.Body, x.BodyTruncated = nil, x.Truncated
	} else if derr := e.decode(ctx, d); derr != nil {
		return false, e.fail(k, ErrAborted, PhaseBody, derr)
	}
	if m.definite && k.source.buffered() > 0 {
		x.warn(WarnBodyUnexpected)
	}
	return err == nil && m.persistent(), nil
}

// decode undoes the codings of the body, with as much memory first as it is likely
// to need. An error says that there was none.
func (e *exchanger) decode(ctx context.Context, d decoder) error {
	x := e.x
	undo := func(d decoder) bool {
		e.client.decode <- struct{}{} // bounds the windows in memory; whoever has it waits for nobody
		defer func() { <-e.client.decode }()
		return d.body(x)
	}
	held := int64(cap(x.Payload) + cap(x.framing.bytes))
	warnings := len(x.Warnings)
	for tried := d.likely(x); ; tried = d.maxBody {
		size, _ := bufferSize(int(tried))
		if err := e.grow(ctx, held+int64(size)); err != nil {
			return err
		}
		x.Warnings = x.Warnings[:warnings]
		if cut := undo(decoder{maxBody: tried, maxRatio: d.maxRatio}); !cut || tried == d.maxBody {
			break
		}
	}
	if len(x.Codings) > 0 {
		held += int64(cap(x.Body))
	}
	x.hold.shrink(held)
	return nil
}

// grow waits for the right to hold so many bytes of a response, as long as the
// exchange has time.
func (e *exchanger) grow(ctx context.Context, bytes int64) error {
	if bytes <= ownBytes {
		return nil
	}
	return e.client.room.grow(ctx, e.x.hold, bytes, e.deadline)
}

// within is d from now, or the exchange's deadline if that is sooner.
func (e *exchanger) within(d time.Duration) time.Time {
	if t := time.Now().Add(d); t.Before(e.deadline) {
		return t
	}
	return e.deadline
}

// ioError gives a failure after connecting, and before the head was complete,
// its kind.
func (e *exchanger) ioError(ctx context.Context, k *conn, phase Phase, err error) error {
	var p protocolError
	switch {
	case ctx.Err() != nil:
		return e.fail(k, ErrAborted, phase, context.Cause(ctx))
	case errors.As(err, &p):
		return e.fail(k, ErrProtocol, phase, err)
	case isTimeout(err):
		return e.fail(k, ErrTimeout, phase, nil)
	case err == io.EOF:
		return e.fail(k, ErrDisconnect, phase, nil)
	}
	return e.fail(k, ErrDisconnect, phase, err)
}

func (e *exchanger) fail(k *conn, kind error, phase Phase, err error) error {
	return &Error{Kind: kind, Phase: phase, Host: e.target.origin(), Addr: k.addr, Err: err}
}

// persistent reports whether the connection may serve another exchange (RFC
// 9112, 9.3): both ends know where this one ended, and neither said close.
func (m *message) persistent() bool {
	if !m.definite || m.source.buffered() > 0 || m.source.err != nil {
		return false
	}
	keep := m.minor == 1
	for _, name := range []string{"Connection", "Proxy-Connection"} {
		for t := range m.x.Header.tokens(name) {
			switch {
			case strings.EqualFold(t, "close"):
				return false
			case strings.EqualFold(t, "keep-alive"):
				keep = true
			}
		}
	}
	return keep && m.x.Protocol != "HTTP/0.9" && m.x.Protocol != "ICY"
}

// idleTime is how long the connection may be kept: a second less than the
// server says, at most what is configured.
func (e *exchanger) idleTime() time.Duration {
	d := e.client.cfg.IdleTimeout
	for t := range e.x.Header.tokens("Keep-Alive") {
		name, v, _ := strings.Cut(t, "=")
		if n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 16); err == nil && strings.EqualFold(strings.TrimSpace(name), "timeout") {
			d = min(d, max(time.Duration(n)*time.Second-time.Second, 0))
		}
	}
	return d
}

// digest is a SHA-1 as WARC writes it.
func digest(b []byte) string {
	sum := sha1.Sum(b)
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}
