package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"crawlbatch.io/crawlbatch/stages"
)

const (
	firstPause  = time.Second      // before a busy collector is asked again; later pauses are longer
	longestTry  = 10 * time.Second // longest time for which one batch is tried
	longestStop = 5 * time.Second  // longest time for the last batches
	// longestError is the largest number of bytes of an error in the log: it repeats the collector's answer.
	longestError = 300
)

// Tracer sends spans to a collector. Its methods are safe for concurrent use. A nil *Tracer traces
// nothing.
type Tracer struct {
	settings
	clock    stages.Clock
	log      *slog.Logger
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	ended    atomic.Int64 // number of spans that were offered to the SDK
	exporter *counted
}

// New returns a tracer that OpenTelemetry's environment variables configure, or nil if they name no
// collector. The caller closes the tracer.
func New(version string, clock stages.Clock, log *slog.Logger) (*Tracer, error) {
	s, err := read()
	if err != nil || s.endpoint == "" {
		return nil, err
	}
	return start(s, http.DefaultTransport, version, clock, log)
}

// start returns a tracer whose requests a transport sends.
func start(s settings, transport http.RoundTripper, version string, clock stages.Clock, log *slog.Logger) (*Tracer, error) {
	// Of a variable that it cannot read, the SDK would print the value to stderr, which may be a
	// secret. It would also print each failed export, which counted reports.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx,
		// A redirect is not followed, because its target must not get the headers, which may hold a secret.
		otlptracehttp.WithHTTPClient(&http.Client{
			Transport: transport, Timeout: s.timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longestTry, MaxElapsedTime: longestTry}))
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", ErrConfig)
	}
	// The environment comes last, so it wins. An error means that some of its pairs are invalid.
	// They are skipped, as OpenTelemetry asks.
	of, _ := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "crawlbatch"), attribute.String("service.version", version)), resource.WithFromEnv())
	t := &Tracer{settings: s, clock: clock, log: log}
	t.exporter = &counted{SpanExporter: exporter, refused: func(err error) {
		t.log.Warn("the collector does not take spans", "endpoint", t.endpoint, "error", fmt.Sprintf("%.*s", longestError, err))
	}}
	// Each attempt is traced. The method sampled chooses the URLs.
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(of), sdktrace.WithBatcher(t.exporter))
	t.tracer = t.provider.Tracer("crawlbatch", trace.WithInstrumentationVersion(version))
	return t, nil
}

// Dropped returns the number of spans that were not delivered, once the tracer is closed.
func (t *Tracer) Dropped() int64 {
	if t == nil {
		return 0
	}
	return t.ended.Load() - t.exporter.sent.Load()
}

// Close sends the queued spans, within a few seconds, and ends the tracer. Later spans are dropped.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestStop)
	defer cancel()
	if t.provider.Shutdown(ctx) != nil { // the time is over, so the request under way ends
		_ = t.exporter.Shutdown(ctx)
	}
	if n := t.Dropped(); n > 0 {
		t.log.Warn("not all spans were delivered", "dropped", n, "endpoint", t.endpoint)
	}
}

// counted counts the spans that a collector took, and reports the first batch that it did not take.
type counted struct {
	sdktrace.SpanExporter
	sent    atomic.Int64
	failed  atomic.Bool
	refused func(error)
}

// ExportSpans sends one batch. If the collector rejects some spans of a batch, all of the batch
// count as dropped, since the exporter says the number only in the text of its error.
func (c *counted) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		c.sent.Add(int64(len(spans)))
	} else if !c.failed.Swap(true) { // later losses are only counted
		c.refused(err)
	}
	return err
}
