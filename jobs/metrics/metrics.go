// Package metrics exports what this process does to Prometheus.
//
// In: the counters of running tasks (stages.Progress) and writes to the store. Out: the series of
// New and those of the Go runtime and the process. A Server serves them under /metrics until it is
// closed. A nil *Metrics measures nothing and costs nothing. The number of series is bounded,
// whatever servers answer: no label contains a host, domain or URL. The datasets fetches and hosts
// have the numbers by domain.
//
// Counters belong to this process and start at zero. All except one count events at once, so they
// show within seconds whether a crawl makes progress. They count work twice if one attempt loses it
// and another repeats it. The exception, crawler_urls_checkpointed_total, counts a URL when a
// checkpoint lists its outcome. Checkpoints are written every minute, or every ten minutes while
// little happens. It counts a URL at most once, even if several attempts at its task fail. Its sum
// over all pods equals the counts of the tasks' results, except for what a pod counted between its
// last scrape and its end.
//
// There are no series for values that can be derived. For example, the error rate of a worker is a
// quotient of rates of crawler_urls_processed_total by status. Only the store knows the progress of
// a whole crawl (`crawlbatch status`).
//
// It imports stages and formats, and only cmd imports it.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// Metrics holds the series of one process. Several goroutines may call its methods at the same
// time, also on a nil *Metrics.
type Metrics struct {
	clock    stages.Clock
	registry *prometheus.Registry

	processed map[string]prometheus.Counter // by outcome; the map does not change
	listed    map[string]prometheus.Counter // by outcome; the map does not change
	retries   map[string]prometheus.Counter // by class; the map does not change
	answers   *prometheus.CounterVec        // by status code
	robots    prometheus.Counter
	timeouts  prometheus.Counter
	queued    prometheus.Gauge
	legacy    prometheus.Gauge // queued URLs under the old name; registered only by Legacy
	flights   prometheus.Gauge

	storeWrites prometheus.Histogram
	tableWrites prometheus.Histogram
}

// writeBuckets holds the upper bounds of the write histograms in seconds. They cover a small object
// on a local disk as well as a WARC file of 1 GiB in a slow store.
var writeBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// Legacy adds series under their old names, for dashboards that use them: crawler_urls_queued_total
// is the old name of the gauge crawler_urls_queued.
func (m *Metrics) Legacy() { m.registry.MustRegister(m.legacy) }

// New returns the series of a process that runs the given version of crawlbatch, all at zero. It
// uses the clock to time writes.
func New(version string, clock stages.Clock) *Metrics {
	m := &Metrics{
		clock: clock, registry: prometheus.NewRegistry(),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crawler_http_response_total",
			Help: "HTTP answers received, by status code (other: beyond 599), those to redirects, robots.txt and repeated requests included.",
		}, []string{"status_code"}),
		robots: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "crawler_robots_blocked_total",
			Help: "URLs that robots.txt forbids.",
		}),
		timeouts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "crawler_fetch_timeout_total",
			Help: "Requests that failed for a time-out (connect, first byte or total), before any retry.",
		}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crawler_urls_queued",
			Help: "URLs, of the fetch tasks that run in this process, whose outcome no checkpoint lists yet.",
		}),
		legacy: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crawler_urls_queued_total",
			Help: "The old name of crawler_urls_queued. A gauge, in spite of its name.",
		}),
		flights: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crawler_worker_active_fetches",
			Help: "Requests under way in this process.",
		}),
		storeWrites: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "crawler_s3_write_duration_seconds", Buckets: writeBuckets,
			Help: "Duration of writes to the store, of S3 or not, of whatever size and end, retries included.",
		}),
		tableWrites: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "crawler_db_write_duration_seconds", Buckets: writeBuckets,
			Help: "Of the writes to the store, those that commit a part of a table (Parquet).",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "crawlbatch_build_info", Help: "Always 1; the label is the version of crawlbatch.",
		ConstLabels: prometheus.Labels{"version": strings.ToValidUTF8(version, "?")},
	})
	build.Set(1)
	processed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crawler_urls_processed_total",
		Help: "Planned URLs by outcome (status), as it is recorded; once more when an attempt lost it and another repeats the work.",
	}, []string{"status"})
	listed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crawler_urls_checkpointed_total",
		Help: "Planned URLs by outcome (status), once a checkpoint lists it; at most once each.",
	}, []string{"status"})
	retries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crawler_retries_total",
		Help: "Failed requests that are to be made again, by the class of the failure.",
	}, []string{"reason"})
	m.registry.MustRegister(
		processed, listed, retries, m.answers, m.robots, m.timeouts, m.queued, m.flights, m.storeWrites, m.tableWrites, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.processed, m.listed, m.retries = map[string]prometheus.Counter{}, map[string]prometheus.Counter{}, map[string]prometheus.Counter{}
	for _, o := range schema.Outcomes {
		m.listed[string(o)] = listed.WithLabelValues(string(o))
		m.processed[string(o)] = processed.WithLabelValues(string(o))
	}
	for _, class := range stages.RetryClasses {
		m.retries[class] = retries.WithLabelValues(class)
	}
	return m
}

// Progress returns a stages.Progress that counts and then calls next.
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
	p.m.count(name, n)
	p.next.Add(name, n)
}

// count counts names that have a series and ignores others.
func (m *Metrics) count(name string, n int64) {
	switch name {
	case stages.CountFlights:
		m.flights.Add(float64(n))
		return
	case stages.CountQueued:
		m.queued.Add(float64(n))
		m.legacy.Add(float64(n))
		return
	case stages.CountTimeouts:
		m.timeouts.Add(float64(n))
		return
	}
	if code, ok := strings.CutPrefix(name, stages.CountAnswers); ok {
		m.answers.WithLabelValues(statusLabel(code)).Add(float64(n))
	} else if outcome, ok := strings.CutPrefix(name, stages.CountOutcomes); ok {
		if c := m.listed[outcome]; c != nil {
			c.Add(float64(n))
		}
	} else if outcome, ok := strings.CutPrefix(name, stages.CountRecorded); ok {
		if c := m.processed[outcome]; c != nil {
			c.Add(float64(n))
		}
		if outcome == string(schema.RobotsDenied) {
			m.robots.Add(float64(n))
		}
	} else if class, ok := strings.CutPrefix(name, stages.CountRetries); ok {
		if c := m.retries[class]; c != nil {
			c.Add(float64(n))
		}
	}
}

// statusLabel returns the status code if HTTP defines its class (RFC 9110, section 15), otherwise
// "other". Servers may answer with any number up to 999.
func statusLabel(code string) string {
	if len(code) != 3 || code[0] < '1' || code[0] > '5' {
		return "other"
	}
	return code
}
