package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// collector is an OTLP receiver. It decodes strictly, with its own types, and keeps all spans by name.
type collector struct {
	t       *testing.T
	mu      sync.Mutex
	answers []int  // status codes of the first answers; then 200
	partial string // body of an answer 200
	posts   int
	header  http.Header
	path    string
	service string
	spans   map[string][]received
}

type received struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string `json:"name"`
	Kind         int    `json:"kind"`
	Start        string `json:"startTimeUnixNano"`
	End          string `json:"endTimeUnixNano"`
	Attributes   []pair `json:"attributes"`
	Status       struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
}

type pair struct {
	Key   string `json:"key"`
	Value struct {
		StringValue *string `json:"stringValue"`
		IntValue    *string `json:"intValue"` // 64-bit integers are text
	} `json:"value"`
}

func (r *received) get(key string) string {
	for _, a := range r.Attributes {
		if a.Key == key && a.Value.StringValue != nil {
			return *a.Value.StringValue
		} else if a.Key == key {
			return *a.Value.IntValue
		}
	}
	return ""
}

var hexID = regexp.MustCompile(`^([0-9a-f]{16}){1,2}$`)

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
	var body struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []pair `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Scope struct {
					Name    string `json:"name"`
					Version string `json:"version"`
				} `json:"scope"`
				Spans []received `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil {
		c.t.Error(err)
	}
	for _, rs := range body.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				c.service = *a.Value.StringValue
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				start, err1 := strconv.ParseUint(s.Start, 10, 64)
				end, err2 := strconv.ParseUint(s.End, 10, 64)
				if err1 != nil || err2 != nil || end < start || len(s.TraceID) != 32 || !hexID.MatchString(s.TraceID) || len(s.SpanID) != 16 || !hexID.MatchString(s.SpanID) || s.Kind < 1 || s.Kind > 5 {
					c.t.Errorf("span %+v", s)
				}
				c.spans[s.Name] = append(c.spans[s.Name], s)
			}
		}
	}
	_, _ = w.Write([]byte(c.partial))
}

// start starts a collector, and a tracer with the given variables. END stands for its address.
func start(t *testing.T, c *collector, log *bytes.Buffer, env map[string]string) *Tracer {
	t.Helper()
	c.t, c.spans = t, map[string][]received{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	tracer, err := New(func(name string) (string, bool) {
		v, ok := env[name]
		return strings.ReplaceAll(v, "END", server.URL), ok
	}, "v1", stages.SystemClock{}, slog.New(slog.NewTextHandler(log, nil)))
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
		seen(&schema.Fetch{URL: "http://user:hunter2@example.org/a%20b?token=hunter2", Outcome: schema.OK, RecordedAt: 1_700_000_009_000}, []schema.Request{
			{Purpose: "page", URL: "http://example.org/x?token=hunter2", Start: 1_700_000_000_123, TotalMS: 250, Status: 302, DelayMS: 2000},
			{Purpose: "redirect", URL: "http://example.org/a%20b?token=hunter2", Start: 1_700_000_005_000, TotalMS: 9, ErrorClass: "timeout", ErrorDetail: "hunter2"},
		})
	}
	k.End("failed", true)
}

func TestSpansReachACollector(t *testing.T) {
	c, log := &collector{answers: []int{http.StatusServiceUnavailable}}, bytes.Buffer{} // a busy collector is asked again
	tracer := start(t, c, &log, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "END/base/", "OTEL_TRACES_SAMPLER": "always_on", "OTEL_SERVICE_NAME": "monthly",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20hunter2,bad,x-team = crawl", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment=test",
	})
	fetched(tracer)
	tracer.Close()
	if c.posts != 2 || c.path != "/base/v1/traces" || c.service != "monthly" || c.header.Get("Authorization") != "Bearer hunter2" || c.header.Get("X-Team") != "crawl" || c.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d posts to %s by %s: %v", c.posts, c.path, c.service, c.header)
	}
	if len(c.spans["task fetch"]) != 1 || len(c.spans["url"]) != 1 || len(c.spans["GET"]) != 2 {
		t.Fatalf("spans: %+v", c.spans)
	}
	whole, url, hop, last := c.spans["task fetch"][0], c.spans["url"][0], c.spans["GET"][0], c.spans["GET"][1]
	if whole.get("crawlbatch.task") != "fetch@2026-11.1:17" || whole.get("crawlbatch.partition") != "17" || whole.Status.Code != 2 || whole.ParentSpanID != "" {
		t.Errorf("task: %+v", whole)
	}
	if url.TraceID != whole.TraceID || url.ParentSpanID != whole.SpanID || url.get("crawlbatch.outcome") != "ok" || url.get("url.path") != "/a%20b" || url.Start != "1700000000123000000" || url.End != "1700000009000000000" {
		t.Errorf("url: %+v", url)
	}
	if hop.ParentSpanID != url.SpanID || hop.get("http.response.status_code") != "302" || hop.End != "1700000000373000000" || hop.Status.Code != 0 || hop.Kind != 3 {
		t.Errorf("hop: %+v", hop)
	}
	if last.get("error.type") != "timeout" || last.Status.Code != 2 || last.get("server.address") != "example.org" {
		t.Errorf("last: %+v", last)
	}
	if all, _ := json.Marshal(c.spans); bytes.Contains(all, []byte("hunter2")) || strings.Contains(log.String(), "hunter2") {
		t.Errorf("a secret is sent or logged: %s %s", all, log.String())
	}
	if tracer.Dropped() != 0 || log.Len() > 0 {
		t.Errorf("%d dropped: %s", tracer.Dropped(), log.String())
	}
}

func TestSpansThatNobodyTakesAreCountedAndSaidOnce(t *testing.T) {
	for name, s := range map[string]*struct {
		collector
		posts, dropped int
	}{
		"it refuses":             {collector{answers: []int{http.StatusUnauthorized}}, 1, 4},
		"it stays busy":          {collector{answers: []int{429, 503, 429}}, 2, 4},
		"it redirects elsewhere": {collector{answers: []int{http.StatusTemporaryRedirect}}, 1, 4},
		"it rejects some":        {collector{partial: `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`}, 1, 3},
		"it rejects too many":    {collector{partial: `{"partialSuccess":{"rejectedSpans":99}}`}, 1, 4},
		"its answer is no JSON":  {collector{partial: `<html>`}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			tracer := start(t, &s.collector, &log, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "END/traces", "OTEL_TRACES_SAMPLER_ARG": "1"})
			fetched(tracer)
			tracer.Close()
			if s.collector.posts != s.posts || tracer.Dropped() != int64(s.dropped) || s.path != "/traces" {
				t.Errorf("%d posts to %s, %d dropped", s.collector.posts, s.path, tracer.Dropped())
			}
			if n := strings.Count(log.String(), "the collector does not take spans"); (n == 1) != (s.dropped > 0) {
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

func TestACollectorThatNeverAnswersHoldsTheEndUpForSeconds(t *testing.T) {
	for name, wait := range map[string]time.Duration{"the last batch": 0, "a batch under way": batchEvery + time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer, err := New(func(name string) (string, bool) {
					v, ok := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example:4318", "OTEL_TRACES_SAMPLER": "always_on"}[name]
					return v, ok
				}, "v1", stages.SystemClock{}, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				tracer.client.Transport = silent{}
				fetched(tracer)
				time.Sleep(wait)
				began := time.Now()
				tracer.Close()
				if took := time.Since(began); took > closing || tracer.Dropped() != 4 {
					t.Errorf("closed after %s, %d dropped", took, tracer.Dropped())
				}
			})
		})
	}
}

func TestAFullQueueDropsSpansAndDoesNotWait(t *testing.T) {
	tracer := &Tracer{queue: make(chan span, 2), clock: stages.SystemClock{}, settings: settings{ratio: 1}}
	fetched(tracer)
	if len(tracer.queue) != 2 || tracer.Dropped() != 2 {
		t.Errorf("%d queued, %d dropped", len(tracer.queue), tracer.Dropped())
	}
}

func TestWithoutVariablesNothingIsTraced(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"none":        {},
		"disabled":    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		tracer, err := New(func(n string) (string, bool) { v, ok := env[n]; return v, ok }, "v1", stages.SystemClock{}, nil)
		if tracer != nil || err != nil {
			t.Errorf("%s: %v, %v", name, tracer, err)
		}
		fetched(tracer)
		tracer.Close()
		if tracer.Dropped() != 0 || tracer.Begin(task).URL() != nil {
			t.Errorf("%s: something is traced", name)
		}
	}
	for name, v := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318 hunter2", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "10s hunter2", "OTEL_TRACES_SAMPLER_ARG": "hunter2",
	} {
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: v}
		if _, err := New(func(n string) (string, bool) { v, ok := env[n]; return v, ok }, "v1", stages.SystemClock{}, nil); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
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
