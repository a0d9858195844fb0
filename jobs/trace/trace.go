package trace

import (
	"context"
	"hash/fnv"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// Task is the span of an attempt at a task. A nil *Task traces nothing.
type Task struct {
	tracer *Tracer
	span   trace.Span
}

// Begin begins the span of an attempt.
func (t *Tracer) Begin(task stages.Task) *Task {
	if t == nil {
		return nil
	}
	_, span := t.tracer.Start(context.Background(), "task "+string(task.Stage), trace.WithTimestamp(t.clock.Now()), trace.WithAttributes(
		attribute.String("crawlbatch.task", task.String()),
		attribute.String("crawlbatch.crawl", task.Crawl),
		attribute.Int("crawlbatch.round", task.Round),
		attribute.String("crawlbatch.stage", string(task.Stage)),
		attribute.Int("crawlbatch.partition", task.Partition),
	))
	return &Task{t, span}
}

// End ends the span. class says how the attempt ended, as in its record; failed is false if it did its
// work.
func (k *Task) End(class string, failed bool) {
	if k == nil {
		return
	}
	k.span.SetAttributes(attribute.String("crawlbatch.class", class))
	if failed {
		k.span.SetStatus(codes.Error, class)
	}
	k.tracer.end(k.span, k.tracer.clock.Now())
}

// end ends a span at a time, and with that offers it to the SDK.
func (t *Tracer) end(span trace.Span, at time.Time) {
	t.ended.Add(1)
	span.End(trace.WithTimestamp(at))
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
		began := requests[0].Start
		ctx, span := k.tracer.tracer.Start(trace.ContextWithSpan(context.Background(), k.span), "url",
			trace.WithTimestamp(began.Time()), trace.WithAttributes(addressOf(f.URL)...), trace.WithAttributes(
				attribute.String("crawlbatch.outcome", string(f.Outcome)),
				attribute.Int("crawlbatch.requests", len(requests)),
			))
		k.tracer.end(span, max(f.RecordedAt, began).Time())
		for i := range requests {
			k.tracer.request(ctx, &requests[i])
		}
	}
}

// request sends the span of a request, with the names of OpenTelemetry's conventions for HTTP. The
// context holds the URL's span.
func (t *Tracer) request(ctx context.Context, r *schema.Request) {
	_, span := t.tracer.Start(ctx, "GET", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(r.Start.Time()),
		trace.WithAttributes(addressOf(r.URL)...), trace.WithAttributes(
			attribute.String("http.request.method", "GET"),
			attribute.String("crawlbatch.purpose", string(r.Purpose)),
			attribute.Int64("crawlbatch.delay_ms", r.DelayMS),
			attribute.Int64("crawlbatch.received_bytes", r.BytesReceived),
		))
	if r.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", int(r.Status)))
	}
	if r.ErrorClass != "" {
		span.SetAttributes(attribute.String("error.type", r.ErrorClass))
		span.SetStatus(codes.Error, r.ErrorClass)
	} else if r.Status >= 400 {
		span.SetStatus(codes.Error, "")
	}
	t.end(span, r.Start.Time().Add(time.Duration(max(r.TotalMS, 0))*time.Millisecond))
}

// longestPath is the largest length of a path in a span, in bytes.
const longestPath = 512

// addressOf returns host and path of a URL. User, password and query are left out.
func addressOf(raw string) []attribute.KeyValue {
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	path := u.EscapedPath()
	return []attribute.KeyValue{
		attribute.String("url.scheme", u.Scheme),
		attribute.String("server.address", u.Host),
		attribute.String("url.path", path[:min(len(path), longestPath)]),
	}
}

// sampled reports whether a URL is traced. All processes trace the same URLs.
func (t *Tracer) sampled(url string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(url))
	return float64(h.Sum32()) < t.ratio*(1<<32)
}
