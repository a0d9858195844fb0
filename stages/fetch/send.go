package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// Why a request was not written, or not again. These errors end no URL.
var (
	errLapsed        = errors.New("the task's right to fetch has lapsed")
	errStale         = errors.New("the kept connection was closed by the server as the request was sent")
	errAddressNotDue = errors.New("its address is not due")
)

// ask is a request to make.
type ask struct {
	purpose    schema.Purpose
	url        string
	plannedURL string
	rule       string             // of robots.txt that allows it
	robots     *robotscache.Rules // in force; nil: the request is for robots.txt
	attempt    int32
	header     http1.Header
	known      *segments.Payload // that the URL had; header asks for a newer one, if any
	onHead     func(x *wire.Exchange) bool
	onPrefix   func(x *wire.Exchange, prefix []byte) bool
	allow      func(x *wire.Exchange, prefix []byte) int64
}

// sent is a request that was made or tried. Release its exchange.
type sent struct {
	x          *wire.Exchange
	err        error
	at         time.Time // when it was written; zero: it was not
	row        schema.Request
	retryAfter time.Duration     // of the response; 0: none
	retryMS    *int64            // the same for the row; nil: none
	redirect   string            // canonical target of a redirect
	known      *segments.Payload // that the URL had; nil: none that a revisit may refer to
	condition  bool              // the request asked for a newer payload only
}

// notModified reports whether the server says that the URL still has the known payload.
func (s *sent) notModified() bool {
	return s.err == nil && s.x.Status == http.StatusNotModified && s.condition && s.known != nil
}

// recorded reports whether the request is a row of requests: it was written, or no
// connection could be made for it.
func (s *sent) recorded() bool {
	if !s.at.IsZero() {
		return true
	}
	switch response.OfError(s.err).Outcome {
	case schema.DNSError, schema.ConnectError, schema.TLSError, schema.Timeout:
		return s.err != nil && !s.aborted()
	}
	return false
}

// aborted reports whether the task itself ended the request, so that it is made again.
func (s *sent) aborted() bool { return errors.Is(s.err, wire.ErrAborted) }

// send makes one request with a grant.
func (f *fetcher) send(ctx context.Context, g *polite.Grant, a ask) *sent {
	s := &sent{known: a.known, condition: a.known != nil && len(a.header) > 0}
	row := &s.row
	*row = schema.Request{
		Purpose: a.purpose, URL: a.url, PlannedURL: a.plannedURL, Host: g.Host, DelayMS: g.Delay.Milliseconds(),
		RobotsRule: a.rule, Attempt: a.attempt, Epoch: int32(f.epoch),
	}
	begun := f.clock.Now()
	row.Start, row.QueueMS = begun.UnixMilli(), max(begun.Sub(g.Due), 0).Milliseconds() // until it is written
	if k := a.robots; k != nil {
		row.RobotsDigest = k.Digest
		row.RobotsFile, row.RobotsOffset, row.RobotsLength = k.Record.File, k.Record.Offset, k.Record.Length
	}
	looked, met := f.meet(ctx, g, a.url)
	if !met {
		s.x, s.err = &wire.Exchange{}, fmt.Errorf("%w: %w", wire.ErrAborted, errAddressNotDue)
		return s
	}
	req := &wire.Request{URL: a.url, Header: a.header, OnHead: a.onHead, OnPrefix: a.onPrefix, Allow: a.allow}
	if a.purpose == schema.ForRobots {
		// One byte more than is read shows that a file is longer.
		req.Timeout, req.MaxBody = f.cfg.RobotsTimeout, robots.MaxBytes+1
	}
	req.OnWrite = func(w wire.Write) error {
		now, pace, err := f.permit(ctx, g, w)
		if err != nil {
			return err
		}
		s.at = now
		row.Start, row.DelayMS = now.UnixMilli(), pace.Delay.Milliseconds()
		row.QueueMS = max(now.Sub(g.Due), 0).Milliseconds()
		if !pace.First {
			ms := pace.Gap.Milliseconds()
			row.GapMS = &ms
		}
		return nil
	}
	req.OnWritten = func(time.Time) { g.Sent(f.clock.Now()) }
	f.progress.Add(stages.CountFlights, 1)
	s.x, s.err = f.client.Do(ctx, req)
	f.progress.Add(stages.CountFlights, -1)
	f.describe(s, begun, looked)
	return s
}

// permit decides whether a request may be written now: its address is due, its flight is
// not aborted, the task has the right to fetch, and its host is due. It returns the time of
// writing and the pace that the request keeps.
func (f *fetcher) permit(ctx context.Context, g *polite.Grant, w wire.Write) (now time.Time, pace polite.Pace, err error) {
	if w.Retry {
		return now, pace, errStale // writing it again has to wait for the host's delay
	}
	addr := f.pacedAddress(w)
	if d := g.Clear(addr); d > 0 {
		if err := f.clock.Sleep(ctx, d); err != nil {
			return now, pace, err
		}
	}
	if err := ctx.Err(); err != nil {
		return now, pace, err
	}
	now = f.clock.Now()
	if !f.gate.mayWrite(now) {
		return now, pace, errLapsed
	}
	pace, err = g.Written(now, addr)
	return now, pace, err
}

// meet resolves a host whose address is not known yet and reports whether the address is
// due. If not, the grant goes back: hosts that share an address wait for it without a slot
// or a connection. looked is how long the name took to resolve.
func (f *fetcher) meet(ctx context.Context, g *polite.Grant, url string) (looked time.Duration, met bool) {
	if g.HasAddress() {
		return 0, true
	}
	addrs, route, looked, err := f.client.Locate(ctx, url)
	if err != nil || len(addrs) == 0 {
		return looked, true // the request will fail the same way and say why
	}
	return looked, g.Meet(f.pacedAddress(wire.Write{Addr: addrs[0], Route: route}))
}

// pacedAddress is the address that a request is paced by: none if the config names the
// target (proxy, connect_to).
func (f *fetcher) pacedAddress(w wire.Write) netip.Addr {
	if w.Route == dial.RouteDirect || w.Route == dial.RouteConnectTo && f.cfg.PaceConnectTo {
		return w.Addr.Addr()
	}
	return netip.Addr{}
}

// describe fills the row of a request that has ended. looked is how long its name took to
// resolve ahead of the exchange.
func (f *fetcher) describe(s *sent, begun time.Time, looked time.Duration) {
	x, row := s.x, &s.row
	if x.Addr.IsValid() {
		row.Address = x.Addr.String()
	}
	row.Status = int16(x.Status)
	row.DNSMS, row.DNSUS = took(looked + x.Timing.DNS)
	row.ConnectMS, row.ConnectUS = took(x.Timing.Connect)
	row.TLSMS, row.TLSUS = took(x.Timing.TLS)
	row.FirstByteMS, row.FirstByteUS = took(x.Timing.FirstByte)
	if !s.at.IsZero() {
		begun = s.at
	}
	total := f.clock.Now().Sub(begun)
	row.TotalMS = total.Milliseconds()
	_, row.TotalUS = took(max(total, 1))
	row.BytesSent, row.BytesReceived = x.BytesOut, x.BytesIn
	row.Warnings = response.Bounded(strings.Join(x.Warnings, "; "))
	if s.err != nil {
		why := failureOf(s.err)
		row.Error, row.ErrorDetail = response.Bounded(why.Phrase), response.Bounded(why.Detail)
		if !s.aborted() {
			outcome := response.OfError(s.err).Outcome
			row.ErrorClass = string(outcome)
			if outcome == schema.Timeout {
				f.progress.Add(stages.CountTimeouts, 1)
			}
		}
	}
	if v, ok := x.Header.Lookup("Retry-After"); ok {
		if d, ok := polite.ParseRetryAfter(v, f.clock.Now()); ok {
			ms := d.Milliseconds()
			s.retryAfter, s.retryMS = d, &ms
		}
	}
	if s.at.IsZero() {
		return
	}
	f.progress.Add(stages.CountRequests, 1)
	f.progress.Add(stages.CountBytes, x.BytesIn)
	if x.Status != 0 {
		f.progress.Add(answerCount(x.Status), 1)
	}
}

// took is how long a phase took, in milliseconds and in microseconds; nil if it did not
// happen.
func took(d time.Duration) (ms, us *int64) {
	if d <= 0 {
		return nil, nil
	}
	both := [...]int64{d.Milliseconds(), d.Microseconds()}
	return &both[0], &both[1]
}

// how tells people how the request failed.
func (s *sent) how(outcome schema.Outcome) string {
	if s.err != nil {
		return status.How(0, false, outcome)
	}
	return status.How(s.x.Status, s.retryAfter > 0, outcome)
}

// phrases are the words for requests that the task itself ended.
var phrases = []struct {
	is     error
	phrase string
}{
	{errLapsed, "right to fetch lapsed"},
	{errStale, "kept connection was closed"},
	{polite.ErrNotDue, "host not due any more"},
	{wire.ErrNoRoom, "no memory for the body"},
	{errAddressNotDue, "address not due"},
	{context.Canceled, "task stopped"},
}

// failureOf puts the error of a request into words.
func failureOf(err error) response.Failure {
	var e *wire.Error
	switch {
	case err == nil:
		return response.Failure{}
	case errors.Is(err, wire.ErrAborted):
		for _, p := range phrases {
			if errors.Is(err, p.is) {
				return response.Failure{Phrase: "broken off: " + p.phrase}
			}
		}
		return response.Failure{Phrase: "broken off", Detail: err.Error()}
	case errors.As(err, &e):
		phrase, detail := e.Words()
		return response.Failure{Phrase: phrase, Detail: detail}
	}
	return response.Failure{Phrase: "internal error", Detail: err.Error()}
}
