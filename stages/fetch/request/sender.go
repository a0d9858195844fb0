// Package request makes the requests of a fetch task at the pace of their hosts and
// describes each as a row.
//
// Each request uses a grant for its host. Before the connect, Sender checks that the address is
// due. Right before the write, Sender checks host, address and lease again.
package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/challenge"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// ErrOurs means that this machine or its network was the cause of a failed request.
var ErrOurs = errors.New("this machine or its network failed")

// These errors say why a request was not written, or was not written again. The URL is requested
// again later.
var (
	errLapsed        = errors.New("the task's right to fetch has lapsed")
	errStale         = errors.New("the server closed the kept connection while the request was sent")
	errAddressNotDue = errors.New("its address is not due")
)

// Ask is the request that Send makes.
type Ask struct {
	Purpose    schema.Purpose
	URL        string             // canonical URL
	Sent       string             // URL to send, if it is another
	PlannedURL string             // planned URL that led to this request; "" if there is none
	RobotsFor  string             // URL of the robots.txt whose redirects led to this request; "" if there is none
	Rule       string             // line of robots.txt that allows the request
	Robots     *robotscache.Rules // robots rules that apply; nil in a request for robots.txt
	Attempt    int32              // number of the request among those for this URL, from 1
	Header     http1.Header
	Private    http1.Header      // fields for a server with a valid certificate only (wire.Request)
	Known      *segments.Payload // last known payload of the URL, or nil; if set, Header may make the request conditional
	// For the functions, see wire.Request.
	OnHead   func(x *wire.Exchange) bool
	OnPrefix func(x *wire.Exchange, prefix []byte) bool
	Allow    func(x *wire.Exchange, prefix []byte) int64
}

// Carry adds the cookies of a redirect chain that belong to the request.
func (a *Ask) Carry(c *response.Cookies) {
	field := c.Field(cmp.Or(a.Sent, a.URL))
	switch {
	case field == "":
	case c.Private():
		a.Private = append(a.Private, http1.Field{Name: "Cookie", Value: field})
	default:
		a.Header = append(a.Header, http1.Field{Name: "Cookie", Value: field})
	}
}

// Sender makes requests. It is safe for concurrent use.
type Sender struct {
	Client        *wire.Client
	Clock         stages.Clock
	Log           *slog.Logger
	Progress      stages.Progress
	MayWrite      func(now time.Time) bool // reports whether a request may be written now; called before each write
	RobotsTimeout time.Duration            // time limit of a request for robots.txt; 0 means the same limit as for other requests
	PaceConnectTo bool                     // whether the delay per address applies to connect_to targets
	NAT64         nat64.Prefixes           // prefixes of the network's NAT64
	Epoch         int                      // epoch of the attempt, for rows
	Witness       *witness.Witness         // judges requests without an answer; nil blames the host for each
	Fail          func(error)              // ends the task; called if Witness waited in vain
	Stopping      context.Context          // ends when the task may request nothing more: then nothing waits for the network
	Barred        func(url string) bool    // reports whether a URL must not be requested, for the choice of witnesses

	received atomic.Int64 // see Received
	noTunnel sync.Once    // logs only the first refusal of CONNECT for plain http
}

// Received returns the number of bytes that all requests so far received.
func (r *Sender) Received() int64 { return r.received.Load() }

// Sent is a request that was made or tried. The caller releases Exchange.
type Sent struct {
	Exchange   *wire.Exchange // never nil
	Err        error
	At         time.Time // when the request was written; zero if the request was not written
	Row        schema.Request
	RetryAfter time.Duration     // Retry-After of the response; 0 if there is none
	RetryMS    *int64            // RetryAfter in milliseconds, for the row; nil if there is none
	Service    string            // service in front of the site that refused the request by its response; "" if none did
	Redirect   string            // canonical target of a redirect; set by the caller
	Known      *segments.Payload // last known payload of the URL; nil if a revisit must not refer to it
	condition  bool              // whether the request was conditional
}

// NotModified reports whether the server answered that the known payload is still current.
func (s *Sent) NotModified() bool {
	return s.Err == nil && s.Exchange.Status == http.StatusNotModified && s.condition && s.Known != nil
}

// ConditionRefused reports whether the same request may bring a document if it has no condition.
func (s *Sent) ConditionRefused() bool {
	return s.Err == nil && s.condition && s.RetryAfter == 0 && response.RefusesCondition(s.Exchange.Status)
}

// Recorded reports whether the request is recorded as a row: it was written, or the look-up of its
// host or its connection failed.
func (s *Sent) Recorded() bool {
	if !s.At.IsZero() {
		return true
	}
	switch response.OfError(s.Err).Outcome {
	case schema.DNSError, schema.ConnectError, schema.TLSError, schema.Timeout:
		return s.Err != nil && !s.Aborted()
	}
	return false
}

// Aborted reports whether the task itself aborted the request. Such a request is repeated later.
func (s *Sent) Aborted() bool { return errors.Is(s.Err, wire.ErrAborted) }

// Send uses a grant to make one request.
func (r *Sender) Send(ctx context.Context, g *polite.Grant, a Ask) *Sent {
	s := &Sent{Known: a.Known, condition: a.Known != nil && len(a.Header) > 0}
	row := &s.Row
	*row = schema.Request{
		Purpose: a.Purpose, URL: a.URL, Sent: a.Sent, PlannedURL: a.PlannedURL, RobotsFor: a.RobotsFor, Host: g.Host, DelayMS: g.Delay.Milliseconds(),
		RobotsRule: a.Rule, Attempt: a.Attempt, Epoch: int32(r.Epoch),
	}
	begun := r.Clock.Now()
	row.Start, row.QueueMS = schema.TimeOf(begun), max(begun.Sub(g.Due), 0).Milliseconds() // these values remain if the request is never written
	if k := a.Robots; k != nil {
		row.RobotsDigest = k.Digest
		row.RobotsFile, row.RobotsOffset, row.RobotsLength = k.Record.File, k.Record.Offset, k.Record.Length
	}
	looked, due := r.lookUpDue(ctx, g, a.URL)
	if !due {
		s.Exchange, s.Err = &wire.Exchange{}, fmt.Errorf("%w: %w", wire.ErrAborted, errAddressNotDue)
		return s
	}
	req := &wire.Request{URL: cmp.Or(a.Sent, a.URL), Header: a.Header, Private: a.Private, OnHead: a.OnHead, OnPrefix: a.OnPrefix, Allow: a.Allow}
	if a.Purpose == schema.ForRobots {
		// One byte more than is parsed shows whether the file is longer.
		req.Timeout, req.MaxBody = r.RobotsTimeout, robots.MaxBytes+1
	}
	req.OnWrite = func(w wire.Write) error {
		now, pace, err := r.permit(ctx, g, w)
		if err != nil {
			return err
		}
		s.At = now
		row.Start, row.DelayMS = schema.TimeOf(now), pace.Delay.Milliseconds()
		row.QueueMS = max(now.Sub(g.Due), 0).Milliseconds()
		if !pace.First {
			ms := pace.Gap.Milliseconds()
			row.GapMS = &ms
		}
		return nil
	}
	req.OnWritten = func(time.Time) { g.Sent(r.Clock.Now()) }
	r.Progress.Add(stages.CountFlights, 1)
	s.Exchange, s.Err = r.Client.Do(ctx, req)
	r.Progress.Add(stages.CountFlights, -1)
	ended := r.Clock.Now()
	r.judge(ctx, g, s, begun, ended)
	r.describe(s, begun, ended, looked)
	return s
}

// permit returns nil if a request may be written now: its address and host are due, ctx has not
// ended, and the task holds the lease. It also returns the time of writing and the pace of the
// request. If its address is due soon, permit waits.
func (r *Sender) permit(ctx context.Context, g *polite.Grant, w wire.Write) (now time.Time, pace polite.Pace, err error) {
	if w.Retry {
		return now, pace, errStale // wire would write the request again immediately, but the host's delay applies
	}
	addr := r.pacedAddress(w)
	if d := g.Clear(addr); d > 0 {
		if err := r.Clock.Sleep(ctx, d); err != nil {
			return now, pace, err
		}
	}
	if err := ctx.Err(); err != nil {
		return now, pace, err
	}
	now = r.Clock.Now()
	if !r.MayWrite(now) {
		return now, pace, errLapsed
	}
	pace, err = g.Written(now, addr)
	return now, pace, err
}

// lookUpDue reports whether the host's address is due. It looks the address up if it is unknown. If
// the address is not due, the caller puts the request off, so that the host waits without a slot or
// a connection. looked is the duration of the look-up.
func (r *Sender) lookUpDue(ctx context.Context, g *polite.Grant, url string) (looked time.Duration, due bool) {
	if g.HasAddress() {
		return 0, true
	}
	addrs, route, looked, err := r.Client.Locate(ctx, url)
	if err != nil || len(addrs) == 0 {
		return looked, true // the request itself will report this error
	}
	return looked, g.Meet(r.pacedAddress(wire.Write{Addr: addrs[0], Route: route}))
}

// pacedAddress returns the address whose delay applies to a request. For an address from the config
// (proxy, connect_to), it returns the invalid address, which has no delay. A server that is reached both over
// IPv4 and through NAT64 has one delay.
func (r *Sender) pacedAddress(w wire.Write) netip.Addr {
	if w.Route != dial.RouteDirect && !(w.Route == dial.RouteConnectTo && r.PaceConnectTo) {
		return netip.Addr{}
	}
	if v4, ok := r.NAT64.Embedded(w.Addr.Addr()); ok {
		return v4
	}
	return w.Addr.Addr()
}

// describe fills the row of a request that has ended. looked is the duration of a look-up before the
// exchange.
func (r *Sender) describe(s *Sent, begun, ended time.Time, looked time.Duration) {
	x, row := s.Exchange, &s.Row
	if x.Addr.IsValid() {
		row.Address = x.Addr.String()
	}
	row.Status = int16(x.Status)
	row.DNSMS, row.DNSUS = phaseTimes(looked + x.Timing.DNS)
	row.ConnectMS, row.ConnectUS = phaseTimes(x.Timing.Connect)
	row.TLSMS, row.TLSUS = phaseTimes(x.Timing.TLS)
	row.FirstByteMS, row.FirstByteUS = phaseTimes(x.Timing.FirstByte)
	if !s.At.IsZero() {
		begun = s.At
	}
	total := ended.Sub(begun)
	row.TotalMS = total.Milliseconds()
	_, row.TotalUS = phaseTimes(max(total, 1))
	row.BytesSent, row.BytesReceived = x.BytesOut, x.BytesIn
	row.Certificate = x.Certificate
	if s.Err == nil {
		if s.Service = challenge.Service(x.Status, x.Header, x.Body); s.Service != "" {
			why := response.RefusedBy(s.Service)
			row.Error, row.ErrorDetail, row.ErrorClass = why.Phrase, why.Detail, string(schema.Blocked)
		}
	}
	row.Warnings = response.Bounded(strings.Join(x.Warnings, "; "))
	if s.Err != nil {
		why := s.Failure()
		row.Error, row.ErrorDetail = response.Bounded(why.Phrase), response.Bounded(why.Detail)
		if errors.Is(s.Err, dial.ErrNoTunnel) {
			r.noTunnel.Do(func() { r.Log.Warn("the proxy refuses connections for plain http", "error", s.Err) })
		}
		if !s.Aborted() {
			outcome := response.OfError(s.Err).Outcome
			row.ErrorClass = string(outcome)
			if outcome == schema.Timeout {
				r.Progress.Add(stages.CountTimeouts, 1)
			}
		}
	}
	if v, ok := x.Header.Lookup("Retry-After"); ok {
		if d, ok := polite.ParseRetryAfter(v, r.Clock.Now()); ok {
			ms := d.Milliseconds()
			s.RetryAfter, s.RetryMS = d, &ms
		}
	}
	if s.At.IsZero() {
		return
	}
	r.Progress.Add(stages.CountRequests, 1)
	r.Progress.Add(stages.CountBytes, x.BytesIn)
	r.received.Add(x.BytesIn)
	r.Progress.Add(stages.CountTook, row.TotalMS)
	if x.Status != 0 {
		r.Progress.Add(answerCount(x.Status), 1)
	}
}

// phaseTimes returns a duration in milliseconds and in microseconds. It returns nil if d is 0,
// which means that there was no such phase.
func phaseTimes(d time.Duration) (ms, us *int64) {
	if d <= 0 {
		return nil, nil
	}
	both := [...]int64{d.Milliseconds(), d.Microseconds()}
	return &both[0], &both[1]
}

// How describes the failure of the request for people.
func (s *Sent) How(outcome schema.Outcome) string {
	if s.Err != nil {
		return status.How(0, false, outcome)
	}
	return status.How(s.Exchange.Status, s.RetryAfter > 0, outcome)
}

// phrases lists the errors with which the task itself aborts a request, and a phrase for each.
var phrases = []struct {
	is     error
	phrase string
}{
	{ErrOurs, "this machine or its network failed"},
	{errLapsed, "right to fetch lapsed"},
	{errStale, "kept connection was closed"},
	{polite.ErrNotDue, "host not due any more"},
	{wire.ErrNoRoom, "no memory for the body"},
	{errAddressNotDue, "address not due"},
	{context.Canceled, "task stopped"},
}

// Failure returns the error of the request in words.
func (s *Sent) Failure() response.Failure {
	var e *wire.Error
	switch err := s.Err; {
	case err == nil:
		return response.Failure{}
	case errors.Is(err, wire.ErrAborted):
		for _, p := range phrases {
			if errors.Is(err, p.is) {
				why := response.Failure{Phrase: "broken off: " + p.phrase}
				if errors.As(err, &e) && p.is == ErrOurs {
					why.Detail = e.Error()
				}
				return why
			}
		}
		return response.Failure{Phrase: "broken off", Detail: err.Error()}
	case errors.As(err, &e):
		phrase, detail := e.Words()
		return response.Failure{Phrase: phrase, Detail: detail}
	}
	return response.Failure{Phrase: "internal error", Detail: s.Err.Error()}
}

// answerCount returns the name of the progress count of responses with a status.
func answerCount(status int) string {
	var b [len(stages.CountAnswers) + 3]byte
	return string(strconv.AppendInt(append(b[:0], stages.CountAnswers...), int64(status), 10))
}
