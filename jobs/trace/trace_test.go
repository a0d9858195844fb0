package trace

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// collector is an OTLP receiver. It keeps all spans by name.
type collector struct {
	t       *testing.T
	mu      sync.Mutex
	answers []int // status codes of the first answers; then 200
	partial *collectorpb.ExportTracePartialSuccess
	posts   int
	header  http.Header
	path    string
	of      map[string]string // attributes of the resource
	bodies  bytes.Buffer
	spans   map[string][]*tracepb.Span
}

// texts returns attributes as text.
func texts(all []*commonpb.KeyValue) map[string]string {
	by := map[string]string{}
	for _, a := range all {
		if _, isInt := a.Value.Value.(*commonpb.AnyValue_IntValue); isInt {
			by[a.Key] = strconv.FormatInt(a.Value.GetIntValue(), 10)
		} else {
			by[a.Key] = a.Value.GetStringValue()
		}
	}
	return by
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts++
	c.header, c.path = r.Header, r.URL.Path
	if len(c.answers) > 0 {
		code := c.answers[0]
		c.answers = c.answers[1:]
		if code != http.StatusOK {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	var got collectorpb.ExportTraceServiceRequest
	if err := errors.Join(err, proto.Unmarshal(body, &got)); err != nil {
		c.t.Error(err)
	}
	c.bodies.Write(body)
	for _, rs := range got.ResourceSpans {
		c.of = texts(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans[s.Name] = append(c.spans[s.Name], s)
			}
		}
	}
	answer, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: c.partial})
	if err != nil {
		c.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

// begin starts a collector, and a tracer with the given variables. END stands for its address.
func begin(t *testing.T, c *collector, log *bytes.Buffer, env map[string]string) *Tracer {
	t.Helper()
	c.t, c.spans = t, map[string][]*tracepb.Span{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	for name, v := range env {
		t.Setenv(name, strings.ReplaceAll(v, "END", server.URL))
	}
	tracer, err := New("v1", stages.SystemClock{}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

var task = stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Round: 1, Partition: 17}

// fetched traces an attempt with one URL of two requests.
func fetched(tracer *Tracer) {
	k := tracer.Begin(task)
	if seen := k.URL(); seen != nil {
		seen(&schema.Fetch{URL: "http://user:hunter2@example.org/a%20b?token=hunter2", Outcome: schema.OK, RecordedAt: 1_700_000_009_000_000}, []schema.Request{
			{Purpose: "page", URL: "http://example.org/x?token=hunter2", Start: 1_700_000_000_123_000, TotalMS: 250, Status: 302, DelayMS: 2000},
			{Purpose: "redirect", URL: "http://example.org/a%20b?token=hunter2", Start: 1_700_000_005_000_000, TotalMS: 9, ErrorClass: "timeout", ErrorDetail: "hunter2"},
		})
	}
	k.End("failed", true)
}

func TestSpansReachACollector(t *testing.T) {
	c, log := &collector{answers: []int{http.StatusServiceUnavailable}}, bytes.Buffer{} // a busy collector is asked again
	tracer := begin(t, c, &log, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "END/base/", "OTEL_TRACES_SAMPLER": "always_on", "OTEL_SERVICE_NAME": "monthly",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20hunter2,bad,x-team = crawl", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment=test",
	})
	fetched(tracer)
	tracer.Close()
	if c.posts != 2 || c.path != "/base/v1/traces" || c.header.Get("Authorization") != "Bearer hunter2" || c.header.Get("X-Team") != "crawl" {
		t.Errorf("%d posts to %s: %v", c.posts, c.path, c.header)
	}
	if c.of["service.name"] != "monthly" || c.of["service.version"] != "v1" || c.of["deployment.environment"] != "test" {
		t.Errorf("resource: %v", c.of)
	}
	if len(c.spans["task fetch"]) != 1 || len(c.spans["url"]) != 1 || len(c.spans["GET"]) != 2 {
		t.Fatalf("spans: %v", c.spans)
	}
	whole, url, hop, last := c.spans["task fetch"][0], c.spans["url"][0], c.spans["GET"][0], c.spans["GET"][1]
	if of := texts(whole.Attributes); of["crawlbatch.task"] != "fetch@2026-11.1:17" || of["crawlbatch.partition"] != "17" || of["crawlbatch.class"] != "failed" ||
		whole.Status.Code != tracepb.Status_STATUS_CODE_ERROR || whole.Status.Message != "failed" || len(whole.ParentSpanId) != 0 {
		t.Errorf("task: %v", whole)
	}
	if of := texts(url.Attributes); !bytes.Equal(url.TraceId, whole.TraceId) || !bytes.Equal(url.ParentSpanId, whole.SpanId) || of["crawlbatch.outcome"] != "ok" || of["crawlbatch.requests"] != "2" || of["url.path"] != "/a%20b" ||
		url.StartTimeUnixNano != 1700000000123000000 || url.EndTimeUnixNano != 1700000009000000000 {
		t.Errorf("url: %v", url)
	}
	if of := texts(hop.Attributes); !bytes.Equal(hop.ParentSpanId, url.SpanId) || of["http.response.status_code"] != "302" || of["crawlbatch.delay_ms"] != "2000" ||
		hop.EndTimeUnixNano != 1700000000373000000 || hop.Status.GetCode() != tracepb.Status_STATUS_CODE_UNSET || hop.Kind != tracepb.Span_SPAN_KIND_CLIENT {
		t.Errorf("hop: %v", hop)
	}
	if of := texts(last.Attributes); of["error.type"] != "timeout" || last.Status.Code != tracepb.Status_STATUS_CODE_ERROR || of["server.address"] != "example.org" {
		t.Errorf("last: %v", last)
	}
	if bytes.Contains(c.bodies.Bytes(), []byte("hunter2")) || strings.Contains(log.String(), "hunter2") {
		t.Errorf("a secret is sent or logged: %q %s", c.bodies.String(), log.String())
	}
	if tracer.Dropped() != 0 || log.Len() > 0 {
		t.Errorf("%d dropped: %s", tracer.Dropped(), log.String())
	}
}

func TestSpansThatNobodyTakesAreCountedAndSaidOnce(t *testing.T) {
	for name, s := range map[string]*collector{
		"it refuses":             {answers: []int{http.StatusUnauthorized}},
		"it redirects elsewhere": {answers: []int{http.StatusTemporaryRedirect}},
		"it rejects some":        {partial: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 3, ErrorMessage: "too old"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			tracer := begin(t, s, &log, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "END/traces", "OTEL_TRACES_SAMPLER_ARG": "1"})
			fetched(tracer)
			tracer.Close()
			if s.posts != 1 || tracer.Dropped() != 4 || s.path != "/traces" {
				t.Errorf("%d posts to %s, %d dropped", s.posts, s.path, tracer.Dropped())
			}
			if strings.Count(log.String(), "the collector does not take spans") != 1 || !strings.Contains(log.String(), "dropped=4") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// silent is a collector that takes requests and never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// busy is a collector that always asks to be asked later.
type busy struct{}

func (busy) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
}

func TestACollectorThatIsAwayHoldsTheEndUpForSeconds(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318")
	for name, c := range map[string]struct {
		http.RoundTripper
		wait time.Duration
	}{
		"never answers: the last batch": {silent{}, 0}, "never answers: a batch under way": {silent{}, 6 * time.Second},
		"busy: the last batch": {busy{}, 0}, "busy: a batch under way": {busy{}, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer, err := start(settings{ratio: 1, timeout: defaultTimeout}, c, "v1", stages.SystemClock{}, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				fetched(tracer)
				time.Sleep(c.wait)
				began := time.Now()
				tracer.Close()
				if took := time.Since(began); took > longestStop || tracer.Dropped() != 4 {
					t.Errorf("closed after %s, %d dropped", took, tracer.Dropped())
				}
			})
		})
	}
}

func TestAFullQueueDropsSpansAndDoesNotWait(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318")
	synctest.Test(t, func(t *testing.T) {
		tracer, err := start(settings{ratio: 1, timeout: defaultTimeout}, silent{}, "v1", stages.SystemClock{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 5_000 {
			fetched(tracer)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("%s passed", took)
		}
		tracer.Close()
		if tracer.Dropped() != 20_000 {
			t.Errorf("%d dropped", tracer.Dropped())
		}
	})
}

func TestWithoutVariablesNothingIsTraced(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"none":        {},
		"disabled":    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for n, v := range env {
				t.Setenv(n, v)
			}
			tracer, err := New("v1", stages.SystemClock{}, nil)
			if tracer != nil || err != nil {
				t.Fatalf("%v, %v", tracer, err)
			}
			fetched(tracer)
			tracer.Close()
			if tracer.Dropped() != 0 || tracer.Begin(task).URL() != nil {
				t.Error("something is traced")
			}
		})
	}
}

func TestAVariableThatCannotBeUsedIsNamedWithoutItsValue(t *testing.T) {
	for name, v := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318 hunter2", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "10s hunter2", "OTEL_TRACES_SAMPLER_ARG": "hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, v)
			if _, err := New("v1", stages.SystemClock{}, nil); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
				t.Error(err)
			}
		})
	}
}

func TestTheSampleHasTheConfiguredShare(t *testing.T) {
	tracer := &Tracer{settings: settings{ratio: 0.01}}
	n := 0
	for i := range 100_000 {
		if tracer.sampled("http://example.org/page/" + strconv.Itoa(i)) {
			n++
		}
	}
	if n < 800 || n > 1200 {
		t.Errorf("%d of 100000 URLs are in a sample of 1%%", n)
	}
}
