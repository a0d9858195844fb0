package metrics_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/stages"
)

// calls is an Observer and a Watcher that counts calls.
type calls struct{ observed, watched, ended int }

func (c *calls) StageStarted(jobs.StageStart) { c.observed++ }
func (c *calls) TaskDone(stages.Task, error)  { c.observed++ }
func (c *calls) StageDone(stages.Stage, int)  { c.observed++ }
func (c *calls) RoundDone(s *manifest.Sealed) { c.observed++ }
func (c *calls) Watch(stages.Task, func() stages.Activity) func() {
	c.watched++
	return func() { c.ended++ }
}

// driven serves the metrics of a driver.
type driven struct {
	lab
	jobs.Observer
	next     calls
	recorded int64
}

func newDriven(t *testing.T) *driven {
	t.Helper()
	d := &driven{lab: lab{t: t, metrics: metrics.New("test", stages.SystemClock{})}}
	s := listen(t, d.metrics)
	t.Cleanup(s.Close)
	d.url = "http://" + s.Addr().String() + "/metrics"
	d.Observer = d.metrics.Observer(&d.next, func(s stages.Stage) int {
		if s == stages.Fetch {
			return 2
		}
		return 1
	}, func() int64 { return d.recorded }, func(s *manifest.Sealed, each func(manifest.File)) {
		for _, f := range s.Files {
			each(f)
		}
	})
	return d
}

// check compares the series of the driver.
func (d *driven) check(when string, want map[string]float64) {
	d.t.Helper()
	if diff := cmp.Diff(want, withPrefixes(d.scrape(), "crawler_round", "crawler_tasks", "crawler_sealed")); diff != "" {
		d.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestADriverExportsTheProgressOfItsRound(t *testing.T) {
	d := newDriven(t)
	fetch := func(n int) stages.Task { return stages.Task{Stage: stages.Fetch, Crawl: crawl, Partition: n} }
	d.check("before the first stage", map[string]float64{})
	d.StageStarted(jobs.StageStart{Stage: stages.Fetch, Tasks: 4, Missing: []stages.Task{fetch(1), fetch(2), fetch(3)}, URLs: 100, Recorded: 30})
	d.recorded = 42
	d.check("during fetch", map[string]float64{"crawler_round_planned_urls": 100, "crawler_round_recorded_urls": 42, "crawler_tasks_wanted": 2})
	d.TaskDone(fetch(1), nil)
	d.TaskDone(fetch(2), errors.New("it failed"))
	d.recorded = 90
	ended := map[string]float64{
		"crawler_round_planned_urls": 100, "crawler_round_recorded_urls": 90, "crawler_tasks_wanted": 1,
		`crawler_tasks_ended_total{result="done",stage="fetch"}`: 1, `crawler_tasks_ended_total{result="failed",stage="fetch"}`: 1,
	}
	d.check("with one task left", ended)
	d.StageDone(stages.Fetch, 1)
	d.recorded = 0 // the display forgets the URLs at the next stage, but the metrics must not
	delete(ended, "crawler_tasks_wanted")
	d.check("after fetch", ended)
	d.StageStarted(jobs.StageStart{Stage: stages.Merge, Tasks: 4, Missing: []stages.Task{{Stage: stages.Merge}, {Stage: stages.Merge}}})
	ended["crawler_tasks_wanted"] = 1
	d.check("during merge", ended)
	if d.next.observed != 5 {
		t.Errorf("%d events were passed on", d.next.observed)
	}
}

func TestADriverExportsTheExactNumbersOfSealedRounds(t *testing.T) {
	d := newDriven(t)
	for range 2 {
		d.RoundDone(&manifest.Sealed{Counts: []manifest.Count{
			{Name: "fetch.urls", N: 9}, {Name: "merge.outcome.deferred", N: 2}, {Name: "merge.outcome.novel", N: 5}, {Name: "merge.outcome.ok", N: 7},
			{Name: "publish.duplicates", N: 1}, {Name: "publish.pages", N: 6},
		}, Files: []manifest.File{
			{Key: layout.Captures(crawl, "warc", 0, 1), Bytes: 10}, {Key: layout.Captures(crawl, "robotstxt", 0, 1), Bytes: 5},
			{Key: layout.Table("pages", crawl, 0, 1), Bytes: 100}, {Key: layout.WARC(crawl, 0, "p", 1, 1, 1), Bytes: 1000},
			{Key: layout.CDXJ(layout.WARC(crawl, 0, "p", 1, 1, 1)), Bytes: 7}, {Key: layout.WebGraph(crawl, 0, "host-edges"), Bytes: 3},
			{Key: layout.URLFilter(crawl, 0, 0), Bytes: 4}, {Key: layout.Working(crawl, 0, "dedup", "representatives", 0), Bytes: 40},
			{Key: layout.Table("novel", crawl, 0, 1), Bytes: 2},
		}})
	}
	d.check("two rounds", map[string]float64{
		"crawler_sealed_rounds": 2, "crawler_sealed_pages": 12, "crawler_sealed_duplicates": 2,
		`crawler_sealed_urls{status="deferred"}`: 4, `crawler_sealed_urls{status="ok"}`: 14,
		`crawler_sealed_bytes{dataset="captures"}`: 30, `crawler_sealed_bytes{dataset="pages"}`: 200, `crawler_sealed_bytes{dataset="warc"}`: 2014,
		`crawler_sealed_bytes{dataset="webgraph"}`: 6, `crawler_sealed_bytes{dataset="working"}`: 92,
	})
	if d.next.observed != 2 {
		t.Errorf("%d events were passed on", d.next.observed)
	}
}

func TestAProcessIsReadyOnceWorkHasBegun(t *testing.T) {
	d := newDriven(t)
	status := func() int {
		t.Helper()
		resp, err := http.Get(strings.Replace(d.url, "/metrics", "/readyz", 1))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("before the first stage: status %d", got)
	}
	d.StageStarted(jobs.StageStart{Stage: stages.Fetch})
	if got := status(); got != http.StatusOK {
		t.Errorf("in the first stage: status %d", got)
	}
}

// manual is a clock that the test sets.
type manual struct {
	stages.SystemClock
	now time.Time
}

func (m *manual) Now() time.Time { return m.now }

func TestHostsAreCountedOverTasksAndRarely(t *testing.T) {
	clock := &manual{now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	l := lab{t: t, metrics: metrics.New("test", clock)}
	s := listen(t, l.metrics)
	defer s.Close()
	l.url = "http://" + s.Addr().String() + "/metrics"
	var next calls
	w := l.metrics.Watcher(&next)
	looks := 0
	until := clock.now.Add(time.Minute)
	look := func() stages.Activity {
		looks++
		clock.now = clock.now.Add(200 * time.Millisecond)
		return stages.Activity{Closes: until, Ready: 1, Delayed: 2, More: 3, Suspended: 4, Waits: []stages.Wait{{Host: "a.test", Until: until}, {Host: "slowest.test"}, {Why: "the store is full", Until: until}}}
	}
	first, second := w.Watch(stages.Task{Partition: 1}, look), w.Watch(stages.Task{Partition: 2}, look)
	hosts := func() map[string]float64 { return withPrefixes(l.scrape(), "crawler_hosts", "crawler_window") }
	both := map[string]float64{`crawler_hosts{state="ready"}`: 2, `crawler_hosts{state="delayed"}`: 4, `crawler_hosts{state="waiting"}`: 8, "crawler_hosts_suspended": 8, "crawler_window_closes_timestamp_seconds": float64(until.Unix())}
	if diff := cmp.Diff(both, hosts()); diff != "" {
		t.Errorf("two tasks:\n%s", diff)
	}
	// A look took 200 ms, so the next one is allowed 20 s after it began.
	clock.now = clock.now.Add(19 * time.Second)
	if diff := cmp.Diff(both, hosts()); diff != "" || looks != 2 {
		t.Errorf("%d looks at two tasks:\n%s", looks, diff)
	}
	clock.now = clock.now.Add(2 * time.Second)
	first()
	if got := hosts(); looks != 3 || got["crawler_hosts_suspended"] != 4 {
		t.Errorf("%d looks, one task is left: %v", looks, got)
	}
	second()
	if got := hosts(); len(got) > 0 || next.watched != 2 || next.ended != 2 {
		t.Errorf("no task is left: %v, passed on %+v", got, next)
	}
}

func TestTheSlowestHostsHaveSeriesIfSomebodyAsks(t *testing.T) {
	for top, want := range map[int]int{0: 0, 3: 3, 1000: metrics.MaxTopHosts} {
		l := lab{t: t, metrics: metrics.New("test", &manual{now: time.Unix(0, 0)})}
		l.metrics.TopHosts(top)
		s := listen(t, l.metrics)
		defer s.Close()
		l.url = "http://" + s.Addr().String() + "/metrics"
		w := l.metrics.Watcher(nil)
		for task := range 2 {
			w.Watch(stages.Task{Partition: task}, func() stages.Activity {
				var a stages.Activity
				for i := range 20 {
					a.Slowest = append(a.Slowest, stages.SlowHost{Host: fmt.Sprintf("h%d.p%d.co.uk%s", i, task, []string{"", ":8080"}[task]), URLs: int64(100 - i), Rest: time.Duration(200-10*i+task) * time.Second, Delay: 1500 * time.Millisecond, Suspended: i == 1})
				}
				return a
			})
		}
		// While a partition changes hands, an old attempt may still know its hosts.
		w.Watch(stages.Task{}, func() stages.Activity {
			return stages.Activity{Slowest: []stages.SlowHost{{Host: "h0.p1.co.uk:8080", URLs: 150, Rest: 150 * time.Second}}}
		})
		got := withPrefixes(l.scrape(), "crawler_top_host_")
		if n := len(withPrefixes(got, "crawler_top_host_urls_left")); n != want {
			t.Errorf("%d hosts, want %d: %v", n, want, got)
		}
		if top != 3 {
			continue
		}
		all := map[string]float64{}
		for host, n := range map[string][3]float64{`{domain="p1.co.uk",host="h0.p1.co.uk:8080"}`: {100, 201}, `{domain="p0.co.uk",host="h0.p0.co.uk"}`: {100, 200}, `{domain="p1.co.uk",host="h1.p1.co.uk:8080"}`: {99, 191, 1}} {
			all["crawler_top_host_urls_left"+host], all["crawler_top_host_remaining_seconds"+host], all["crawler_top_host_delay_seconds"+host] = n[0], n[1], 1.5
			if n[2] > 0 {
				all["crawler_top_host_suspended"+host] = n[2]
			}
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}
