package worker

import (
	"context"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// readers is how many results are read at a time: an object store takes tens of
// milliseconds for each, and there are thousands.
const readers = 32

// loaded is a result as it was read; nil where there is none.
type loaded struct {
	result *manifest.Result
	digest string
}

// loadResults reads the results of tasks of a plan, in their order.
func loadResults(ctx context.Context, b store.Bucket, p *manifest.Plan, tasks []stages.Task) ([]loaded, error) {
	all := make([]loaded, len(tasks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			all[i].result, all[i].digest, err = LoadResultOf(ctx, b, p, t)
			return err
		})
	}
	return all, group.Wait()
}

// tasksOf lists the tasks of a stage, in order.
func tasksOf(p *manifest.Plan, stage stages.Stage) []stages.Task {
	var tasks []stages.Task
	for n := range stage.Tasks(p) {
		tasks = append(tasks, stages.Task{Stage: stage, Crawl: p.Crawl, Round: p.Round, Partition: n})
	}
	return tasks
}
