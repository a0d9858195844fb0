package jobs

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Status is the state of a crawl in its store.
type Status struct {
	Crawl  string        `json:"crawl"`
	Store  string        `json:"store"`
	Rounds []RoundStatus `json:"rounds"`
}

// RoundStatus is one round.
type RoundStatus struct {
	Round      int              `json:"round"`
	State      string           `json:"state"` // planned, running or sealed
	Plan       string           `json:"plan"`
	URLs       int64            `json:"urls"`
	Partitions int              `json:"partitions"`
	Stages     []StageStatus    `json:"stages"`
	Counts     []manifest.Count `json:"counts,omitempty"` // only for a sealed round
	Advice     string           `json:"advice,omitempty"` // what to do before the round begins
}

// StageStatus is one stage of a round.
type StageStatus struct {
	Stage    stages.Stage     `json:"stage"`
	Tasks    int              `json:"tasks"`
	Done     int              `json:"done"`
	Running  int              `json:"running"`          // fetch tasks with a lease, even if the attempt is dead; unknown for other stages
	Failed   []TaskStatus     `json:"failed,omitempty"` // tasks without a result whose newest attempt failed
	Attempts int              `json:"attempts"`         // ended attempts
	Usage    manifest.Usage   `json:"usage"`            // by the ended attempts
	Counts   []manifest.Count `json:"counts,omitempty"` // summed over the results
	Recorded int64            `json:"recorded_urls"`    // for fetch: the number of planned URLs with a recorded outcome
	Fetching []FetchStatus    `json:"fetching,omitempty"`
}

// FetchStatus is the state of a fetch task without a result, from its checkpoint.
type FetchStatus struct {
	Partition int   `json:"partition"`
	Planned   int64 `json:"planned_urls"`
	Recorded  int64 `json:"recorded_urls"`
	Epoch     int   `json:"epoch"` // the number of attempts that have held its lease
	Released  bool  `json:"released"`
	Complete  bool  `json:"complete"` // only the result is missing
	ElapsedMS int64 `json:"elapsed_ms"`
	// Activity is what the attempt did at its last checkpoint, or nil if unknown.
	Activity *manifest.Activity `json:"activity,omitempty"`
	Outcomes []manifest.Count   `json:"outcomes,omitempty"` // of the recorded URLs
	GiveUp   string             `json:"give_up,omitempty"`  // the command that ends the waits of Activity; it works once no attempt holds the lease
}

// TaskStatus is a task that failed and has no result.
type TaskStatus struct {
	Task      string `json:"task"`
	Partition int    `json:"partition"`
	Attempts  int    `json:"attempts"` // failed attempts
	Class     string `json:"class"`
	Error     string `json:"error"`
	Rerun     string `json:"rerun"` // the command that runs it again
}

// StatusReader reads statuses of crawls. Results and attempts never change, so it keeps them, and a
// later Read reads only new ones. Only one goroutine may use it.
type StatusReader struct {
	Bucket store.Bucket
	Flags  string // flags that commands for this store need, except --month, with a leading space

	results  map[stages.Task][]manifest.Count
	attempts map[string]*manifest.Attempt // by key
}

// Read reads the status of a crawl.
func (r *StatusReader) Read(ctx context.Context, crawl string) (*Status, error) {
	if r.results == nil {
		r.results, r.attempts = map[stages.Task][]manifest.Count{}, map[string]*manifest.Attempt{}
	}
	var m manifest.Crawl
	if _, _, err := manifest.Load(ctx, r.Bucket, layout.CrawlManifest(crawl), &m); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%s holds no crawl %s: make one with `%s`: %w", r.Bucket, crawl, roundstate.CreatingCommand(crawl, r.Flags), roundstate.ErrNoCrawl)
		}
		return nil, err
	}
	s := &Status{Crawl: crawl, Store: r.Bucket.String()}
	for round := 0; ; round++ {
		rs, err := r.round(ctx, crawl, round)
		if errors.Is(err, roundstate.ErrNoPlan) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		s.Rounds = append(s.Rounds, *rs)
	}
}

func (r *StatusReader) round(ctx context.Context, crawl string, round int) (*RoundStatus, error) {
	p, started, err := roundstate.FindPlan(ctx, r.Bucket, crawl, round)
	if err != nil {
		return nil, err
	}
	rs := &RoundStatus{Round: round, State: "planned", Plan: p.ID, URLs: p.URLs, Partitions: len(p.Partitions)}
	switch {
	case started:
		rs.State = "running"
	case round == 0 && !p.KeepsSpellings() && !layout.IsReparse(crawl):
		rs.Advice = "an older crawlbatch made its plan, without spellings of URLs, so robots.txt would be checked for their canonical form only: plan it again with `crawlbatch plan --replace`"
	}
	sealed, err := roundstate.SealedRound(ctx, r.Bucket, crawl, round)
	if err != nil {
		return nil, err
	}
	if sealed != nil {
		rs.State, rs.Counts = "sealed", sealed.Counts
	}
	for _, stage := range stages.Order {
		if !started {
			rs.Stages = append(rs.Stages, StageStatus{Stage: stage, Tasks: stage.Tasks(p)})
			continue
		}
		st, err := r.stage(ctx, p, stage)
		if err != nil {
			return nil, err
		}
		rs.Stages = append(rs.Stages, *st)
	}
	return rs, nil
}

// stage reads a stage: its results and attempts, and for fetch the checkpoints of tasks without a
// result.
func (r *StatusReader) stage(ctx context.Context, p *manifest.Plan, stage stages.Stage) (*StageStatus, error) {
	st := &StageStatus{Stage: stage, Tasks: stage.Tasks(p)}
	results, err := r.readResults(ctx, p, stage)
	if err != nil {
		return nil, err
	}
	attempts, err := r.readAttempts(ctx, p, stage)
	if err != nil {
		return nil, err
	}
	totals := map[string]int64{}
	var order []string
	var missing []stages.Task
	for n, counts := range results {
		t := stages.Task{Stage: stage, Crawl: p.Crawl, Round: p.Round, Partition: n}
		for _, a := range attempts[n] {
			st.Attempts++
			if a.Usage != nil {
				st.Usage = st.Usage.Add(*a.Usage)
			}
		}
		if counts == nil {
			missing = append(missing, t)
			if failed := lastFailure(t, attempts[n], r.Flags); failed != nil {
				st.Failed = append(st.Failed, *failed)
			}
			continue
		}
		st.Done++
		for _, c := range counts {
			if _, ok := totals[c.Name]; !ok {
				order = append(order, c.Name)
			}
			totals[c.Name] += c.N
		}
		if stage == stages.Fetch {
			st.Recorded += p.Partitions[n].URLs
		}
	}
	for _, name := range order {
		st.Counts = append(st.Counts, manifest.Count{Name: name, N: totals[name]})
	}
	if stage == stages.Fetch {
		if st.Fetching, err = r.readCheckpoints(ctx, p, missing); err != nil {
			return nil, err
		}
		for _, f := range st.Fetching {
			st.Recorded += f.Recorded
			if !f.Released && !f.Complete {
				st.Running++
			}
		}
	}
	return st, nil
}

// lastFailure returns the last failure of a task, or nil if its newest attempt is not a failure.
func lastFailure(t stages.Task, attempts []*manifest.Attempt, flags string) *TaskStatus {
	failed := 0
	var last *manifest.Attempt
	for _, a := range attempts {
		if a.Failure() {
			failed++
		}
		if last == nil || a.Attempt > last.Attempt {
			last = a
		}
	}
	if last == nil || !last.Failure() {
		return nil
	}
	return &TaskStatus{
		Task: t.String(), Partition: t.Partition, Attempts: failed, Class: last.Class, Error: last.Error,
		Rerun: fmt.Sprintf("crawlbatch retry --month %s --stage %s --partition %d%s", t.Crawl, t.Stage, t.Partition, flags),
	}
}
