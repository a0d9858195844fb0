// Package metrics exports what this process does to Prometheus.
//
// The package counts the events of running tasks (stages.Progress), the hosts for which they wait
// (stages.Watcher), and the progress of the driver (jobs.Observer), and times the writes to the
// store. The package exports the series that New registers, and the series of the Go runtime and of
// the process. A Server serves all series under /metrics until Close. A nil *Metrics measures
// nothing and costs nothing. No label contains a host, domain or URL, so the number of series is
// limited. The exception are the series that TopHosts adds. Numbers by domain are in the datasets
// fetches and hosts.
//
// Counters belong to this process and start at zero. All counters except
// crawler_urls_checkpointed_total count an event when it happens, so they show within seconds
// whether a crawl makes progress. Such a counter counts an event twice if an attempt loses work and
// a later attempt repeats the work.
//
// The counter crawler_urls_checkpointed_total counts a URL when a checkpoint lists the URL's
// outcome. A task writes a checkpoint every minute, or every ten minutes while little happens. The
// counter counts a URL at most once, even if several attempts at the task fail. The counter's sum
// over all pods equals the counts in the tasks' results, except for events between a pod's last
// scrape and its end.
//
// No value is exported that can be computed from other series. For example, the error rate of a
// worker is a quotient of rates of crawler_urls_processed_total by status. Recording rules of the
// component monitoring (k8s) compute such values. The progress of a whole round is exported by its
// driver only.
//
// The package imports jobs, stages and formats. Only cmd imports the package.
package metrics

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// Metrics holds the series of one process. The methods of Metrics are safe for concurrent use. On a
// nil *Metrics, they do nothing.
type Metrics struct {
	clock    stages.Clock
	registry *prometheus.Registry

	series  map[string][]adder     // series that a counter of the tasks adds to, by the counter's name; the map never changes
	answers *prometheus.CounterVec // number of responses, by status code
	legacy  prometheus.Gauge       // the gauge of queued URLs under its old name; registered only by Legacy

	storeWrites  prometheus.Histogram
	tableWrites  prometheus.Histogram
	writtenBytes map[string]prometheus.Counter // by dataset; the map never changes

	ready     atomic.Bool          // whether work has begun
	storeAway atomic.Bool          // whether the last call to the store got no answer
	running   *prometheus.GaugeVec // number of attempts under way, by stage
	hosts     *hosts
	round     *round
}

// adder is a counter or a gauge.
type adder interface{ Add(float64) }

// seconds is a histogram in seconds. It observes each number that is added to it, in milliseconds.
type seconds struct{ prometheus.Histogram }

// Add implements adder.
func (s seconds) Add(ms float64) { s.Observe(ms / 1000) }

// writeBuckets holds the upper bounds of the write histograms, in seconds. They suit both a small
// object on a local disk and a WARC file of 1 GiB in a slow store.
var writeBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// requestBuckets holds the upper bounds of the histogram of requests, in seconds. fetch.timeout.total
// is 30 s by default.
var requestBuckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60}

// Legacy adds crawler_urls_queued_total, the old name of the gauge crawler_urls_queued, for
// dashboards that still use it.
func (m *Metrics) Legacy() { m.registry.MustRegister(m.legacy) }

// New returns the series of a process that runs the given version of crawlbatch, all at zero. The
// clock measures the duration of writes.
func New(version string, clock stages.Clock) *Metrics {
	m := &Metrics{clock: clock, registry: prometheus.NewRegistry(), series: map[string][]adder{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	register := promauto.With(m.registry)
	register.NewGauge(prometheus.GaugeOpts{
		Name: "crawlbatch_build_info", Help: "Always 1; the label is the version of crawlbatch.",
		ConstLabels: prometheus.Labels{"version": strings.ToValidUTF8(version, "?")},
	}).Set(1)
	counters := func(name, label, help string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	writes := func(name, help string) prometheus.Histogram {
		return register.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: writeBuckets})
	}
	processed := counters("crawler_urls_processed_total", "status", "Planned URLs by outcome (status), counted when the outcome is recorded, and again if an attempt loses the outcome and a later attempt repeats the work.")
	listed := counters("crawler_urls_checkpointed_total", "status", "Planned URLs by outcome (status), counted when a checkpoint lists the outcome; each URL counts at most once.")
	for _, o := range schema.Outcomes {
		m.series[stages.CountOutcomes+string(o)] = []adder{listed.WithLabelValues(string(o))}
		m.series[stages.CountRecorded+string(o)] = []adder{processed.WithLabelValues(string(o))}
	}
	denied := stages.CountRecorded + string(schema.RobotsDenied)
	m.series[denied] = append(m.series[denied], register.NewCounter(prometheus.CounterOpts{Name: "crawler_robots_blocked_total", Help: "URLs that robots.txt forbids."}))
	retries := counters("crawler_retries_total", "reason", "Failed requests that will be made again, by the class of the failure.")
	for _, class := range stages.RetryClasses {
		m.series[stages.CountRetries+class] = []adder{retries.WithLabelValues(class)}
	}
	m.answers = counters("crawler_http_response_total", "status_code", "HTTP responses by status code (other: above 599), including responses to redirects, robots.txt and repeated requests.")
	m.series[stages.CountTimeouts] = []adder{register.NewCounter(prometheus.CounterOpts{
		Name: "crawler_fetch_timeout_total", Help: "Requests that failed for a time-out (connect, first byte or total), before any retry.",
	})}
	m.legacy = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "crawler_urls_queued_total", Help: "The old name of crawler_urls_queued. A gauge, in spite of its name.",
	})
	queued := register.NewGauge(prometheus.GaugeOpts{
		Name: "crawler_urls_queued", Help: "URLs of the fetch tasks in this process whose outcome no checkpoint lists yet.",
	})
	m.series[stages.CountQueued] = []adder{queued, m.legacy}
	m.series[stages.CountFlights] = []adder{register.NewGauge(prometheus.GaugeOpts{
		Name: "crawler_worker_active_fetches", Help: "Requests under way in this process.",
	})}
	m.series[stages.CountTook] = []adder{seconds{register.NewHistogram(prometheus.HistogramOpts{
		Name: "crawler_crawl_duration_seconds", Help: "Duration of requests, from the request to the end of the response, successful or not, including robots.txt.", Buckets: requestBuckets,
	})}}
	m.series[stages.CountBytes] = []adder{register.NewCounter(prometheus.CounterOpts{Name: "crawler_received_bytes_total", Help: "Bytes received from hosts."})}
	m.storeWrites = writes("crawler_s3_write_duration_seconds", "Duration of writes to the store (S3 or not), of all sizes, successful or not, including retries.")
	m.tableWrites = writes("crawler_db_write_duration_seconds", "Duration of those writes to the store that commit a part of a table (Parquet).")
	written := counters("crawler_store_written_bytes_total", "dataset", "Bytes of the objects that were written to the store, by dataset; also warc, webgraph, documents (JSON) and working (all other files that only tasks read).")
	m.writtenBytes = map[string]prometheus.Counter{}
	for _, name := range datasetNames() {
		m.writtenBytes[name] = written.WithLabelValues(name)
	}
	lookups := register.NewCounterVec(prometheus.CounterOpts{
		Name: "crawler_cache_lookups_total", Help: "Look-ups in the caches of fetch tasks (dns: addresses of hosts; robots: robots.txt files) by result: hit, or miss (a request followed).",
	}, []string{"cache", "result"})
	for _, cache := range stages.Caches {
		m.series[stages.CountHits+cache] = []adder{lookups.WithLabelValues(cache, "hit")}
		m.series[stages.CountMisses+cache] = []adder{lookups.WithLabelValues(cache, "miss")}
	}
	answers := counters("crawler_url_filter_answers_total", "answer", "Answers of the URL filters of earlier rounds about the URLs that a plan lists, by file: absent, found (perhaps, and found), or not_found (perhaps, but not found: a false positive, or a URL that was only skipped). Only `plan` asks.")
	for _, answer := range stages.FilterAnswers {
		m.series[stages.CountFilter+answer] = []adder{answers.WithLabelValues(answer)}
	}
	m.running = register.NewGaugeVec(prometheus.GaugeOpts{Name: "crawler_tasks_running", Help: "Attempts at tasks under way in this process, by stage."}, []string{"stage"})
	for _, stage := range stages.Order {
		m.running.WithLabelValues(string(stage))
	}
	m.hosts = newHosts(clock)
	m.registry.MustRegister(m.hosts)
	m.round = newRound(register)
	return m
}

// Progress returns a stages.Progress that counts each event. It then passes the event on to the
// parameter next.
func (m *Metrics) Progress(next stages.Progress) stages.Progress {
	if m == nil {
		return next
	}
	return &progress{m, next}
}

type progress struct {
	m    *Metrics
	next stages.Progress
}

// Add implements stages.Progress.
func (p *progress) Add(name string, n int64) {
	p.m.addCount(name, n)
	p.next.Add(name, n)
}

// addCount adds n to each series of the given name.
func (m *Metrics) addCount(name string, n int64) {
	for _, series := range m.series[name] {
		series.Add(float64(n))
	}
	if code, ok := strings.CutPrefix(name, stages.CountAnswers); ok {
		m.answers.WithLabelValues(statusLabel(code)).Add(float64(n))
	}
}

// statusLabel returns the status code, or "other" if HTTP does not define the code's class (RFC
// 9110, section 15). A server may send any number up to 999.
func statusLabel(code string) string {
	if len(code) != 3 || code[0] < '1' || code[0] > '5' {
		return "other"
	}
	return code
}
