package audit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

const (
	keptResults = 64 << 20 // approximate number of bytes of results that an audit keeps in memory
	readers     = 16       // number of results that an audit reads at a time
)

// resultCache reads results of tasks and keeps some of them. The results of a large round would not all
// fit into memory: those of a billion pages list the files of about 400,000 segments.
type resultCache struct {
	bucket store.Bucket

	mu   sync.Mutex
	kept map[stages.Task]*manifest.Result
	size int // estimated memory of kept, in bytes
}

// result returns the result of a task, which must have the given digest.
func (c *resultCache) result(ctx context.Context, t stages.Task, digest string) (*manifest.Result, error) {
	c.mu.Lock()
	r := c.kept[t]
	c.mu.Unlock()
	if r != nil {
		return r, nil
	}
	r, now, err := roundstate.LoadResult(ctx, c.bucket, t)
	switch {
	case err == nil && r == nil:
		err = fmt.Errorf("it was deleted during the audit: %w", store.ErrNotFound)
	case err == nil && now != digest:
		err = fmt.Errorf("it was replaced during the audit: %w", manifest.ErrChanged)
	}
	if err != nil {
		return nil, unreadable{roundstate.ResultKey(t), err}
	}
	size := 0
	for _, f := range r.Files {
		size += 256 + len(f.Key) + len(f.Blocks) + len(f.SectionIndex)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size+size > keptResults || c.kept == nil {
		c.kept, c.size = map[stages.Task]*manifest.Result{}, 0
	}
	c.kept[t] = r
	c.size += size
	return r, nil
}

// loadResults reads the results of a stage's tasks, several at the same time. It calls use for each
// readable result, but only one call runs at a time.
func (a *Audit) loadResults(ctx context.Context, r *Round, stage stages.Stage, use func(n int, result *manifest.Result) error) error {
	tasks := roundstate.Tasks(r.Plan, stage)
	digests := make([]string, len(tasks))
	r.digests[stage] = digests
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for n, t := range tasks {
		g.Go(func() error {
			result, digest, err := a.loadResult(ctx, r, t)
			if err != nil || result == nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			digests[n] = digest
			return use(n, result)
		})
	}
	return g.Wait()
}

// Tasks returns the number of tasks of a stage.
func (r *Round) Tasks(stage stages.Stage) int { return len(r.digests[stage]) }

// Has reports whether a task of a stage has a readable result.
func (r *Round) Has(stage stages.Stage, n int) bool {
	return n < r.Tasks(stage) && r.digests[stage][n] != ""
}

// Complete reports whether every task of a stage has a readable result.
func (r *Round) Complete(stage stages.Stage) bool { return !slices.Contains(r.digests[stage], "") }

// Result returns the result of a task of a stage, or nil if Has reports false. Result may read the
// store. If the result has become unreadable during the audit, the caller passes the error to Skip.
func (r *Round) Result(ctx context.Context, stage stages.Stage, n int) (*manifest.Result, error) {
	if !r.Has(stage, n) {
		return nil, nil
	}
	return r.results.result(ctx, stages.Task{Stage: stage, Crawl: r.Crawl, Round: r.Number, Partition: n}, r.digests[stage][n])
}

// Partition holds the results of the tasks that work on one partition.
type Partition struct {
	// Fetched is the result of the fetch task. If the task has no result yet, Fetched has the files and
	// counts of the checkpoint. Fetched is nil if the task has neither.
	Fetched *manifest.Result
	// Recorded holds the indexes of the planned rows that have an outcome, or is nil if all have one.
	Recorded *roaring.Bitmap

	merged, published *manifest.Result
}

// Partition returns the results of a partition. The caller passes an error to Skip.
func (r *Round) Partition(ctx context.Context, n int) (p Partition, err error) {
	if p.Fetched, err = r.Result(ctx, stages.Fetch, n); err != nil {
		return p, err
	}
	if p.merged, err = r.Result(ctx, stages.Merge, n); err != nil {
		return p, err
	}
	if p.published, err = r.Result(ctx, stages.Publish, n); err != nil {
		return p, err
	}
	c, err := r.checkpoints.of(n)
	if c != nil {
		p.Fetched = &manifest.Result{Files: c.Files, Counts: c.Counts}
		p.Recorded, err = c.RecordedRows()
	}
	return p, err
}

// Files lists the keys of the files that hold the partition's rows of a dataset. For captures,
// subset selects one subset; "" selects all. The files come from the last stage that has a result for
// the partition: published files of publish or merge, or segments of fetch. sorted reports whether the
// rows are in the dataset's order.
func (p *Partition) Files(dataset, subset string) (keys []string, sorted bool) {
	from := p.Fetched
	switch {
	case p.published != nil && dataset == stages.FilePages:
		from, sorted = p.published, true
	case p.merged != nil:
		from, sorted = p.merged, true
	case from == nil:
		return nil, false
	}
	for _, f := range from.FilesOf(dataset) {
		if subset == "" || f.Subset == subset {
			keys = append(keys, f.Key)
		}
	}
	return keys, sorted
}
