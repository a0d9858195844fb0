package fetch

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// A failed connection is recorded as a row of the dataset `requests`, with the class, text and time
// of the failure. The row says that no request was sent. Two hosts with the same failure have the
// same text.
func TestFailuresBeforeTheRequestAreRows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		down := map[string]struct {
			err    error
			class  schema.Outcome
			phrase string
			took   time.Duration
		}{
			"one.example":   {refused, schema.ConnectError, "connection refused", 3 * time.Millisecond},
			"two.example":   {refused, schema.ConnectError, "connection refused", 3 * time.Millisecond},
			"gone.example":  {&net.DNSError{Err: "no such host", Name: "gone.example", IsNotFound: true}, schema.DNSError, "no such host", 0},
			"lame.example":  {&net.DNSError{Err: "server misbehaving", Name: "lame.example", Server: "192.0.2.53:53"}, schema.DNSError, "name server failure", 0},
			"old.example":   {x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026 is after 2025"}, schema.ConnectError, "no connection", 3 * time.Millisecond},
			"quiet.example": {nil, schema.Timeout, "connecting timed out", 10 * time.Second},
		}
		urls := []string{"http://good.example/a", "http://good.example/b"}
		for h := range down {
			urls = append(urls, "http://"+h+"/")
		}
		l := newLab(t, page, urls...)
		l.cfg.Retries.Robots, l.cfg.Retries.Timeout, l.cfg.Retries.DNS = 0, 0, 0
		l.cfg.Pauses.ServerError = 500 * time.Millisecond // so that the task waits for late tries
		for h, d := range down {
			if d.class == schema.DNSError {
				l.web.down[h] = d.err
			}
		}
		l.hooks.tune = func(c *wire.Config) {
			l.web.tune(c)
			c.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
				d, failing := down[l.web.nameOf(addr.Addr())]
				if !failing {
					return l.web.dial(ctx, addr)
				}
				if d.err == nil {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				time.Sleep(d.took)
				return nil, d.err
			}
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.checkPace(r)
		seen := map[string]int{}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			seen[q.Host]++
			want, failing := down[q.Host]
			if !failing {
				// Virtual time stands still while the server answers.
				if q.FirstByteMS == nil || *q.FirstByteMS != 0 || q.FirstByteUS == nil || q.TotalUS == nil || q.TLSMS != nil || q.BytesSent == 0 {
					t.Errorf("%s: times %v %v %v %v", q.URL, q.FirstByteMS, q.FirstByteUS, q.TotalUS, q.TLSMS)
				}
				if fresh := q.Purpose == schema.ForRobots; fresh != (q.ConnectMS != nil) || fresh != (q.ConnectUS != nil) {
					t.Errorf("%s: connect %v, %v; the connection was kept after robots.txt", q.URL, q.ConnectMS, q.ConnectUS)
				}
				continue
			}
			if q.ErrorClass != string(want.class) || q.Error != want.phrase || !strings.Contains(q.ErrorDetail, q.Host) || q.BytesSent != 0 || q.GapMS != nil {
				t.Errorf("%s: %s, %q, %q, %d bytes sent", q.URL, q.ErrorClass, q.Error, q.ErrorDetail, q.BytesSent)
			}
			if q.Start == 0 || q.TotalMS != want.took.Milliseconds() || q.TotalUS == nil || *q.TotalUS != want.took.Microseconds() {
				t.Errorf("%s: began at %d and took %d ms (%v µs), want %v", q.URL, q.Start, q.TotalMS, q.TotalUS, want.took)
			}
			if lookedUp := want.class == schema.DNSError; lookedUp == (q.ConnectMS != nil) || q.DNSMS == nil {
				t.Errorf("%s: looked up in %v ms, connected in %v ms", q.URL, q.DNSMS, q.ConnectMS)
			}
		}
		for u, f := range l.outcomes(r) {
			want, failing := down[f.Host]
			if failing && (f.Error != "robots.txt: "+want.phrase || !strings.Contains(f.ErrorDetail, f.Host) || f.Attempts != 0) {
				t.Errorf("%s: %q, %q after %d attempts", u, f.Error, f.ErrorDetail, f.Attempts)
			}
			tries := 2 // the second one is late
			if want.phrase == "no such host" {
				tries = 1
			}
			if failing && seen[f.Host] != tries {
				t.Errorf("%s has %d rows of requests", f.Host, seen[f.Host])
			}
		}
	})
}

// checkErrorsGroup checks that the number of different error texts is small, however many URLs and
// hosts fail, and that no text contains a name or number from a URL or host.
func (l *lab) checkErrorsGroup(r *manifest.Result) {
	l.t.Helper()
	phrases := map[string]int{}
	look := func(url, host, phrase, detail string) {
		if phrase == "" {
			return
		}
		phrases[phrase]++
		if strings.Contains(phrase, host) || strings.Contains(phrase, "://") || strings.Contains(detail, phrase) || len(phrase) > 90 {
			l.t.Errorf("%s: error %q, error_detail %q", url, phrase, detail)
		}
	}
	for u, f := range l.outcomes(r) {
		look(u, f.Host, f.Error, f.ErrorDetail)
	}
	failed := 0
	for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
		look(q.URL, q.Host, q.Error, q.ErrorDetail)
		if q.Error != "" {
			failed++
		}
	}
	if len(phrases) < 8 || len(phrases) > 40 || failed < 2*len(phrases) {
		l.t.Errorf("%d phrases of %d requests that failed: %v", len(phrases), failed, phrases)
	}
}

// faultyParser panics outside of Parse, as reading a response would.
type faultyParser struct{ plainParser }

func (p faultyParser) Sniff(contentType string, prefix []byte) string {
	if bytes.Contains(prefix, []byte("/fault")) {
		panic("as asked")
	}
	return p.plainParser.Sniff(contentType, prefix)
}

func TestAFaultFailsItsAttemptNotTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), append(urls("b.org", 3), "http://a.com/fault", "http://a.com/later")...)
		l.parser = faultyParser{}
		var r *manifest.Result
		for attempts := 0; r == nil; attempts++ {
			var err error
			r, err = l.run(t.Context(), nil, nil)
			if err == nil {
				break
			}
			if !errors.Is(err, stages.ErrFault) || !strings.Contains(err.Error(), "as asked") || attempts >= 6 {
				t.Fatalf("attempt %d: %v", attempts+1, err)
			}
			if cp := l.checkpointOf(); cp.Released {
				t.Errorf("attempt %d released the partition, though its records may be incomplete", attempts+1)
			}
		}
		for u, f := range l.outcomes(r) {
			want := schema.OK
			if strings.HasSuffix(u, "/fault") {
				want = schema.InternalError
			}
			if f.Outcome != want {
				t.Errorf("%s: %s (%s), want %s", u, f.Outcome, f.Error, want)
			}
		}
		l.checkPace(r)
	})
}
