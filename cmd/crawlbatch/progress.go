package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/show"
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
		opt.Peek = func(ctx context.Context, p *manifest.Plan, tasks []stages.Task) ([]jobs.FetchStatus, error) {
			return jobs.Fetching(ctx, b, p, tasks)
		}
	}
	p := show.New(ctx, opt)
	if p.Live() {
		o.errors.Above(p)
	}
	return p
}

// advice returns a sentence that says how to end a wait for a host early.
func (o *runOptions) advice(t stages.Task, host string) string {
	name := host
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.HasSuffix(name, "]") {
		name = name[:i]
	}
	stop := fmt.Sprintf("`politeness: {domains: {%s: {stop: not now}}}`", name)
	if o.config != "" {
		stop = fmt.Sprintf("put %s into %s and `kill -HUP %d`", stop, o.config, os.Getpid())
	} else {
		stop = fmt.Sprintf("Ctrl-C and go on with %s in a --config file", stop)
	}
	// Pods read politeness from a ConfigMap, and politeness.domains has no IPv6 addresses.
	if o.executor == executorKubernetes || strings.HasPrefix(name, "[") {
		stop = ""
	}
	giveUp := fmt.Sprintf("Ctrl-C, then `crawlbatch retry --month %s --give-up --partition %d%s` and run again, which defers the rest of its partition to the next round",
		t.Crawl, t.Partition, o.common.givenFlags())
	if stop == "" {
		return "to end the wait: " + giveUp
	}
	return "to end the wait: " + stop + "; or " + giveUp
}
