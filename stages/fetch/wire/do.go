package wire

import (
	"context"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/buffers"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/coding"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// Do makes one request and reads its response to the end or to a limit. The Exchange is never nil,
// and the caller releases it. The error is nil or an *Error. If a body breaks off, Do returns no
// error but sets Truncated. Do is safe for concurrent use.
func (c *Client) Do(ctx context.Context, req *Request) (*Exchange, error) {
	begin := c.cfg.Now()
	x := &Exchange{}
	err := c.do(ctx, req, x)
	x.Timing.Total = c.cfg.Now().Sub(begin)
	return x, err
}

func (c *Client) do(ctx context.Context, req *Request, x *Exchange) error {
	t, err := http1.ParseTarget(req.URL)
	if err != nil {
		return &Error{Kind: ErrInvalid, Phase: PhaseRequest, Err: err}
	}
	if err := req.validate(); err != nil {
		return &Error{Kind: ErrInvalid, Phase: PhaseRequest, Host: t.Origin(), Err: err}
	}
	timeout, maxBody := req.appliedLimits(&c.cfg)
	e := &exchanger{client: c, req: req, target: t, x: x, deadline: time.Now().Add(timeout), maxBody: maxBody}
	if k := c.idle.Take(t.Origin()); k != nil {
		err = e.run(ctx, k)
		if !errors.Is(err, errStale) {
			return err
		}
		// The server closed the kept connection without a response, as it may do at any time (RFC
		// 9112, 9.3.1).
		e.retry = true
	}
	k, err := e.connect(ctx)
	if err != nil {
		return err
	}
	return e.run(ctx, k)
}

// errStale means that a kept connection ended before the first byte of a response.
var errStale = errors.New("kept connection closed by the server")

// exchanger is the state of one call of Do.
type exchanger struct {
	client   *Client
	req      *Request
	target   http1.Target
	x        *Exchange
	deadline time.Time // deadline of the exchange, by the system's clock
	maxBody  int64     // limit of the body in bytes; Request.Allow may raise it
	retry    bool      // whether a kept connection ended before a response
}

// connect makes a new connection within the remaining time.
func (e *exchanger) connect(ctx context.Context) (*dial.Conn, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, e.deadlineIn(e.client.cfg.Timeouts.Connect), errTimedOut)
	defer cancel()
	k, a, err := e.client.dialer.Connect(ctx, e.target)
	x := e.x
	x.Route, x.Timing.DNS, x.Timing.Connect, x.Timing.TLS = a.Route, a.DNS, a.Connect, a.TLS
	if a.Addr.IsValid() {
		x.Addr = a.Addr
	}
	if err != nil {
		return nil, connectError(ctx, e.target, err)
	}
	return k, nil
}

// run sends the request on k and reads the response. It then keeps or closes k.
func (e *exchanger) run(ctx context.Context, k *dial.Conn) error {
	x := e.x
	x.Peer = k.Peer
	stop := context.AfterFunc(ctx, k.Abort)
	keep, err := e.exchange(ctx, k)
	if !stop() || !keep || err != nil {
		k.Close()
		return err
	}
	x.KeptAlive = e.client.idle.Put(k, e.idleTime())
	if !x.KeptAlive {
		k.Close()
	}
	return nil
}

// exchange sends the request on k and reads the response. keep tells whether k may serve another
// exchange.
func (e *exchanger) exchange(ctx context.Context, k *dial.Conn) (keep bool, err error) {
	if ctx.Err() != nil {
		return false, e.fail(ErrAborted, PhaseRequest, context.Cause(ctx))
	}
	werr, err := e.send(ctx, k)
	if err != nil {
		return false, err
	}
	r := http1.NewReader(k, &e.x.Response)
	defer func() {
		e.x.BytesIn += r.BytesRead()
		r.Release()
	}()
	// A server may respond and close the connection before it has read the whole request. The
	// client therefore reads the response even if the write failed.
	rerr := r.Await()
	if rerr != nil {
		if k.Reused && ctx.Err() == nil && !http1.IsTimeout(rerr) {
			return false, errStale
		}
		if werr != nil {
			rerr = werr
		}
		return false, e.ioError(ctx, PhaseFirstByte, rerr)
	}
	e.x.Timing.FirstByte = max(e.client.cfg.Now().Sub(e.x.Start), 1)
	k.Limit(e.deadline)
	return e.receive(ctx, k, r)
}

// send writes the request. err ends the exchange. failed means that the write failed but a response
// may still arrive.
func (e *exchanger) send(ctx context.Context, k *dial.Conn) (failed, err error) {
	c, x := e.client, e.x
	head := http1.Request{Method: e.req.method(), Target: e.target, UserAgent: c.cfg.UserAgent, Header: e.req.Header, Absolute: k.Absolute()}
	if len(e.req.Private) > 0 && k.Certificate == "" {
		head.Header = slices.Concat(head.Header, e.req.Private)
	}
	buffers.Put(x.RawRequest)
	x.RawRequest = head.AppendTo(buffers.Get(1))

	x.Start = c.cfg.Now()
	if e.req.OnWrite != nil {
		if err := e.req.OnWrite(Write{At: x.Start, Addr: k.Addr, Route: k.Route, Reused: k.Reused, Retry: e.retry}); err != nil {
			x.Start = time.Time{}
			return nil, e.fail(ErrAborted, PhaseWrite, err)
		}
	}
	k.Limit(e.deadlineIn(c.cfg.Timeouts.FirstByte))
	n, failed := k.WriteRequest(x.RawRequest)
	x.BytesOut += int64(n)
	if e.req.OnWritten != nil && failed == nil {
		e.req.OnWritten(c.cfg.Now())
	}
	if failed != nil && (http1.IsTimeout(failed) || ctx.Err() != nil) {
		return failed, e.ioError(ctx, PhaseWrite, failed)
	}
	return failed, nil
}

// receive reads the response into the exchange, after its first byte has arrived.
func (e *exchanger) receive(ctx context.Context, k *dial.Conn, r *http1.Reader) (keep bool, err error) {
	x := e.x
	x.share = &share{memory: e.client.memory}
	r.Method, r.HTTPS = e.req.method(), e.target.HTTPS
	r.MaxHeader, r.MaxBody, r.Deadline = maxHeader, e.maxBody, e.deadline
	r.Grow = func(bytes int64) error { return e.grow(ctx, bytes) }
	r.Wait = func(d time.Duration) {
		switch wasCut, _ := x.share.state(); {
		case wasCut:
		case d == 0:
			k.Limit(e.deadline)
		default:
			k.Limit(e.deadlineIn(d))
		}
	}
	if e.req.OnPrefix != nil {
		r.OnPrefix = func() bool { return e.testPrefix(r) }
	}
	untold := e.client.dialer.Untold(e.target)
	err = r.ReadHead()
	if repeated := untold.Check(x.RawHead); repeated != nil {
		return false, e.forget(ctx, PhaseHead, repeated)
	}
	if err != nil {
		return false, e.ioError(ctx, PhaseHead, untold.Error(err))
	}
	if e.req.OnHead != nil && !e.req.OnHead(x) {
		r.SkipBody()
	} else {
		x.share.setCut(k.Interrupt)
		err = r.ReadBody()
		x.share.setCut(nil)
	}
	if failed := e.checkBody(ctx, r, err); failed != nil {
		return false, failed
	}
	x.PayloadDigest = digest(x.Payload)
	if x.Filtered {
		x.BodyTruncated = x.Truncated
	} else if err := e.decode(ctx, r.MaxBody); err != nil {
		return false, e.fail(ErrAborted, PhaseBody, err)
	}
	if err := untold.Check(append(slices.Collect(x.RawParts), x.Payload, x.Body)...); err != nil {
		return false, e.forget(ctx, PhaseBody, err)
	}
	if r.Definite() && r.Unread() {
		x.Warn(http1.WarnBodyUnexpected)
	}
	return err == nil && r.Persistent(), nil
}

// testPrefix passes the beginning of the body to the request's callbacks.
func (e *exchanger) testPrefix(r *http1.Reader) bool {
	var b []byte
	var pooled bool
	e.client.decoding(func() { b, pooled = coding.Prefix(&e.x.Response) })
	if pooled {
		defer buffers.Put(b)
	}
	first := b[:min(len(b), http1.PrefixLen)]
	ok := e.req.OnPrefix(e.x, first)
	if ok && e.req.Allow != nil {
		r.MaxBody = max(r.MaxBody, e.req.Allow(e.x, first))
	}
	return ok
}

// checkBody returns an error if the exchange fails. err is the error with which reading of the body
// ended. If the client itself stopped reading to free memory, checkBody marks the body as truncated
// by time.
func (e *exchanger) checkBody(ctx context.Context, r *http1.Reader, err error) error {
	x := e.x
	if ctx.Err() != nil {
		return e.fail(ErrAborted, PhaseBody, context.Cause(ctx))
	}
	if errors.Is(err, ErrNoRoom) {
		return e.fail(ErrAborted, PhaseBody, err)
	}
	switch wasCut, waited := x.share.state(); {
	case wasCut && !r.Definite() && x.Truncated == http1.Complete:
		x.Truncated = http1.TruncTime // to the reader, this looks like the end of the connection
	case !wasCut && waited > maxUnblamedWait && x.Truncated == http1.TruncTime:
		return e.fail(ErrAborted, PhaseBody, ErrNoRoom) // waiting for memory used up part of the time limit
	}
	return nil
}

// decode undoes the codings of the body. It first waits for the memory that the body will probably
// need. If it does not get enough memory, it returns an error.
func (e *exchanger) decode(ctx context.Context, maxBody int64) error {
	x := e.x
	held := x.BodyMemory()
	warnings := len(x.Warnings)
	for tried := coding.Likely(&x.Response, maxBody); ; tried = maxBody {
		if err := e.grow(ctx, held+int64(buffers.Size(int(tried)))); err != nil {
			return err
		}
		x.Warnings = x.Warnings[:warnings]
		var cut bool
		e.client.decoding(func() { cut = x.Decode(&x.Response, tried) })
		if !cut || tried == maxBody {
			break
		}
	}
	if len(x.Codings) > 0 {
		held += int64(cap(x.Body))
	}
	x.share.shrink(held)
	return nil
}

// decoding calls f while it holds a token. The tokens limit the decoders in memory. A goroutine with a
// token never waits, and returns it even if it panics.
func (c *Client) decoding(f func()) {
	c.decode <- struct{}{}
	defer func() { <-c.decode }()
	f()
}

// grow reserves memory, so that the response may have the given number of bytes in total. It waits for
// the memory until the exchange's deadline.
func (e *exchanger) grow(ctx context.Context, bytes int64) error {
	if bytes <= http1.OwnMemory {
		return nil
	}
	return e.client.memory.grow(ctx, e.x.share, bytes, e.deadline)
}

// deadlineIn returns the time that is d from now, or the exchange's deadline if that is sooner.
func (e *exchanger) deadlineIn(d time.Duration) time.Time {
	if t := time.Now().Add(d); t.Before(e.deadline) {
		return t
	}
	return e.deadline
}

// forget drops the response, and returns an error.
func (e *exchanger) forget(ctx context.Context, phase Phase, err error) error {
	x := e.x
	x.Decoded.Release()
	x.Response.Release()
	x.Decoded, x.Response, x.PayloadDigest = coding.Decoded{}, http1.Response{}, ""
	return e.ioError(ctx, phase, err)
}

// ioError classifies a failure between the connect and the end of the head.
func (e *exchanger) ioError(ctx context.Context, phase Phase, err error) error {
	if ctx.Err() != nil {
		return e.fail(ErrAborted, phase, context.Cause(ctx))
	}
	if _, ok := errors.AsType[http1.ProtocolError](err); ok {
		return e.fail(ErrProtocol, phase, err)
	}
	if http1.IsTimeout(err) {
		return e.fail(ErrTimeout, phase, nil)
	}
	if err == io.EOF {
		err = nil
	}
	return e.fail(ErrDisconnect, phase, err)
}

func (e *exchanger) fail(kind error, phase Phase, err error) error {
	return &Error{Kind: kind, Phase: phase, Host: e.target.Origin(), Addr: e.x.Addr, Err: err}
}

// idleTime returns how long the idle connection may be kept: a second less than the server allows,
// and at most idleTimeout.
func (e *exchanger) idleTime() time.Duration {
	d := idleTimeout
	for t := range e.x.Header.Tokens("Keep-Alive") {
		name, v, _ := strings.Cut(t, "=")
		if n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 16); err == nil && strings.EqualFold(strings.TrimSpace(name), "timeout") {
			d = min(d, max(time.Duration(n)*time.Second-time.Second, 0))
		}
	}
	return d
}

// digest returns the SHA-1 of b in the form that WARC uses.
func digest(b []byte) string {
	sum := sha1.Sum(b)
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}
