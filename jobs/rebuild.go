package jobs

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// rebuilders is the number of tasks on which Rebuild works at the same time. Rebuild checks the parts
// of each task, and recomputes the task if parts are missing.
const rebuilders = 4

// RebuildRequest says where to look for lost parts. The zero value of a request selects round 0.
type RebuildRequest struct {
	Stage      stages.Stage // the stage to look in; "": all reduce stages
	Partitions []int        // the partitions to look in; empty: all
	Round      int          // the round to look in; AllRounds means every started round, sealed or not
}

// AllRounds selects all rounds of a crawl.
const AllRounds = -1

// Rebuild recreates lost objects that can be computed from other objects. These objects are
// inputs.json, seals, and the results and parts of tasks that send no requests. Such tasks are
// reduce tasks and the fetch tasks of a reparse. Rebuild works round by round and in the order of
// stages, because later parts are made from earlier parts. For each task, Rebuild calls report with
// the keys of the recreated objects. For inputs and seals, the task has partition -1. If a task
// cannot be rebuilt, Rebuild stops after the task's stage. The error names the first such task.
func (d *Driver) Rebuild(ctx context.Context, crawl string, r RebuildRequest, report func(t stages.Task, keys []string)) error {
	l, err := ledger.Load(ctx, d.Bucket, crawl)
	if err != nil {
		return err
	}
	first, last := r.Round, r.Round
	if r.Round == AllRounds {
		first, last = 0, l.Rounds()-1
	}
	for round := first; round <= last; round++ {
		p, started, err := roundstate.PlanIn(ctx, d.Bucket, l, round)
		if errors.Is(err, roundstate.ErrNoPlan) && r.Round == AllRounds {
			continue
		}
		if err != nil {
			return err
		}
		if err := l.CheckComputable(round); !started || err != nil {
			return err // a round that has not started has no parts yet
		}
		if err := d.rebuildRound(ctx, l, p, r, report); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) rebuildRound(ctx context.Context, l *ledger.Ledger, p *manifest.Plan, r RebuildRequest, report func(t stages.Task, keys []string)) error {
	documents := func(stage stages.Stage, keys ...string) {
		report(stages.Task{Stage: stage, Crawl: p.Crawl, Round: p.Round, Partition: -1}, keys)
	}
	for _, stage := range stages.Of(p) {
		if r.Stage != "" && stage != r.Stage {
			continue
		}
		key, err := roundstate.RebuildInputs(ctx, d.Bucket, p, stage, l, d.ledgers())
		if err != nil {
			return err
		}
		if key != "" {
			documents(stage, key)
		}
		if stage == stages.Fetch && !layout.IsReparse(p.Crawl) {
			continue
		}
		if err := d.rebuildStage(ctx, p, stage, r.Partitions, report); err != nil {
			return err
		}
	}
	if r.Stage != "" {
		return nil
	}
	keys, err := roundstate.RebuildSeal(ctx, d.Bucket, p, l, d.ledgers())
	if len(keys) > 0 {
		documents(stages.Publish, keys...)
	}
	return err
}

func (d *Driver) rebuildStage(ctx context.Context, p *manifest.Plan, stage stages.Stage, partitions []int, report func(stages.Task, []string)) error {
	tasks, err := tasksOf(p, stage, partitions)
	if err != nil {
		return err
	}
	keys, errs := make([][]string, len(tasks)), make([]error, len(tasks))
	group := errgroup.Group{}
	group.SetLimit(rebuilders)
	for i, t := range tasks {
		group.Go(func() error {
			keys[i], errs[i] = d.Runner.Rebuild(ctx, t)
			return nil
		})
	}
	_ = group.Wait() // never fails: the errors are in errs
	var failed []error
	for i, t := range tasks {
		if len(keys[i]) > 0 {
			report(t, keys[i])
		}
		if errs[i] != nil {
			failed = append(failed, errs[i])
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("rebuild %s of %s.%d: %w", stage, p.Crawl, p.Round, stages.ErrInterrupted)
	}
	return fmt.Errorf("%d of %d tasks of %s in round %d could not be rebuilt; the first error: %w", len(failed), len(tasks), stage, p.Round, failed[0])
}
