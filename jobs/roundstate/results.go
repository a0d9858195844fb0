package roundstate

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// readers is the largest number of results that are read at the same time. One by one, the thousands
// of results of a stage would take minutes, because an object store takes tens of ms for each.
const readers = 32

// ResultKey returns the key of a task's result.
func ResultKey(t stages.Task) string {
	return layout.Result(t.Crawl, t.Round, string(t.Stage), t.Partition)
}

// LoadResult reads the result of a task of any plan. LoadResult returns the result and the hex
// SHA-256 of the result's document, or nil for a task without a result.
func LoadResult(ctx context.Context, b store.Bucket, t stages.Task) (*manifest.Result, string, error) {
	var r manifest.Result
	key := ResultKey(t)
	_, digest, err := manifest.Load(ctx, b, key, &r)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "", nil
	}
	if err == nil && (r.Task != t.String() || r.Stage != string(t.Stage) || r.Partition != t.Partition) {
		err = misplaced(key, "task "+r.Task, "task "+t.String())
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", t, err)
	}
	return &r, digest, nil
}

// LoadResultOf reads the result of a task of a plan, as LoadResult does. LoadResultOf returns
// manifest.ErrCorrupt if the result belongs to a task of another plan.
func LoadResultOf(ctx context.Context, b store.Bucket, p *manifest.Plan, t stages.Task) (*manifest.Result, string, error) {
	r, digest, err := LoadResult(ctx, b, t)
	if err == nil && r != nil && r.Plan != p.ID {
		return nil, "", fmt.Errorf("%s: %w", t, misplaced(ResultKey(t), "plan "+r.Plan, "plan "+p.ID))
	}
	return r, digest, err
}

// EachResult reads the results of tasks of a plan, many at the same time. For each task, EachResult
// calls use with the task's index in tasks. Several goroutines may call use at the same time. If a
// task has no result, r is nil and digest is empty.
func EachResult(ctx context.Context, b store.Bucket, p *manifest.Plan, tasks []stages.Task, use func(i int, r *manifest.Result, digest string)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, t := range tasks {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, digest, err := LoadResultOf(ctx, b, p, t)
			if err == nil {
				use(i, r, digest)
			}
			return err
		})
	}
	return group.Wait()
}

// Missing returns the given tasks that have no result, in the given order.
func Missing(ctx context.Context, b store.Bucket, p *manifest.Plan, tasks []stages.Task) ([]stages.Task, error) {
	done := make([]bool, len(tasks))
	err := EachResult(ctx, b, p, tasks, func(i int, r *manifest.Result, _ string) { done[i] = r != nil })
	var missing []stages.Task
	for i, t := range tasks {
		if !done[i] {
			missing = append(missing, t)
		}
	}
	return missing, err
}

// loadResults reads the results of tasks of a plan with their digests, in the order of tasks.
func loadResults(ctx context.Context, b store.Bucket, p *manifest.Plan, tasks []stages.Task) ([]*manifest.Result, []string, error) {
	results, digests := make([]*manifest.Result, len(tasks)), make([]string, len(tasks))
	err := EachResult(ctx, b, p, tasks, func(i int, r *manifest.Result, digest string) { results[i], digests[i] = r, digest })
	return results, digests, err
}

// Tasks lists the tasks of a stage, in order.
func Tasks(p *manifest.Plan, stage stages.Stage) []stages.Task {
	tasks := make([]stages.Task, stage.Tasks(p))
	for n := range tasks {
		tasks[n] = stages.Task{Stage: stage, Crawl: p.Crawl, Round: p.Round, Partition: n}
	}
	return tasks
}
