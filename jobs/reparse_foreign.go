package jobs

import (
	"context"
	"fmt"
	"os"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
)

// parseTime predicts how long the documents of one host take, each.
const parseTime = 5 * time.Millisecond

// plan reads WARC files of others once and shards what they hold by domain. create is
// called before the plan is stored: where nothing can be parsed, nothing is written.
func (r *ReparseRequest) plan(ctx context.Context, create func() error) (*manifest.Plan, error) {
	scratch, err := os.MkdirTemp(r.Scratch, "plan-")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	c := worker.PlanConfig(r.Config)
	// Nothing is asked for: there is nobody to be spared, and what was captured once
	// is parsed whatever the budgets of a crawl.
	c.Budget, c.DomainBudgets, c.RoundURLs, c.CrawlURLs, c.Stopped = 0, nil, 0, 0, nil
	c.Delay, c.DomainDelays, c.Slots = 0, nil, 1
	c.Service = parseTime
	made, err := planner.Make(ctx, c, planner.Request{
		Crawl: r.As, Sources: []source.Source{source.WARC(r.Archive, r.ArchiveName, r.Files)}, Scratch: scratch, Version: r.Version,
	})
	if err != nil {
		return nil, err
	}
	if err := create(); err != nil {
		return nil, err
	}
	return made.Manifest(), made.Commit(ctx, r.Bucket)
}
