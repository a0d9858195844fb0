package main

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

type runOptions struct {
	*common
	month      string
	rounds     int
	fetchTasks int
	executor   string
	detach     bool
	metrics    metricsOptions
	cluster    clusterOptions
}

func newRun(c *common) *cobra.Command {
	o := runOptions{common: c}
	cmd := &cobra.Command{
		Use:   "run --month YYYY-MM",
		Short: "Crawl a planned month, from wherever it stands",
		Long: `Run fetches, merges, deduplicates, ranks, finds the next round's URLs and publishes
the tables, round after round. It goes on from wherever the crawl stands in the
store, so after an interruption or a failure the same command is run again.

It shows how far it is, how long the rest takes, and which hosts it waits for, why and
until when. On a terminal that is redrawn in place; elsewhere, with TERM=dumb and with
--log-format json it is lines: when a reason changes, and once a minute.`,
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
	o.whereFlags(cmd)
	addMetricsFlags(cmd, &o.metrics)
	cmd.Flags().IntVar(&o.fetchTasks, "fetch-tasks", 4, "partitions fetched at a time in this process")
}

// whereFlags say where tasks run.
func (o *runOptions) whereFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.executor, "executor", executorLocal, "where tasks run: local or kubernetes")
	cmd.Flags().StringVar(&o.settings, "settings", "", "key in the store of the config that a driver elsewhere was given")
	_ = cmd.Flags().MarkHidden("settings") // it was just defined
	o.cluster.flags(cmd)
	o.configFlags(cmd, true)
}

func runRun(ctx context.Context, o runOptions) error {
	if o.rounds < 0 {
		return usagef("--rounds %d: it may be 0 (no bound) or more", o.rounds)
	}
	if err := o.checkExecutor(); err != nil {
		return err
	}
	measured, stopMetrics, err := serveMetrics(o.metrics, o.log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	o.warnOfAgent(cfg)
	if o.detach {
		return o.runDetached(ctx, b, cfg)
	}
	client, err := o.client(ctx, cfg)
	if err != nil {
		return err
	}
	d, finish, err := o.driver(ctx, b, cfg, client, measured)
	if err != nil {
		return err
	}
	defer finish()
	err = d.Run(ctx, o.month, o.rounds)
	finish()
	return o.hint(err, o.month)
}

// publishConfig makes the politeness of --config, if that is given, the crawl's newest.
func (o *runOptions) publishConfig(ctx context.Context, b store.Bucket, cfg *config.Config) error {
	if o.config == "" || layout.IsReparse(o.month) {
		return nil
	}
	_, err := roundstate.PublishPoliteness(ctx, b, o.month, cfg.Politeness, version)
	return err
}

// driver makes a driver that runs tasks in the cluster of a client, or here where
// that is nil, measured if metrics are wanted. finish ends its progress display and
// removes its scratch; it may be called twice.
func (o *runOptions) driver(ctx context.Context, b store.Bucket, cfg *config.Config, client k8s.Client, measured *metrics.Metrics) (*jobs.Driver, func(), error) {
	b = measured.Bucket(b)
	if _, err := store.Probe(ctx, b); err != nil {
		return nil, nil, err
	}
	if !layout.IsReparse(o.month) { // which asks nobody
		if err := cfg.RequireContact(); err != nil {
			return nil, nil, err
		}
	}
	if err := o.publishConfig(ctx, b, cfg); err != nil {
		return nil, nil, err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return nil, nil, err
	}
	clock, log := stages.SystemClock{}, o.log
	shown := o.show(ctx, b, client != nil)
	if shown.Live() {
		log = o.logFrom(slog.LevelWarn) // of tasks, whose course is redrawn in place
	}
	updates := o.politenessOf(b, o.month, clock)
	o.reloadOnHangup(ctx, cfg, updates)
	try := worker.Runner{
		Bucket: b, Config: cfg, Version: version, Scratch: dir, Clock: clock, Log: log, Progress: measured.Progress(shown), Watcher: shown,
		Reloads: &updates.Tasks, Archive: o.openArchive,
	}
	d := &jobs.Driver{
		Bucket: b, Observer: shown, Config: cfg, Clock: clock, Log: o.log, Version: version, Scratch: dir, Lookup: os.LookupEnv, Flags: o.again(),
		Runner: try,
		Executor: &local.Executor{
			Try: try.Run, FetchTasks: o.fetchTasks, Tasks: runtime.GOMAXPROCS(0),
			Attempts: 3, Pause: time.Second, Clock: clock, Log: log, Watcher: shown,
		},
	}
	if client != nil {
		d.Executor = o.kubernetesExecutor(client, b, cfg, clock, log)
	}
	finished := false
	return d, func() {
		if !finished {
			finished = true
			o.errors.Above(nil)
			shown.Close()
			remove()
		}
	}, nil
}
