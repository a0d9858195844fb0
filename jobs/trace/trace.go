package trace

import (
	"crypto/rand"
	"encoding/hex"
	"hash/fnv"
	"net/url"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// Task is the span of an attempt at a task. A nil *Task traces nothing.
type Task struct {
	tracer *Tracer
	span   span
}

// Begin begins the span of an attempt.
func (t *Tracer) Begin(task stages.Task) *Task {
	if t == nil {
		return nil
	}
	return &Task{t, span{
		TraceID: newID(16), SpanID: newID(8), Name: "task " + string(task.Stage), Kind: kindInternal, Start: nanos(t.clock.Now().UnixMilli()),
		Attributes: []attribute{
			text("crawlbatch.task", task.String()), text("crawlbatch.crawl", task.Crawl), number("crawlbatch.round", int64(task.Round)),
			text("crawlbatch.stage", string(task.Stage)), number("crawlbatch.partition", int64(task.Partition)),
		},
	}}
}

// End ends the span. class says how the attempt ended, as in its record; failed is false if it did its
// work.
func (k *Task) End(class string, failed bool) {
	if k == nil {
		return
	}
	k.span.End = nanos(k.tracer.clock.Now().UnixMilli())
	k.span.Attributes = append(k.span.Attributes, text("crawlbatch.class", class))
	if failed {
		k.span.Status = status{codeError, class}
	}
	k.tracer.offer(k.span)
}

// URL returns the function that sends the spans of a finished URL, if the URL is in the sample: one for
// the URL and one for each of its requests. It returns nil if no URL is traced.
func (k *Task) URL() func(f *schema.Fetch, requests []schema.Request) {
	if k == nil || k.tracer.ratio == 0 {
		return nil
	}
	return func(f *schema.Fetch, requests []schema.Request) {
		if len(requests) == 0 || !k.tracer.sampled(f.URL) {
			return
		}
		whole := span{
			TraceID: k.span.TraceID, SpanID: newID(8), Parent: k.span.SpanID, Name: "url", Kind: kindInternal,
			Start: nanos(requests[0].Start), End: nanos(max(f.RecordedAt, requests[0].Start)),
			Attributes: append(addressOf(f.URL), text("crawlbatch.outcome", string(f.Outcome)), number("crawlbatch.requests", int64(len(requests)))),
		}
		k.tracer.offer(whole)
		for i := range requests {
			k.tracer.offer(requestSpan(&whole, &requests[i]))
		}
	}
}

// requestSpan returns the span of a request, with the names of OpenTelemetry's conventions for HTTP.
func requestSpan(parent *span, r *schema.Request) span {
	s := span{
		TraceID: parent.TraceID, SpanID: newID(8), Parent: parent.SpanID, Name: "GET", Kind: kindClient,
		Start: nanos(r.Start), End: nanos(r.Start + max(r.TotalMS, 0)),
		Attributes: append(addressOf(r.URL), text("http.request.method", "GET"), text("crawlbatch.purpose", string(r.Purpose)),
			number("crawlbatch.delay_ms", r.DelayMS), number("crawlbatch.received_bytes", r.BytesReceived)),
	}
	if r.Status != 0 {
		s.Attributes = append(s.Attributes, number("http.response.status_code", int64(r.Status)))
	}
	if r.ErrorClass != "" {
		s.Attributes = append(s.Attributes, text("error.type", r.ErrorClass))
		s.Status = status{codeError, r.ErrorClass}
	} else if r.Status >= 400 {
		s.Status.Code = codeError
	}
	return s
}

// longestPath is the largest length of a path in a span, in bytes.
const longestPath = 512

// addressOf returns host and path of a URL. User, password and query are left out.
func addressOf(raw string) []attribute {
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	path := u.EscapedPath()
	return []attribute{text("url.scheme", u.Scheme), text("server.address", u.Host), text("url.path", path[:min(len(path), longestPath)])}
}

// sampled reports whether a URL is traced. All processes trace the same URLs.
func (t *Tracer) sampled(url string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(url))
	return float64(h.Sum32()) < t.ratio*(1<<32)
}

// newID returns a random identifier of n bytes, in hex.
func newID(n int) string {
	id := make([]byte, n)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}
