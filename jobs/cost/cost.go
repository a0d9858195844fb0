// Package cost predicts the requests, bytes and machine time that a round needs, and their price.
//
// The input is a plan, the prices of the config, the size of each stage's pods, and the usage of
// earlier rounds. The output is a usage for each stage, and the price of a usage in dollars. A
// prediction is arithmetic on the plan. It reads nothing, and the same arguments give the same
// figures. Predicted figures and the figures that tasks record count the same calls, so they can be
// compared. Neither counts the calls of the driver. The package imports formats/manifest,
// jobs/config and stages.
package cost

import (
	"maps"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// Pod holds the resources that a pod requests, and therefore costs.
type Pod struct {
	Cores float64 `json:"cores"`
	GiB   float64 `json:"memory_gib"`
}

// Model predicts usages and prices them.
type Model struct {
	Config *config.Config
	Pods   func(p *manifest.Plan, stage stages.Stage) Pod // size of each pod of a stage
}

// Usages holds the usage of each stage of a round.
type Usages map[stages.Stage]manifest.Usage

// Total returns the sum over all stages.
func (u Usages) Total() (sum manifest.Usage) {
	for _, stage := range stages.Order {
		sum = sum.Add(u[stage])
	}
	return sum
}

// Dollars says what a usage costs.
type Dollars struct {
	Machines float64 `json:"machines"`
	Requests float64 `json:"requests"`
	Monthly  float64 `json:"stored_a_month"` // for each month in which the written bytes are kept
}

// Once returns the dollars that are paid once.
func (d Dollars) Once() float64 { return d.Machines + d.Requests }

// Add returns the field-wise sum of d and e.
func (d Dollars) Add(e Dollars) Dollars {
	return Dollars{d.Machines + e.Machines, d.Requests + e.Requests, d.Monthly + e.Monthly}
}

// Price returns what a stage's usage costs.
func (m *Model) Price(p *manifest.Plan, stage stages.Stage, u manifest.Usage) Dollars {
	prices, pod := m.Config.Prices, m.Pods(p, stage)
	return Dollars{
		Machines: u.Wall().Hours() * (pod.Cores*prices.CPU + pod.GiB*prices.Memory),
		Requests: float64(u.Puts+u.Lists)/1000*prices.Puts + float64(u.Gets)/1000*prices.Gets,
		Monthly:  float64(u.BytesWritten) / 1e9 * prices.Stored,
	}
}

// Past holds the usage of earlier rounds, and the usage that the model predicts for them as first
// rounds.
type Past struct {
	Rounds          int
	used, predicted Usages
}

// Clone returns a copy of past to which Learn may add further rounds.
func (p Past) Clone() Past {
	return Past{p.Rounds, maps.Clone(p.used), maps.Clone(p.predicted)}
}

// Learn adds a sealed round to past.
func (m *Model) Learn(past *Past, p *manifest.Plan, used Usages) {
	if used.Total() == (manifest.Usage{}) {
		return // the records of the attempts were deleted
	}
	if past.Rounds == 0 {
		past.used, past.predicted = Usages{}, Usages{}
	}
	past.Rounds++
	for stage, u := range m.Predict(p, Past{}) {
		past.used[stage] = past.used[stage].Add(used[stage])
		past.predicted[stage] = past.predicted[stage].Add(u)
	}
}

// Predict predicts the usage of each stage of a round. It predicts the figures of a first round,
// and multiplies them by used ÷ predicted of the earlier rounds. The time of the fetch stage comes
// from the plan, because the planner has already learned from these rounds.
func (m *Model) Predict(p *manifest.Plan, past Past) Usages {
	all := m.arithmetic(p)
	for stage, u := range all {
		used, had := past.used[stage], past.predicted[stage]
		u.Puts, u.Gets, u.Lists = scale(u.Puts, used.Puts, had.Puts), scale(u.Gets, used.Gets, had.Gets), scale(u.Lists, used.Lists, had.Lists)
		u.BytesWritten = scale(u.BytesWritten, used.BytesWritten, had.BytesWritten)
		if stage != stages.Fetch {
			u.WallMS = scale(u.WallMS, used.WallMS, had.WallMS)
		}
		all[stage] = u
	}
	return all
}

// scale returns n × used ÷ predicted, or n if either of the two is unknown.
func scale(n, used, predicted int64) int64 {
	if used <= 0 || predicted <= 0 {
		return n
	}
	return int64(float64(n)*float64(used)/float64(predicted) + 0.5)
}

// These figures of a first round were measured with real pages and, for calls that grow with the
// number of tasks, with small synthetic rounds. jobs/README.md has their tables.
const (
	checkpointPage = 110_000 // bytes that a page adds to a checkpoint: 256 MiB hold 2,440 pages
	segmentPuts    = 10
	segmentGets    = 28     // calls of merge for each segment
	segmentBytes   = 85_000 // bytes of a segment's files, without the bytes of its pages
	knownGets      = 25     // calls of a fetch task for each partition of its bucket in earlier rounds

	controlMS = 10_000 // time between two reads of the ledger by a fetch task, as worker.ControlEvery

	// A fetch task with few URLs a second makes a checkpoint only after several intervals.
	worthwhile  = 5000.0 / 60 // URLs a second from which on a checkpoint does not wait longer
	stretch     = 10
	patientFrom = 10 * time.Second

	reduceStartMS = 100 // time of a reduce task, without the time for its URLs
)

// arithmetic returns the figures of a first round.
func (m *Model) arithmetic(p *manifest.Plan) Usages {
	parts, buckets := int64(len(p.Partitions)), int64(max(p.Buckets, 1))
	urls, segments, renewals := float64(p.URLs), 0.0, 0.0
	for i := range p.Partitions {
		segments += m.segments(&p.Partitions[i])
		renewals += p.Partitions[i].EstimatedSeconds / (m.Config.Fetch.Checkpoint.Lease.Std().Seconds() / 3)
	}
	million := func(n float64) int64 { return int64(urls / 1e6 * n) } // n for each million URLs
	cut := int64(segments)
	fetch := manifest.Usage{
		WallMS: int64(p.PodHours() * 3_600_000),
		Puts:   6*parts + cut*segmentPuts + int64(renewals), Gets: 12 * parts, Lists: 6 * parts,
		BytesWritten: p.URLs*50_000 + cut*segmentBytes,
	}
	fetch.Gets += fetch.WallMS / controlMS
	if p.Known > 0 {
		fetch.Gets += knownGets * parts * parts / buckets
	}
	// reduce returns the usage of a reduce stage. ms and urlBytes are the time and the written
	// bytes for each URL. taskBytes is the size of a task's files if they have no rows.
	reduce := func(tasks int64, ms float64, puts, gets, urlBytes, taskBytes int64) manifest.Usage {
		return manifest.Usage{WallMS: int64(urls*ms) + tasks*reduceStartMS, Puts: puts, Gets: gets, BytesWritten: p.URLs*urlBytes + tasks*taskBytes}
	}
	all := Usages{
		stages.Fetch:    fetch,
		stages.Merge:    reduce(parts, 0.94, 14*parts, 8*parts+segmentGets*cut, 8000, 115_000),
		stages.Dedup:    reduce(1, 0.006, 1+2*buckets, 8+7*parts+million(285), 100, 5000*buckets),
		stages.Rank:     reduce(buckets, 0.11, 5+3*buckets, 4+8*parts+3*parts*buckets+million(61), 150, 10_000),
		stages.Frontier: reduce(buckets, 0.15, 4*buckets, 15+10*parts+3*parts*buckets+buckets*buckets+million(321), 250, 15_000),
		stages.Publish:  reduce(parts, 0.05, 2*parts, 20*parts+million(260), 500, 28_000),
	}
	if shards := int64(stages.Digest.Tasks(p)); shards > 0 {
		// Each task of digest reads three columns of all pages. Each task of similar reads all
		// classes of pages with equal fingerprints.
		all[stages.Digest] = reduce(shards, 0.0015+0.0002*float64(shards), 3*shards, shards*(8+3*parts)+million(100), 17, 5000)
		all[stages.Similar] = reduce(shards, 0.002+0.0003*float64(shards), 2*shards, shards*(8+3*shards), 1, 3000)
		all[stages.Cluster] = reduce(1, 0.003, 2, 8+4*parts+6*shards+million(200), 30, 3000)
		all[stages.Dedup] = reduce(buckets, 0.002, 3*buckets, 12*buckets+4*parts+million(200), 100, 5000)
	}
	return all
}

// segments predicts the number of checkpoints of a fetch task.
func (m *Model) segments(part *manifest.PlanPartition) float64 {
	c, seconds := m.Config.Fetch.Checkpoint, max(part.EstimatedSeconds, 1)
	every, limit := c.Every.Std().Seconds(), float64(c.Bytes)
	rate := float64(part.URLs) / seconds
	wait, bytes := every, max(rate*checkpointPage, 1) // bytes a second
	if c.Every.Std() >= patientFrom && rate < worthwhile {
		wait = min(stretch*every, max(every, limit/4/bytes))
	}
	return max(1, float64(int64(seconds/min(wait, limit/bytes))))
}
