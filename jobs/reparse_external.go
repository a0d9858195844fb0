package jobs

import (
	"context"
	"fmt"
	"os"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/optout"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/external"
)

// parseTime is the predicted time to parse one document.
const parseTime = 5 * time.Millisecond

// planExternal reads external WARC files once and divides their records by domain. It calls
// create before it stores the plan. If the files hold no document to parse, planExternal
// writes nothing. The plan has no URL that was taken down from the store, or that the opt-out list names.
func (r *ReparseRequest) planExternal(ctx context.Context, was removed, create func() error) (*manifest.Plan, error) {
	scratch, err := os.MkdirTemp(r.Scratch, "plan-")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	c := worker.PlanConfig(r.Config)
	// A reparse sends no requests, so hosts need no pauses. Budgets do not apply to documents that
	// were already captured.
	c.Budget, c.DomainBudgets, c.RoundURLs, c.CrawlURLs, c.Limits, c.Stopped = 0, nil, 0, 0, budget.Limits{}, nil
	c.Delay, c.Pace, c.AddressDelay, c.Window, c.Slots = 0, nil, 0, 0, 1
	c.Rules, c.Filters = urlkey.Rules{}, nil // the documents keep the URLs under which they were stored
	c.Service = parseTime
	if c.Gone, err = worker.TakenDown(ctx, r.Bucket, r.Config, nil); err != nil {
		return nil, err
	}
	if c.OptOut, err = optout.Read(ctx, r.Config, r.Open); err != nil {
		return nil, err
	}
	made, err := planner.Make(ctx, c, planner.Request{
		Crawl: r.As, Sources: []source.Source{external.WARC(r.Archive, r.ArchiveName, r.Files, external.Options{Scratch: scratch, Gone: c.Gone})}, Scratch: scratch, Version: r.Version,
	})
	if err != nil {
		return nil, err
	}
	if err := create(); err != nil {
		return nil, err
	}
	if err := made.Commit(ctx, r.Bucket); err != nil {
		return nil, err
	}
	return made.Manifest(), choosePlan(ctx, r.Bucket, was, made.Manifest(), r.ledgers())
}
