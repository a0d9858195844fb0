package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

const crawl = "2026-11"

// lab is a crawl of a synthetic web. The test process plans the crawl, runs it and serves its
// metrics.
type lab struct {
	t       *testing.T
	metrics *metrics.Metrics
	url     string
	counted *store.Counter // counts the calls to the store
	runner  worker.Runner
	plan    *manifest.Plan
	live    live
}

// live counts recorded outcomes, even if no checkpoint lists them yet.
type live struct{ urls atomic.Int64 }

func (l *live) Add(name string, n int64) {
	if name == stages.CountURLs {
		l.urls.Add(n)
	}
}

// newLab plans the crawl. If the function under is not nil, newLab wraps the store with it before
// the metrics wrap the store.
func newLab(t *testing.T, under func(store.Bucket) store.Bucket) *lab {
	t.Helper()
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.FaultShare, w.CrawlDelay, w.RetryAfter = 12, 40, 0.4, 0, 0
	w.Faults = faults.Quick | faults.Retried | faults.Slow
	web, err := simweb.New(w)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	serving, stop := context.WithCancel(context.Background())
	go func() { served <- simweb.NewServer(web, nil).Serve(serving, ln) }()
	t.Cleanup(func() { stop(); <-served })

	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	pause := config.Duration(5 * time.Millisecond)
	cfg.Politeness.Delay = pause
	cfg.Fetch.Pauses = config.Pauses{RateLimited: pause, Timeout: pause, ServerError: pause, DNS: pause, Breaker: pause}
	cfg.Fetch.Timeout = config.Timeout{Connect: config.Duration(time.Second), FirstByte: config.Duration(150 * time.Millisecond), Total: config.Duration(400 * time.Millisecond)}
	cfg.Fetch.ConnectTo = []string{"::" + ln.Addr().String()}
	cfg.Plan.PartitionURLs = 60
	seeds := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(seeds, []byte(strings.Join(slices.Collect(web.Seeds()), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	clock := stages.SystemClock{}
	plan, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: b, Crawl: crawl, Sources: []source.Source{from}, Config: cfg, Clock: clock, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Partitions) < 2 {
		t.Fatalf("%d partitions", len(plan.Partitions))
	}
	l := &lab{t: t, metrics: metrics.New("v1.2-test", clock), plan: plan}
	log := slog.New(slog.DiscardHandler)
	server, err := l.metrics.Listen("127.0.0.1:0", log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	l.url = "http://" + server.Addr().String() + "/metrics"
	var kept store.Bucket = b
	if under != nil {
		kept = under(b)
	}
	l.counted = store.Count(kept)
	l.runner = worker.Runner{
		Bucket: l.metrics.Bucket(l.counted), Config: cfg, Version: "test", Scratch: t.TempDir(), Clock: clock, Log: log,
		Progress: l.metrics.Progress(&l.live),
	}
	return l
}

func (l *lab) tasks(stage stages.Stage) []stages.Task {
	var all []stages.Task
	for n := range stage.Tasks(l.plan) {
		all = append(all, stages.Task{Stage: stage, Crawl: crawl, Partition: n})
	}
	return all
}

// scrape returns the samples that are not zero, by name and labels.
func (l *lab) scrape() map[string]float64 {
	l.t.Helper()
	resp, err := http.Get(l.url)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		l.t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
	}
	samples := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			l.t.Fatalf("%q: %v", line, err)
		}
		if v != 0 {
			samples[line[:i]] = v
		}
	}
	return samples
}

// withPrefixes returns the samples whose names have one of the prefixes.
func withPrefixes(samples map[string]float64, prefixes ...string) map[string]float64 {
	out := map[string]float64{}
	for name, v := range samples {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				out[name] = v
			}
		}
	}
	return out
}

// committed returns the counts in the results of the fetch tasks.
func (l *lab) committed() map[string]float64 {
	l.t.Helper()
	want := map[string]float64{}
	for _, task := range l.tasks(stages.Fetch) {
		r, _, err := roundstate.LoadResult(l.t.Context(), l.runner.Bucket, task)
		if err != nil || r == nil {
			l.t.Fatalf("%s: %v, %v", task, r, err)
		}
		for _, c := range r.Counts {
			if o, ok := strings.CutPrefix(c.Name, stages.CountOutcomes); ok {
				want[fmt.Sprintf("crawler_urls_checkpointed_total{status=%q}", o)] += float64(c.N)
			}
		}
	}
	return want
}

// requestRows counts the rows of requests.
func (l *lab) requestRows() map[string]float64 {
	l.t.Helper()
	want := map[string]float64{}
	for _, task := range l.tasks(stages.Fetch) {
		r, _, err := roundstate.LoadResult(l.t.Context(), l.runner.Bucket, task)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, f := range r.Files {
			if f.Dataset != stages.FileRequests {
				continue
			}
			rows, err := table.Open[schema.Request](l.t.Context(), l.runner.Bucket, f.Key)
			if err != nil {
				l.t.Fatal(err)
			}
			for row, err := range rows.All(l.t.Context()) {
				if err != nil {
					l.t.Fatal(err)
				}
				if row.Status != 0 {
					want[fmt.Sprintf("crawler_http_response_total{status_code=\"%d\"}", row.Status)]++
				}
				if row.ErrorClass == string(schema.Timeout) {
					want["crawler_fetch_timeout_total"]++
				}
				brokenOff := row.Status == 0 && row.ErrorClass == "" // made again with the same number
				if row.Purpose == schema.ForPage && row.Attempt > 1 && !brokenOff {
					want["retries"]++
				}
				if row.BytesSent > 0 {
					want["crawler_crawl_duration_seconds_count"]++
					want["milliseconds"] += float64(row.TotalMS)
					want["crawler_received_bytes_total"] += float64(row.BytesReceived)
				}
			}
			if err := rows.Close(); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	return want
}

// urlSeries lists the prefixes of the series that never count a URL twice: counters that count each
// URL once, and gauges.
var urlSeries = []string{"crawler_urls_checkpointed_", "crawler_urls_queued", "crawler_worker_"}

func TestFiguresOfACrawlAreThoseOfItsResults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	l := newLab(t, nil)
	for _, task := range append(l.tasks(stages.Fetch), l.tasks(stages.Merge)...) {
		if err := l.runner.Run(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	got := l.scrape()
	stored := l.counted.Counts()
	committed, requested := l.committed(), l.requestRows()
	if d := cmp.Diff(committed, withPrefixes(got, urlSeries...)); d != "" {
		t.Errorf("URLs: (-results +metrics)\n%s", d)
	}
	total := 0.0
	for name, n := range committed {
		total += n
		// No attempt lost an outcome, so the live counters equal those of the checkpoints.
		if live := strings.Replace(name, "checkpointed", "processed", 1); got[live] != n {
			t.Errorf("%s is %v, want %v", live, got[live], n)
		}
	}
	blocked := committed[`crawler_urls_checkpointed_total{status="robots_denied"}`]
	if total != float64(l.plan.URLs) || blocked == 0 || got["crawler_robots_blocked_total"] != blocked {
		t.Errorf("%v outcomes of %d URLs, %v blocked, want %v", total, l.plan.URLs, got["crawler_robots_blocked_total"], blocked)
	}
	retried, ms := requested["retries"], requested["milliseconds"]
	delete(requested, "retries")
	delete(requested, "milliseconds")
	if d := cmp.Diff(requested, withPrefixes(got, "crawler_http_", "crawler_fetch_timeout_", "crawler_crawl_duration_seconds_count", "crawler_received_")); d != "" {
		t.Errorf("requests: (-tables +metrics)\n%s", d)
	}
	if requested["crawler_fetch_timeout_total"] == 0 || len(requested) < 6 {
		t.Errorf("the web caused no retries or denials: %v", requested)
	}
	if sum := math.Round(1000 * got["crawler_crawl_duration_seconds_sum"]); ms == 0 || sum != ms {
		t.Errorf("the requests took %v ms, want %v", sum, ms)
	}
	retries := 0.0
	for _, n := range withPrefixes(got, "crawler_retries_total") {
		retries += n
	}
	if retries < retried || retried == 0 || got[`crawler_retries_total{reason="server_error"}`] == 0 || got[`crawler_retries_total{reason="timeout"}`] == 0 {
		t.Errorf("%v retries, %v requests repeated: %v", retries, retried, withPrefixes(got, "crawler_retries_total"))
	}
	l.checkWrites(got, stored)
	if hits, misses := got[`crawler_cache_lookups_total{cache="robots",result="hit"}`], got[`crawler_cache_lookups_total{cache="robots",result="miss"}`]; misses == 0 || hits < float64(l.plan.URLs)-misses {
		t.Errorf("%v hits and %v misses of the cache of robots.txt files, but %d URLs", hits, misses, l.plan.URLs)
	}
	if n := l.parts(); got["crawler_db_write_duration_seconds_count"] != n {
		t.Errorf("%v table writes timed, %v parts there", got["crawler_db_write_duration_seconds_count"], n)
	}
	if got[`crawlbatch_build_info{version="v1.2-test"}`] != 1 || got["go_goroutines"] == 0 || got["process_resident_memory_bytes"] == 0 {
		t.Errorf("no word of the process: %v", withPrefixes(got, "crawlbatch_", "go_goroutines", "process_"))
	}

	// A second run of a task that has a result does nothing and counts nothing.
	for _, task := range l.tasks(stages.Fetch) {
		if err := l.runner.Run(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(withPrefixes(got, "crawler_urls", "crawler_http"), withPrefixes(l.scrape(), "crawler_urls", "crawler_http")); d != "" {
		t.Errorf("counted again:\n%s", d)
	}
}

// checkWrites compares the series of writes with the calls to the store, and with the objects in it.
func (l *lab) checkWrites(got map[string]float64, stored store.Counts) {
	l.t.Helper()
	written := withPrefixes(got, "crawler_store_written_bytes_total")
	sum := 0.0
	for _, n := range written {
		sum += n
	}
	if got["crawler_s3_write_duration_seconds_count"] != float64(stored.Puts) || sum != float64(stored.BytesOut) {
		l.t.Errorf("%v writes timed, %v bytes, want %+v", got["crawler_s3_write_duration_seconds_count"], sum, stored)
	}
	there := map[string]float64{} // of objects that are never replaced
	for folder, dataset := range map[string]string{"tables/captures/": "captures", "tables/fetches/": "fetches", "tables/links/": "links", "warc/": "warc"} {
		for info, err := range l.counted.List(l.t.Context(), folder) {
			if err != nil {
				l.t.Fatal(err)
			}
			there[fmt.Sprintf("crawler_store_written_bytes_total{dataset=%q}", dataset)] += float64(info.Size)
		}
	}
	for series, n := range there {
		if written[series] != n {
			l.t.Errorf("%s is %v, but the store has %v", series, written[series], n)
		}
	}
	if len(there) < 4 || written[`crawler_store_written_bytes_total{dataset="documents"}`] == 0 || written[`crawler_store_written_bytes_total{dataset="working"}`] == 0 {
		l.t.Errorf("%v of %v", written, there)
	}
}

// parts counts the parts of tables that fetch and merge wrote.
func (l *lab) parts() float64 {
	l.t.Helper()
	n := 0.0
	for _, stage := range []stages.Stage{stages.Fetch, stages.Merge} {
		for _, task := range l.tasks(stage) {
			r, _, err := roundstate.LoadResult(l.t.Context(), l.runner.Bucket, task)
			if err != nil || r == nil {
				l.t.Fatalf("%s: %v, %v", task, r, err)
			}
			for _, f := range r.Files {
				if strings.HasSuffix(f.Key, ".parquet") {
					n++
				}
			}
		}
	}
	return n
}

// forgetful is a store that refuses segments until the test switches the fault off.
type forgetful struct {
	store.Bucket
	mended atomic.Bool
}

func (f *forgetful) Unwrap() store.Bucket { return f.Bucket }

func (f *forgetful) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if !f.mended.Load() && strings.HasPrefix(key, layout.FetchDir(crawl, 0, 0)+"segments/") {
		return "", fmt.Errorf("create %q: %w", key, store.ErrDenied)
	}
	return f.Bucket.Create(ctx, key, body, size)
}

func TestURLsThatAFailedAttemptLostAreCountedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	var disk *forgetful
	l := newLab(t, func(b store.Bucket) store.Bucket { disk = &forgetful{Bucket: b}; return disk })
	first := l.tasks(stages.Fetch)[0]
	if err := l.runner.Run(t.Context(), first); err == nil {
		t.Fatal("an attempt that lost its segment succeeded")
	}
	if got := withPrefixes(l.scrape(), urlSeries...); len(got) > 0 {
		t.Errorf("an attempt that nothing is left of counts as %v", got)
	}
	lost := l.live.urls.Load()
	disk.mended.Store(true)
	for _, task := range l.tasks(stages.Fetch) {
		if err := l.runner.Run(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(l.committed(), withPrefixes(l.scrape(), urlSeries...)); d != "" {
		t.Errorf("(-results +metrics)\n%s", d)
	}
	if all := l.live.urls.Load(); lost == 0 || all != l.plan.URLs+lost {
		t.Errorf("%d outcomes were recorded, %d of them lost, of %d URLs: nothing was fetched twice", all, lost, l.plan.URLs)
	}
}

// Checkpoints are up to ten minutes apart. If counters moved only at checkpoints, a healthy crawl
// would look stalled.
func TestCountersMoveBetweenCheckpoints(t *testing.T) {
	l := newLab(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var during map[string]float64
	l.runner.Progress = l.metrics.Progress(adder(func(name string, n int64) {
		if name == stages.CountRecorded+string(schema.OK) && during == nil {
			during = l.scrape()
			stop()
		}
	}))
	l.runner.Config.Fetch.Slots = 1
	if err := l.runner.Run(ctx, l.tasks(stages.Fetch)[0]); err == nil {
		t.Fatal("an attempt continued after it was told to stop")
	}
	if during[`crawler_urls_processed_total{status="ok"}`] != 1 || len(withPrefixes(during, "crawler_urls_checkpointed_")) > 0 {
		t.Errorf("before the first checkpoint: %v", withPrefixes(during, "crawler_urls_"))
	}
}

// TestTheLinterOfPromtoolFindsNothing runs the linter of `promtool check metrics`.
func TestTheLinterOfPromtoolFindsNothing(t *testing.T) {
	l := newLab(t, nil)
	for _, code := range []string{"200", "404"} {
		l.metrics.Progress(stages.NoProgress{}).Add(stages.CountAnswers+code, 1)
	}
	lint := func() []promlint.Problem {
		t.Helper()
		resp, err := http.Get(l.url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		problems, err := promlint.New(resp.Body).Lint()
		if err != nil {
			t.Fatal(err)
		}
		return problems
	}
	if problems := lint(); len(problems) > 0 {
		t.Errorf("%+v", problems)
	}
	l.metrics.Legacy()
	if problems := lint(); len(problems) != 1 || problems[0].Metric != "crawler_urls_queued_total" {
		t.Errorf("with the old names: %+v", problems)
	}
}

func TestTheQueueIsOfTheTasksThatRun(t *testing.T) {
	l := newLab(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first := l.tasks(stages.Fetch)[0]
	var during map[string]float64
	l.runner.Progress = l.metrics.Progress(adder(func(name string, n int64) {
		if name == stages.CountRequests && during == nil {
			during = l.scrape() // the first response is for robots.txt
			stop()
		}
	}))
	l.runner.Config.Fetch.Slots = 1
	l.runner.Watcher = l.metrics.Watcher(nil)
	if err := l.metrics.Attempt(l.runner.Run)(ctx, first); err == nil {
		t.Fatal("an attempt continued after it was told to stop")
	}
	hosts := 0.0
	for _, n := range withPrefixes(during, "crawler_hosts{") {
		hosts += n
	}
	// The host whose robots.txt is answered has a request under way.
	if n := l.plan.Partitions[0].Hosts; hosts != float64(n-1) || during[`crawler_tasks_running{stage="fetch"}`] != 1 {
		t.Errorf("%v other hosts of %d: %v", hosts, n, withPrefixes(during, "crawler_hosts", "crawler_tasks"))
	}
	if n := l.plan.Partitions[0].URLs; during["crawler_urls_queued"] != float64(n) {
		t.Errorf("%v URLs queued of %d", during["crawler_urls_queued"], n)
	}
	if after := l.scrape(); after["crawler_urls_queued"] != 0 || after["crawler_worker_active_fetches"] != 0 || len(withPrefixes(after, "crawler_hosts", "crawler_tasks")) > 0 {
		t.Errorf("nothing runs: %v", withPrefixes(after, append(urlSeries, "crawler_hosts", "crawler_tasks")...))
	}
}

type adder func(string, int64)

func (f adder) Add(name string, n int64) { f(name, n) }
