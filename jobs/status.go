package jobs

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// Status is a crawl as the store tells it.
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
	Counts     []manifest.Count `json:"counts,omitempty"` // of a sealed round
}

// StageStatus is one stage of a round.
type StageStatus struct {
	Stage  stages.Stage     `json:"stage"`
	Tasks  int              `json:"tasks"`
	Done   int              `json:"done"`
	Failed []TaskStatus     `json:"failed,omitempty"` // tasks without result that have failed before
	Counts []manifest.Count `json:"counts,omitempty"` // summed over the results
}

// TaskStatus is a task that has failed and has no result.
type TaskStatus struct {
	Task      string `json:"task"`
	Partition int    `json:"partition"`
	Attempts  int    `json:"attempts"`
	Class     string `json:"class"`
	Error     string `json:"error"`
	Rerun     string `json:"rerun"` // command
}

// ReadStatus reads what the store says of a crawl.
func ReadStatus(ctx context.Context, b store.Bucket, crawl string) (*Status, error) {
	var m manifest.Crawl
	if _, _, err := manifest.Load(ctx, b, layout.CrawlManifest(crawl), &m); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%s holds no crawl %s: make one with `crawlbatch plan --month %s --source FILE`: %w", b, crawl, crawl, worker.ErrNoCrawl)
		}
		return nil, err
	}
	s := &Status{Crawl: crawl, Store: b.String()}
	for round := 0; ; round++ {
		r, err := readRound(ctx, b, crawl, round)
		if errors.Is(err, worker.ErrNoPlan) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		s.Rounds = append(s.Rounds, *r)
	}
}

func readRound(ctx context.Context, b store.Bucket, crawl string, round int) (*RoundStatus, error) {
	p, started, err := worker.FindPlan(ctx, b, crawl, round)
	if err != nil {
		return nil, err
	}
	r := &RoundStatus{Round: round, State: "planned", Plan: p.ID, URLs: p.URLs, Partitions: len(p.Partitions)}
	if started {
		r.State = "running"
	}
	var sealed manifest.Sealed
	switch _, _, err := manifest.Load(ctx, b, layout.Sealed(crawl, round), &sealed); {
	case err == nil:
		r.State, r.Counts = "sealed", sealed.Counts
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	for _, stage := range stages.Order {
		st, err := readStage(ctx, b, p, stage)
		if err != nil {
			return nil, err
		}
		r.Stages = append(r.Stages, *st)
	}
	return r, nil
}

func readStage(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage) (*StageStatus, error) {
	st := &StageStatus{Stage: stage, Tasks: stage.Tasks(p)}
	totals := map[string]int64{}
	var order []string
	for n := range st.Tasks {
		t := stages.Task{Stage: stage, Crawl: p.Crawl, Round: p.Round, Partition: n}
		res, _, err := worker.LoadResult(ctx, b, t)
		if err != nil {
			return nil, err
		}
		if res != nil {
			st.Done++
			for _, c := range res.Counts {
				if _, ok := totals[c.Name]; !ok {
					order = append(order, c.Name)
				}
				totals[c.Name] += c.N
			}
			continue
		}
		failed, err := lastFailure(ctx, b, t)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			st.Failed = append(st.Failed, *failed)
		}
	}
	for _, name := range order {
		st.Counts = append(st.Counts, manifest.Count{Name: name, N: totals[name]})
	}
	return st, nil
}

// lastFailure reads the newest failed attempt of a task; nil where there is none.
func lastFailure(ctx context.Context, b store.Bucket, t stages.Task) (*TaskStatus, error) {
	var last *manifest.Attempt
	attempts := 0
	for o, err := range b.List(ctx, layout.Attempts(t.Crawl, t.Round, string(t.Stage), t.Partition)) {
		if err != nil {
			return nil, fmt.Errorf("%s: list attempts: %w", t, err)
		}
		var a manifest.Attempt
		if _, _, err := manifest.Load(ctx, b, o.Key, &a); err != nil {
			return nil, err
		}
		attempts++
		if last == nil || a.Attempt > last.Attempt {
			last = &a
		}
	}
	if last == nil {
		return nil, nil
	}
	return &TaskStatus{
		Task: t.String(), Partition: t.Partition, Attempts: attempts, Class: last.Class, Error: last.Error,
		Rerun: fmt.Sprintf("crawlbatch retry --month %s --stage %s --partition %d", t.Crawl, t.Stage, t.Partition),
	}, nil
}
