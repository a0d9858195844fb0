package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

type runOptions struct {
	*common
	month      string
	rounds     int
	fetchTasks int
	executor   string
	detach     bool
	cluster    clusterOptions
}

func newRun(c *common) *cobra.Command {
	o := runOptions{common: c}
	cmd := &cobra.Command{
		Use:   "run --month YYYY-MM",
		Short: "Crawl a planned month, from wherever it stands",
		Long: `Run fetches, merges, deduplicates, ranks, finds the next round's URLs and publishes
the tables, round after round. It goes on from wherever the crawl stands in the
store, so after an interruption or a failure the same command is run again.`,
		Example: "  crawlbatch run --month 2026-11 --rounds 2",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.month, "month", "", "crawl, as 2026-11")
	cmd.Flags().IntVar(&o.rounds, "rounds", 0, "rounds that the month has in the end; 0: until nothing is left or fetch.crawl_window is over")
	cmd.Flags().BoolVar(&o.detach, "detach", false, "with --executor kubernetes: run this command itself as a Job")
	o.executorFlags(cmd)
	return cmd
}

func (o *runOptions) executorFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.executor, "executor", executorLocal, "where tasks run: local or kubernetes")
	cmd.Flags().StringVar(&o.settings, "settings", "", "key in the store of the config that a driver elsewhere was given")
	_ = cmd.Flags().MarkHidden("settings") // it was just defined
	o.cluster.flags(cmd)
	cmd.Flags().IntVar(&o.fetchTasks, "fetch-tasks", 4, "partitions fetched at a time in this process")
}

func runRun(ctx context.Context, o runOptions) error {
	if o.rounds < 0 {
		return usagef("--rounds %d: it may be 0 (no bound) or more", o.rounds)
	}
	if err := o.checkExecutor(); err != nil {
		return err
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	if o.detach {
		return o.runDetached(ctx, b, cfg)
	}
	d, finish, err := o.driver(ctx, b, cfg)
	if err != nil {
		return err
	}
	defer finish()
	if err := d.Run(ctx, o.month, o.rounds); err != nil {
		return hint(err, o.month, o.again())
	}
	finish()
	return printSummary(ctx, o.out, b, o.month)
}

// driver makes a driver with the executor asked for. finish ends its progress display
// and removes its scratch; it may be called twice.
func (o runOptions) driver(ctx context.Context, b store.Bucket, cfg *config.Config) (*jobs.Driver, func(), error) {
	if _, err := store.Probe(ctx, b); err != nil {
		return nil, nil, err
	}
	if err := cfg.RequireContact(); err != nil {
		return nil, nil, err
	}
	if o.config != "" {
		if _, err := worker.PublishPoliteness(ctx, b, o.month, cfg.Politeness, version); err != nil {
			return nil, nil, err
		}
	}
	var client kubernetes.Interface
	if o.executor == executorKubernetes {
		var err error
		if client, err = o.cluster.connect(ctx, cfg); err != nil {
			return nil, nil, err
		}
	}
	scratch, remove, err := newScratch()
	if err != nil {
		return nil, nil, err
	}
	clock := stages.SystemClock{}
	shown := newProgress(o.err, clock)
	log := o.log
	if shown.bars != nil {
		log = shown.quiet(o.logFormat)
	}
	try := worker.Runner{
		Bucket: b, Config: cfg, Version: version, Scratch: scratch, Clock: clock, Log: log, Progress: shown,
		Reloads: o.reloadOnHangup(ctx, b, o.month, cfg),
	}
	d := &jobs.Driver{
		Bucket: b, Observer: shown, Config: cfg, Clock: clock, Log: log, Version: version, Scratch: scratch, Lookup: os.LookupEnv, Flags: o.again(),
		Runner: try,
		Executor: &local.Executor{
			Try: try.Run, FetchTasks: o.fetchTasks, Tasks: runtime.GOMAXPROCS(0),
			Attempts: 3, Pause: time.Second, Clock: clock, Log: log,
		},
	}
	if client != nil {
		d.Executor = o.kubernetesExecutor(client, b, cfg, clock, log)
	}
	finished := false
	return d, func() {
		if !finished {
			finished = true
			shown.Close()
			remove()
		}
	}, nil
}

// hint adds to an interruption how to go on.
func hint(err error, month, again string) error {
	if exitCode(err) == exitInterrupted {
		return fmt.Errorf("%w: what was done is kept; go on with `crawlbatch run --month %s%s`", err, month, again)
	}
	return err
}
