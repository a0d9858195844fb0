package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

var (
	// ErrNotStarted: there is a plan, but nothing of it was run yet.
	ErrNotStarted = errors.New("nothing to retry")
	// ErrNoPartition: the stage has no such partition.
	ErrNoPartition = errors.New("no such partition")
)

// RetryRequest says which tasks of a round to rerun; its zero value is all that
// have no result of the first stage that is not done.
type RetryRequest struct {
	Stage      stages.Stage // "": the first that has tasks to rerun
	Partitions []int        // none: all
	Classes    []string     // only tasks whose newest attempt failed so (manifest.FailureClasses); none: all
}

// Retry runs tasks of the newest started round that have no result, and returns
// how many it ran.
func (d *Driver) Retry(ctx context.Context, crawl string, r RetryRequest) (int, error) {
	p, err := d.current(ctx, crawl)
	if err != nil || p == nil {
		return 0, err
	}
	order := stages.Order
	if r.Stage != "" {
		order = []stages.Stage{r.Stage}
	}
	for _, s := range order {
		missing, err := d.Missing(ctx, p, s, r.Partitions)
		if err == nil && len(r.Classes) > 0 {
			missing, err = d.failedAs(ctx, p, s, missing, r.Classes)
		}
		if err != nil {
			return 0, err
		}
		if len(missing) == 0 {
			continue
		}
		if s == stages.Fetch {
			if err := claimFetch(ctx, d.Bucket, p, d.Clock, d.Version); err != nil {
				return 0, err
			}
		} else if _, err := worker.Freeze(ctx, d.Bucket, p, s, d.Version); err != nil {
			return 0, err
		}
		d.Observer.StageStarted(p, s, len(missing), urlsOf(p, missing))
		if err := d.execute(ctx, missing); err != nil {
			return 0, err
		}
		d.Observer.StageDone(s, 0)
		return len(missing), nil
	}
	return 0, nil
}

// failedAs keeps the tasks whose newest attempt failed in one of the classes.
func (d *Driver) failedAs(ctx context.Context, p *manifest.Plan, stage stages.Stage, tasks []stages.Task, classes []string) ([]stages.Task, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	reader := StatusReader{Bucket: d.Bucket, attempts: map[string]*manifest.Attempt{}}
	attempts, err := reader.readAttempts(ctx, p, stage)
	if err != nil {
		return nil, err
	}
	var kept []stages.Task
	for _, t := range tasks {
		if f := lastFailure(t, attempts[t.Partition], ""); f != nil && slices.Contains(classes, f.Class) {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// current is the plan of the round that is not sealed; nil where all are.
func (d *Driver) current(ctx context.Context, crawl string) (*manifest.Plan, error) {
	sealed, err := worker.Sealed(ctx, d.Bucket, crawl)
	if err != nil {
		return nil, err
	}
	p, started, err := worker.FindPlan(ctx, d.Bucket, crawl, len(sealed))
	if errors.Is(err, worker.ErrNoPlan) && len(sealed) > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !started {
		return nil, fmt.Errorf("round %d of crawl %s was not started: use `crawlbatch run --month %s%s`: %w", p.Round, crawl, crawl, d.Flags, ErrNotStarted)
	}
	return p, nil
}
