package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// round holds the series of a driver: the progress of the newest round, and the exact numbers of the
// sealed rounds. A driver reads both in the store, so they do not start at zero with a new driver.
type round struct {
	planned          prometheus.Gauge
	wanted           prometheus.Gauge
	ended            *prometheus.CounterVec // number of tasks, by stage and result
	sealed           prometheus.Gauge
	sealedURLs       map[string]prometheus.Gauge // number of URLs, by the name of the outcome's count; the map never changes
	sealedPages      prometheus.Gauge
	sealedDuplicates prometheus.Gauge
	sealedBytes      map[string]prometheus.Gauge // by dataset; the map never changes

	mu       sync.Mutex
	stage    stages.Stage // stage that runs, or "" between stages
	left     int          // number of its tasks that have not ended
	recorded int64        // number of URLs with an outcome, when last asked
	ask      func() int64 // returns the number of URLs of the running fetch stage that have an outcome
}

// The results of a task.
const (
	resultDone   = "done"
	resultFailed = "failed"
)

// newRound registers the series of a driver.
func newRound(register promauto.Factory) *round {
	r := &round{sealedURLs: map[string]prometheus.Gauge{}}
	gauge := func(name, help string) prometheus.Gauge {
		return register.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	r.planned = gauge("crawler_round_planned_urls", "URLs that the fetch stage of the newest round has to fetch.")
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "crawler_round_recorded_urls", Help: "URLs of crawler_round_planned_urls that have an outcome; for tasks in other processes, as of their last checkpoint.",
	}, r.recordedURLs)
	r.wanted = gauge("crawler_tasks_wanted", "Tasks that the driver wants to run now: those of its stage that have not ended, but at most as many as may run at a time.")
	r.ended = register.NewCounterVec(prometheus.CounterOpts{
		Name: "crawler_tasks_ended_total", Help: "Tasks that ended while this driver ran, by stage and result: done, or failed (after all attempts).",
	}, []string{"stage", "result"})
	for _, stage := range stages.Order {
		r.ended.WithLabelValues(string(stage), resultDone)
		r.ended.WithLabelValues(string(stage), resultFailed)
	}
	r.sealed = gauge("crawler_sealed_rounds", "Sealed rounds of the crawl.")
	urls := register.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crawler_sealed_urls", Help: "Planned URLs of the sealed rounds by outcome (status), from the results: exact, unlike sums of counters of processes that ended.",
	}, []string{"status"})
	for _, o := range schema.Outcomes {
		r.sealedURLs["merge."+stages.CountOutcomes+string(o)] = urls.WithLabelValues(string(o))
	}
	r.sealedPages = gauge("crawler_sealed_pages", "Rows of the dataset pages in the sealed rounds.")
	r.sealedDuplicates = gauge("crawler_sealed_duplicates", "Rows of crawler_sealed_pages that are exact or near duplicates.")
	bytes := register.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crawler_sealed_bytes", Help: "Bytes of the files that the sealed rounds keep, by dataset, from their manifests: exact, unlike crawler_store_written_bytes_total.",
	}, []string{"dataset"})
	r.sealedBytes = map[string]prometheus.Gauge{}
	for _, name := range datasetNames() {
		r.sealedBytes[name] = bytes.WithLabelValues(name)
	}
	return r
}

// recordedURLs returns the number of URLs with an outcome.
func (r *round) recordedURLs() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage == stages.Fetch && r.ask != nil {
		r.recorded = r.ask()
	}
	return float64(r.recorded)
}

// Observer returns a jobs.Observer that exports the progress of the driver. It passes each event on
// to the parameter next. limit returns how many tasks of a stage may run at a time. recorded returns
// how many URLs of the running fetch stage have an outcome; it is called at each scrape. files calls each
// for each file that a seal lists.
func (m *Metrics) Observer(next jobs.Observer, limit func(stages.Stage) int, recorded func() int64, files func(s *manifest.Sealed, each func(manifest.File))) jobs.Observer {
	if m == nil {
		return next
	}
	m.round.mu.Lock()
	m.round.ask = recorded
	m.round.mu.Unlock()
	return &observer{m, next, limit, files}
}

type observer struct {
	m     *Metrics
	next  jobs.Observer
	limit func(stages.Stage) int
	files func(s *manifest.Sealed, each func(manifest.File))
}

// StageStarted implements jobs.Observer.
func (o *observer) StageStarted(s jobs.StageStart) {
	o.next.StageStarted(s)
	o.m.ready.Store(true)
	o.set(func(r *round) {
		r.stage, r.left = s.Stage, len(s.Missing)
		if s.Stage == stages.Fetch {
			r.planned.Set(float64(s.URLs))
			r.recorded = s.Recorded
		}
	})
}

// TaskDone implements jobs.Observer.
func (o *observer) TaskDone(t stages.Task, err error) {
	o.next.TaskDone(t, err)
	result := resultDone
	if err != nil {
		result = resultFailed
	}
	o.m.round.ended.WithLabelValues(string(t.Stage), result).Inc()
	o.set(func(r *round) { r.left-- })
}

// StageDone implements jobs.Observer.
func (o *observer) StageDone(stage stages.Stage, failed int) {
	o.m.round.recordedURLs() // the last state stays until the next round
	o.set(func(r *round) { r.stage, r.left = "", 0 })
	o.next.StageDone(stage, failed)
}

// RoundDone implements jobs.Observer.
func (o *observer) RoundDone(s *manifest.Sealed) {
	r := o.m.round
	r.sealed.Inc()
	for _, c := range s.Counts {
		n := float64(c.N)
		if g := r.sealedURLs[c.Name]; g != nil {
			g.Add(n)
		}
		switch c.Name {
		case "publish.pages":
			r.sealedPages.Add(n)
		case "publish.duplicates":
			r.sealedDuplicates.Add(n)
		}
	}
	o.files(s, func(f manifest.File) { r.sealedBytes[o.m.datasetOf(f.Key)].Add(float64(f.Bytes)) })
	o.next.RoundDone(s)
}

// set changes the state of the round, and then the number of wanted tasks.
func (o *observer) set(change func(r *round)) {
	r := o.m.round
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
	want := 0
	if r.left > 0 {
		want = min(r.left, o.limit(r.stage))
	}
	r.wanted.Set(float64(want))
}
