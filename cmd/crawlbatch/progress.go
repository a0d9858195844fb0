package main

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// show starts the display of the crawl's progress. elsewhere is true if tasks run in a cluster. If the
// display is redrawn in place, the log is written above it.
func (o *runOptions) show(ctx context.Context, b *store.Counter, cfg *config.Config, elsewhere bool) *show.Progress {
	opt := show.Options{
		Out: show.Folding(o.out), Err: o.err, Clock: stages.SystemClock{}, Log: o.log, Structured: o.logFormat == "json", FetchTasks: o.fetchTasks,
		Advice: o.advice, Costs: &show.Costs{Model: costModel(cfg), Bucket: b.Unwrap(), Used: b.Counts},
	}
	if elsewhere {
		opt.FetchTasks, opt.Costs.Used = 0, nil
		opt.Peek = (&jobs.StatusReader{Bucket: b}).Fetching
	}
	p := show.New(ctx, opt)
	if p.Live() {
		o.errors.Above(p)
	}
	return p
}

// advice returns a sentence that says how to end a wait for hosts early.
func (o *runOptions) advice(t stages.Task, hosts []string) string {
	flags := o.common.givenFlags()
	stop := fmt.Sprintf("to end the wait for %s: `%s`", hosts[0], jobs.StopCommand(hosts[0], t.Crawl, flags))
	if len(hosts) > 1 {
		stop = fmt.Sprintf("%s: to end the wait, stop each of them, such as `%s`", show.Together(hosts), jobs.StopCommand(hosts[0], t.Crawl, flags))
	}
	return fmt.Sprintf("%s, whose URLs end as stopped within %s; or Ctrl-C, `crawlbatch retry --month %s --give-up --partition %d%s` and run again, which defers the rest of its partition to the next round",
		stop, worker.ControlEvery, t.Crawl, t.Partition, flags)
}
