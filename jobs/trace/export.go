package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

const (
	queueSpans = 4096            // largest number of spans that wait for the collector, about 2 MiB
	batchSpans = 512             // largest number of spans in a request
	batchEvery = 5 * time.Second // longest time for which a span waits for others
	batchTries = 2               // largest number of requests for one batch
	tryAgain   = time.Second     // pause between these requests
	mostAnswer = 64 << 10        // largest number of bytes that are read of an answer
	closing    = 5 * time.Second // longest time for the last batches
)

// Tracer sends spans to a collector. Its methods are safe for concurrent use. A nil *Tracer traces
// nothing.
type Tracer struct {
	settings
	version string
	clock   stages.Clock
	log     *slog.Logger
	client  *http.Client
	queue   chan span
	dropped atomic.Int64
	stop    chan struct{} // closed by Close
	ended   chan struct{} // closed when the last batch is sent
}

// New returns a tracer that OpenTelemetry's environment variables configure, or nil if they name no
// collector. The caller closes the tracer.
func New(lookup func(string) (string, bool), version string, clock stages.Clock, log *slog.Logger) (*Tracer, error) {
	s, err := read(lookup, version)
	if err != nil || s.endpoint == "" {
		return nil, err
	}
	t := &Tracer{
		settings: s, version: version, clock: clock, log: log, queue: make(chan span, queueSpans), stop: make(chan struct{}), ended: make(chan struct{}),
		// A redirect is not followed, because its target must not get the headers, which may hold a secret.
		client: &http.Client{Timeout: s.timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	go t.run()
	return t, nil
}

// offer queues a span, or drops it if the queue is full.
func (t *Tracer) offer(s span) {
	select {
	case t.queue <- s:
	default:
		t.dropped.Add(1)
	}
}

// Dropped returns the number of spans that were not delivered.
func (t *Tracer) Dropped() int64 {
	if t == nil {
		return 0
	}
	return t.dropped.Load()
}

// Close sends the queued spans, within a few seconds, and ends the tracer. Later spans are dropped.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	close(t.stop)
	<-t.ended
	if n := t.Dropped(); n > 0 {
		t.log.Warn("not all spans were delivered", "dropped", n, "endpoint", t.shownEndpoint())
	}
}

// run sends batches until Close.
func (t *Tracer) run() {
	defer close(t.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends a request under way when the time closing has passed since Close
		select {
		case <-t.stop:
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(closing)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ctx.Done():
		}
	}()
	for stopped := false; ; {
		batch := t.gather(stopped)
		if len(batch) > 0 {
			t.deliver(ctx, batch)
		}
		select {
		case <-t.stop:
			if stopped && len(batch) == 0 {
				return
			}
			stopped = true
		default:
		}
	}
}

// gather returns the next batch. It waits until the batch is full, but for at most batchEvery.
// After Close it does not wait.
func (t *Tracer) gather(stopped bool) (batch []span) {
	timer := time.NewTimer(batchEvery)
	defer timer.Stop()
	for len(batch) < batchSpans {
		select {
		case s := <-t.queue:
			batch = append(batch, s)
			continue
		default:
		}
		if stopped {
			return batch
		}
		select {
		case s := <-t.queue:
			batch = append(batch, s)
		case <-timer.C:
			return batch
		case <-t.stop:
			stopped = true
		}
	}
	return batch
}

// deliver sends a batch. If the collector does not take the batch, the spans are dropped.
func (t *Tracer) deliver(ctx context.Context, batch []span) {
	body, err := json.Marshal(export{[]resourceSpans{{resource{t.resource}, []scopeSpans{{scope{"crawlbatch", t.version}, batch}}}}})
	rejected := int64(len(batch))
	for try := 1; err == nil; try++ {
		var again bool
		if rejected, again, err = t.post(ctx, body, int64(len(batch))); !again || try == batchTries || t.clock.Sleep(ctx, tryAgain) != nil {
			break
		}
		err = nil
	}
	if rejected > 0 && t.dropped.Add(rejected) == rejected { // later losses are only counted
		t.log.Warn("the collector does not take spans", "endpoint", t.shownEndpoint(), "error", err)
	}
}

// post sends one request. It returns how many of the n spans the collector did not take, and whether
// another request may help.
func (t *Tracer) post(ctx context.Context, body []byte, n int64) (rejected int64, again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, bytes.NewReader(body))
	if err != nil {
		return n, false, errors.New("the endpoint is not a URL")
	}
	for name, v := range t.headers {
		request.Header[name] = v
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "crawlbatch/"+t.version)
	answer, err := t.client.Do(request)
	if err != nil {
		var of *url.Error // repeats the endpoint, which may hold a password
		if errors.As(err, &of) {
			err = of.Err
		}
		return n, ctx.Err() == nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	got, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch answer.StatusCode {
	case http.StatusOK:
		return min(n, rejectedIn(got)), false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return n, again, fmt.Errorf("it answers %d", answer.StatusCode)
}

// rejectedIn returns the number of spans that a collector rejected according to its answer.
func rejectedIn(answer []byte) int64 {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0
	}
	n, err := a.PartialSuccess.RejectedSpans.Int64()
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// shownEndpoint returns the endpoint without its password and query.
func (t *Tracer) shownEndpoint() string {
	u, err := url.Parse(t.endpoint)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.Path
}
