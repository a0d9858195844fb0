// Package accounts makes the datasets `stages` and `runs`, with the times, resources and cost of each
// attempt at a task and of each round.
//
// The input is the records of attempts under attempts/, the round's plan and counts, and the model
// of costs. The output is one part of each dataset, written once, before the round is sealed. An
// attempt whose process was killed left only the record that it began, and its row has the outcome
// killed. The rows depend on times, so no check compares them, and no other data depends on them.
// The package holds all rows of a round in memory, about 500 bytes for each attempt. The package
// imports jobs/cost, jobs/roundstate, stages, stages/publish and formats.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// Round is a round that is about to be sealed. All its tasks have results.
type Round struct {
	Bucket  store.Bucket
	Plan    *manifest.Plan
	Counts  []manifest.Count // counts of the seal
	Costs   *cost.Model      // prices the usage; nil: nothing has a price
	Version string           // version of crawlbatch that seals the round
	Scratch string           // existing local directory
	Log     *slog.Logger
}

// Written reports whether the round has both parts.
func (r *Round) Written(ctx context.Context) (bool, error) {
	for _, dataset := range publish.Accounts {
		there, err := manifest.Exists(ctx, r.Bucket, publish.AccountKey(r.Plan, dataset))
		if err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

// Write writes the parts that do not exist, and returns the usage of each stage. predicted is the
// usage that the model predicted for the round, or nil.
func (r *Round) Write(ctx context.Context, predicted cost.Usages) (cost.Usages, error) {
	attempts, used, err := r.attempts(ctx)
	if err != nil {
		return nil, err
	}
	run := r.run(attempts, used, predicted)
	err = create(ctx, r, stages.FileStages, attempts, "stage", "task", "attempt")
	if err == nil {
		err = create(ctx, r, stages.FileRuns, []schema.Run{run})
	}
	return used, err
}

// create writes a part, unless it exists: another process may have written it since Written looked.
func create[T any](ctx context.Context, r *Round, dataset string, rows []T, sortedBy ...string) error {
	w, err := table.NewWriter[T](filepath.Join(r.Scratch, "account-"+dataset+".parquet"), table.SortedBy(sortedBy...))
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := w.Write(rows); err != nil {
		return err
	}
	_, err = table.Finish(ctx, w, r.Bucket, dataset, publish.AccountKey(r.Plan, dataset))
	if errors.Is(err, table.ErrDiffers) {
		return nil
	}
	return err
}

// attempts returns the rows of all attempts, sorted by the name of the stage, and the usage of each
// stage.
func (r *Round) attempts(ctx context.Context) ([]schema.StageAttempt, cost.Usages, error) {
	var rows []schema.StageAttempt
	used := cost.Usages{}
	for _, stage := range slices.Sorted(slices.Values(stages.Order)) {
		tasks, err := r.read(ctx, stage)
		if err != nil {
			return nil, nil, err
		}
		for n := range tasks {
			rows = append(rows, r.rows(stage, n, &tasks[n])...)
			for _, a := range tasks[n].ended {
				if a.Usage != nil {
					used[stage] = used[stage].Add(*a.Usage)
				}
			}
		}
	}
	return rows, used, nil
}

// records holds the records of the attempts at a task, in the order of their numbers.
type records struct {
	begun []*manifest.Begun
	ended []*manifest.Attempt
}

// readers is the largest number of records that are read at the same time.
const readers = 32

// read reads the records of the attempts at each task of a stage. It skips a record that is damaged
// or that a newer version wrote: the round is complete without it.
func (r *Round) read(ctx context.Context, stage stages.Stage) ([]records, error) {
	type record struct {
		key   string
		task  int
		n     int
		begun *manifest.Begun // nil if the record is damaged, or records an end
		ended *manifest.Attempt
	}
	p, all := r.Plan, []record{}
	tasks := make([]records, stage.Tasks(p))
	dir := layout.AttemptsDir(p.Crawl, p.Round, string(stage))
	for o, err := range r.Bucket.List(ctx, dir) {
		if err != nil {
			return nil, fmt.Errorf("list attempts at %s@%s.%d: %w", stage, p.Crawl, p.Round, err)
		}
		if task, n, ok := layout.ParseAttempt(dir, o.Key); ok && task < len(tasks) {
			all = append(all, record{key: o.Key, task: task, n: n, ended: &manifest.Attempt{}})
		} else if task, n, ok := layout.ParseBegun(dir, o.Key); ok && task < len(tasks) {
			all = append(all, record{key: o.Key, task: task, n: n, begun: &manifest.Begun{}})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range all {
		group.Go(func() error {
			a := &all[i]
			var d manifest.Document = a.ended
			if a.begun != nil {
				d = a.begun
			}
			_, _, err := manifest.Load(ctx, r.Bucket, a.key, d)
			if errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, manifest.ErrFormat) || errors.Is(err, store.ErrNotFound) {
				r.Log.Warn("the record of an attempt cannot be read; the dataset stages lacks it", "key", a.key, "error", err)
				a.begun, a.ended, err = nil, nil, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b record) int { return a.n - b.n }) // keys order 10 before 2
	for _, a := range all {
		t := &tasks[a.task]
		if a.begun != nil {
			t.begun = append(t.begun, a.begun)
		}
		if a.ended != nil {
			t.ended = append(t.ended, a.ended)
		}
	}
	return tasks, nil
}
