package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

var (
	// ErrNotStarted means that the round has not started, or that tasks of a reparse cannot be
	// given up.
	ErrNotStarted = errors.New("nothing to retry")
	// ErrNoPartition means that the stage has no such partition.
	ErrNoPartition = errors.New("no such partition")
)

// RetryRequest selects the tasks of a round to run again. The zero value of a request selects all
// tasks without a result in the first unfinished stage.
type RetryRequest struct {
	Stage      stages.Stage // stage of the tasks; empty means the first stage that has tasks to run again
	Partitions []int        // partitions of the tasks; empty means all
	Classes    []string     // only tasks whose newest attempt failed in one of these manifest.FailureClasses; empty means all tasks
}

// Retry runs those selected tasks of the newest started round that have no result, and returns the
// number of these tasks.
func (d *Driver) Retry(ctx context.Context, crawl string, r RetryRequest) (int, error) {
	p, err := d.current(ctx, crawl)
	if err != nil {
		return 0, err
	}
	if p == nil {
		return 0, d.checkPartitions(ctx, crawl, r.Stage, r.Partitions)
	}
	order := stages.Of(p)
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
		if err := d.recheckResults(ctx, p, missing); err != nil {
			return 0, err
		}
		if s == stages.Fetch {
			if err := d.prepareFetch(ctx, p); err != nil {
				return 0, err
			}
		} else if _, err := roundstate.Freeze(ctx, d.Bucket, p, s, d.ledgers()); err != nil {
			return 0, err
		}
		d.observeStart(ctx, p, s, len(missing), missing)
		if err := d.execute(ctx, missing); err != nil {
			return 0, err
		}
		d.Observer.StageDone(s, 0)
		return len(missing), nil
	}
	return 0, nil
}

// GiveUp ends those fetch tasks of the newest started round that have no result yet, and returns
// the number of these tasks. GiveUp commits the outcomes that the checkpoints of the ended tasks
// list. URLs without an outcome become deferred and are due in the next round. GiveUp sends no
// requests. If another attempt fetches a task, GiveUp fails: the error wraps lease.ErrHeld and says what to do.
// If an attempt may have died, GiveUp waits until its lease ends.
func (d *Driver) GiveUp(ctx context.Context, crawl string, partitions []int) (int, error) {
	p, err := d.current(ctx, crawl)
	if err != nil {
		return 0, err
	}
	if p == nil {
		return 0, d.checkPartitions(ctx, crawl, stages.Fetch, partitions)
	}
	if layout.IsReparse(crawl) {
		return 0, fmt.Errorf("%s sends no requests, so no task can be given up: fix the cause of its failures, see `crawlbatch status --month %s%s`: %w", crawl, crawl, d.Flags, ErrNotStarted)
	}
	missing, err := d.Missing(ctx, p, stages.Fetch, partitions)
	if err == nil {
		err = d.recheckResults(ctx, p, missing)
	}
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	runner := d.Runner
	runner.GiveUp = true
	d.observeStart(ctx, p, stages.Fetch, len(missing), missing)
	var failed []error
	for _, t := range missing {
		err := runner.Run(ctx, t)
		if errors.Is(err, lease.ErrHeld) {
			return 0, fmt.Errorf("%w: end its `run` with Ctrl-C, or pause the crawl with `crawlbatch pause --month %s%s` and wait 10 seconds; then give up again, and go on with `run` or `continue`", err, crawl, d.Flags)
		}
		if errors.Is(err, stages.ErrInterrupted) {
			return 0, err
		}
		d.Observer.TaskDone(t, err)
		if err != nil {
			failed = append(failed, err)
		}
	}
	d.Observer.StageDone(stages.Fetch, len(failed))
	if len(failed) > 0 {
		return 0, fmt.Errorf("%d of %d tasks of %s could not be given up; the first error: %w: %w", len(failed), len(missing), stages.Fetch, failed[0], failureOf(failed))
	}
	return len(missing), nil
}

// checkPartitions returns an error for partitions that the newest sealed round does not have. A
// wrong partition is thus an error even if all rounds are sealed.
func (d *Driver) checkPartitions(ctx context.Context, crawl string, stage stages.Stage, partitions []int) error {
	sealed, err := roundstate.Sealed(ctx, d.Bucket, crawl)
	if err != nil || len(partitions) == 0 {
		return err
	}
	p, _, err := roundstate.FindPlan(ctx, d.Bucket, crawl, len(sealed)-1)
	if err != nil {
		return err
	}
	_, err = tasksOf(p, stage, partitions)
	return err
}

// failedAs returns the tasks whose newest attempt failed in one of the classes.
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

// current returns the plan of the first round that is not sealed, or nil if all rounds are sealed.
func (d *Driver) current(ctx context.Context, crawl string) (*manifest.Plan, error) {
	sealed, err := roundstate.Sealed(ctx, d.Bucket, crawl)
	if err != nil {
		return nil, err
	}
	p, started, err := roundstate.FindPlan(ctx, d.Bucket, crawl, len(sealed))
	if errors.Is(err, roundstate.ErrNoPlan) && len(sealed) > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !started {
		return nil, fmt.Errorf("round %d of crawl %s has not started: use `crawlbatch run --month %s%s`: %w", p.Round, crawl, crawl, d.Flags, ErrNotStarted)
	}
	return p, nil
}
