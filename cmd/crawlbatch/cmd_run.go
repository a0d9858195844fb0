package main

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/limits"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/trace"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// defaultFetchTasks is the number of partitions that a process fetches at a time.
const defaultFetchTasks = 4

type runOptions struct {
	*common
	month      string
	rounds     int
	fetchTasks int
	tasks      int // tasks of other stages that run at a time in this process
	executor   string
	detach     bool
	metrics    metricsOptions
	cluster    clusterOptions
}

func newRun(c *common) *cobra.Command {
	o := runOptions{common: c}
	cmd := usage.WithOptions(&o, runRun, &cobra.Command{
		Use:   "run --month YYYY-MM",
		Short: "Crawl a planned month, from wherever it stands",
		Long: `Run fetches, merges, deduplicates, ranks, finds the next round's URLs and publishes
the tables, round after round. It continues from wherever the crawl stands in the store:
after an interruption or a failure, run the same command again. If most URLs of a round failed
for one reason, run says so after the last round, with what to do, and exits with 5.

It shows the progress, the rate, the remaining time, the cost, and the hosts for which it
waits, with the reason and the end of each wait. On a terminal it redraws this display in
place. Elsewhere, with TERM=dumb and with --log-format json, it prints lines: once a minute,
and when a reason changes.`,
		Example: "  crawlbatch run --month 2026-11 --rounds 2",
	})
	usage.MonthFlag(cmd, &o.month, "crawl to run")
	cmd.Flags().IntVar(&o.rounds, "rounds", 0, "run until the month has this many rounds; 0: until nothing is left or fetch.crawl_window is over")
	cmd.Flags().BoolVar(&o.detach, "detach", false, "with --executor kubernetes: run this command itself as a Job")
	o.executorFlags(cmd)
	return cmd
}

func (o *runOptions) executorFlags(cmd *cobra.Command) {
	o.clusterFlags(cmd)
	addMetricsFlags(cmd, &o.metrics)
	cmd.Flags().IntVar(&o.fetchTasks, "fetch-tasks", defaultFetchTasks, "partitions fetched at a time in this process")
}

// clusterFlags defines the flags that say where tasks run.
func (o *runOptions) clusterFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.executor, "executor", executorLocal, "where tasks run: local or kubernetes")
	cmd.Flags().StringVar(&o.settings, "settings", "", "key in the store of the config that a driver stored for this process")
	_ = cmd.Flags().MarkHidden("settings") // MarkHidden fails only for an unknown flag
	usage.CompleteFlag(cmd, "executor", executorLocal, executorKubernetes)
	o.cluster.flags(cmd)
	o.configFlags(cmd, true)
}

func runRun(ctx context.Context, o runOptions) error {
	if o.rounds < 0 || o.fetchTasks < 1 {
		return usage.Errorf("--rounds %d --fetch-tasks %d: the least are 0 (no bound) and 1", o.rounds, o.fetchTasks)
	}
	r, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer r.stop()
	o.warnOfAgent(r.cfg)
	if o.detach {
		return o.runDetached(ctx, r.b, r.cfg)
	}
	d, finish, err := o.makeDriver(ctx, r, true)
	if err != nil {
		return err
	}
	defer finish()
	if err = d.Run(ctx, o.month, o.rounds); err == nil {
		err = d.MostFailed(ctx)
	}
	finish()
	return o.hint(err, o.month)
}

// openedCrawl is a crawl that a command has opened to run tasks, with what its driver needs.
type openedCrawl struct {
	b       store.Bucket
	cfg     *config.Config
	metrics *metrics.Metrics // nil: the command serves no metrics
	stop    func()           // stops the metrics server
}

// open checks the flags of the executor, starts the metrics server and opens the crawl.
func (o *runOptions) open(ctx context.Context) (*openedCrawl, error) {
	if err := o.checkExecutor(); err != nil {
		return nil, err
	}
	m, stop, err := serveMetrics(o.metrics, o.log)
	if err != nil {
		return nil, err
	}
	b, cfg, err := o.openToWrite(ctx, o.month, o.config != "")
	if err == nil {
		err = ledger.CheckNames(ctx, b, o.month)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &openedCrawl{b, cfg, m, stop}, nil
}

// publishConfig publishes the politeness of --config as the crawl's newest revision. Without
// --config, publishConfig does nothing.
func (o *runOptions) publishConfig(ctx context.Context, b store.Bucket, cfg *config.Config) error {
	if o.config == "" || layout.IsReparse(o.month) {
		return nil
	}
	_, err := roundstate.PublishPoliteness(ctx, b, o.month, cfg.Politeness, ledgers())
	return err
}

// makeDriver makes a driver that runs tasks in this process. If inCluster is true, the driver obeys
// --executor and may run tasks in the cluster. The caller calls finish, once or more, to end the
// progress display and remove the scratch directory.
func (o *runOptions) makeDriver(ctx context.Context, r *openedCrawl, inCluster bool) (d *jobs.Driver, finish func(), err error) {
	var cluster *k8s.Executor
	if inCluster && o.executor == executorKubernetes {
		if cluster, err = o.onCluster(ctx, nil, r.cfg, o.log); err != nil {
			return nil, nil, err
		}
	}
	_, _ = readLimits() // lowers GOMAXPROCS to what the memory allows; obey reports the error
	b, cfg, own := store.Count(r.metrics.Bucket(r.b)), r.cfg, limits.Shares{}
	if cluster == nil {
		if own, err = o.obey(cfg, o.fetchTasks, runtime.GOMAXPROCS(0)); err != nil {
			return nil, nil, err
		}
		o.fetchTasks, o.tasks = own.FetchTasks, own.Tasks
	}
	if _, err := store.Probe(ctx, b); err != nil {
		return nil, nil, err
	}
	try, _, remove, err := o.runner(ctx, b, cfg, o.month)
	if err != nil {
		return nil, nil, err
	}
	if err := o.publishConfig(ctx, b, cfg); err != nil {
		remove()
		return nil, nil, err
	}
	shown := o.show(ctx, b, cfg, cluster != nil)
	if shown.Live() {
		try.Log = o.logFrom(slog.LevelWarn) // without messages about progress, which the display shows
	}
	try.Shares = own
	try.Progress, try.Watcher = r.metrics.Progress(shown), r.metrics.Watcher(shown)
	d = &jobs.Driver{
		Bucket: b, Observer: r.metrics.Observer(shown, o.limit(cluster != nil, cfg), shown.Recorded, o.sealedFiles(ctx, b)), Config: cfg, Costs: costModel(cfg), Clock: try.Clock, Log: o.log, Version: version, Scratch: try.Scratch, Lookup: os.LookupEnv, Flags: o.givenFlags(),
		Runner: try,
		Executor: &local.Executor{
			Try: r.metrics.Attempt(try.Run), FetchTasks: o.fetchTasks, Tasks: o.tasks,
			Attempts: 3, Pause: time.Second, Clock: try.Clock, Log: try.Log, Watcher: shown,
		},
	}
	if cluster != nil {
		cluster.Bucket, cluster.Log, d.Executor = b, try.Log, cluster
	}
	return d, sync.OnceFunc(func() {
		o.errors.Above(nil)
		shown.Close()
		remove()
	}), nil
}

// limit returns a function that returns how many tasks of a stage run at a time.
func (o *runOptions) limit(onCluster bool, cfg *config.Config) func(stages.Stage) int {
	return func(s stages.Stage) int {
		switch {
		case onCluster:
			return cfg.Kubernetes.Parallelism.Max
		case s == stages.Fetch:
			return o.fetchTasks
		}
		return o.tasks
	}
}

// sealedFiles returns a function that calls each for each file that a seal lists. A file that cannot be
// listed is missing in the metrics only.
func (c *common) sealedFiles(ctx context.Context, b store.Bucket) func(s *manifest.Sealed, each func(manifest.File)) {
	return func(s *manifest.Sealed, each func(manifest.File)) {
		if err := roundstate.EachFile(ctx, b, s, each); err != nil {
			c.log.Warn("the metric crawler_sealed_bytes lacks files", "crawl", s.Crawl, "round", s.Round, "error", err)
		}
	}
}

// runner returns the runner of a crawl's tasks in this process. The runner receives new politeness
// settings through updates. The caller calls remove to delete the runner's scratch directory.
func (c *common) runner(ctx context.Context, b store.Bucket, cfg *config.Config, crawl string) (r worker.Runner, updates *worker.PolitenessUpdates, remove func(), err error) {
	if !layout.IsReparse(crawl) { // a reparse sends no requests and needs no politeness
		if err := cfg.RequireContact(); err != nil {
			return r, nil, nil, err
		}
	}
	clock := stages.SystemClock{}
	updates = &worker.PolitenessUpdates{Bucket: b, Crawl: crawl, Version: version, Clock: clock, Log: c.log}
	r = worker.Runner{Bucket: b, Config: cfg, Version: version, Clock: clock, Log: c.log, Reloads: &updates.Tasks, Flags: c.givenFlags(), Archive: c.openArchive, CPU: &worker.CPU{}, Clocks: &polite.Clocks{}, Witness: witness.New(clock, c.log)}
	if r.Scratch, remove, err = scratch.New(); err != nil {
		return r, nil, nil, err
	}
	if r.Tracer, err = trace.New(version, clock, c.log); err != nil {
		remove()
		return r, nil, nil, usage.Error(err)
	}
	c.reloadOnHangup(ctx, cfg, updates)
	unscratch := remove // because the return assigns to remove
	return r, updates, func() { r.Tracer.Close(); unscratch() }, nil
}
