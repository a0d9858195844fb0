package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

type retryOptions struct {
	runOptions
	stage      string
	partitions []int
	classes    []string
	giveUp     bool
	rebuild    bool
	round      int
}

func newRetry(c *common) *cobra.Command {
	o := retryOptions{runOptions: runOptions{common: c}}
	cmd := &cobra.Command{
		Use:   "retry --month YYYY-MM",
		Short: "Rerun the tasks that have no result",
		Long: `Retry runs the tasks of the current round that have no result, whatever became of
their earlier attempts: of one stage, of some partitions and of some classes of
failure where they are named, otherwise of the first stage that is not done.
` + "`crawlbatch run`" + ` then goes on with the round. ` + "`crawlbatch status`" + ` shows the classes:
` + classNames() + `.

What keeps failing holds the round. With --give-up, fetch tasks are ended instead:
what they have checkpointed is committed, no host is asked anything more, and URLs
without an outcome are deferred to the next round.

With --rebuild, tasks that have a result are looked at instead, of sealed rounds too:
parts of tables and working files that the store has lost are made again from the
frozen inputs. They must come out byte for byte, otherwise nothing is written. Both
run in this process, whatever --executor says.`,
		Example: `  crawlbatch retry --month 2026-11 --stage fetch --partition 3,17
  crawlbatch retry --month 2026-11 --executor kubernetes --store s3://bucket/prefix
  crawlbatch retry --month 2026-11 --class store_unavailable,disk_full
  crawlbatch retry --month 2026-11 --give-up --partition 17
  crawlbatch retry --month 2026-11 --rebuild --stage merge`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRetry(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.month, "month", "", "crawl, as 2026-11")
	cmd.Flags().StringVar(&o.stage, "stage", "", "fetch, merge, dedup, rank, frontier or publish")
	cmd.Flags().IntSliceVar(&o.partitions, "partition", nil, "partitions, as 3,17")
	cmd.Flags().StringSliceVar(&o.classes, "class", nil, "only tasks whose newest attempt failed so, as disk_full,failed")
	cmd.Flags().BoolVar(&o.giveUp, "give-up", false, "end the fetch tasks of --partition, deferring what is not fetched")
	cmd.Flags().BoolVar(&o.rebuild, "rebuild", false, "make lost parts of reduce tasks again")
	cmd.Flags().IntVar(&o.round, "round", jobs.AllRounds, "with --rebuild: the round; -1: all")
	o.executorFlags(cmd)
	return cmd
}

// check finds what is wrong with the flags.
func (o *retryOptions) check() error {
	if o.stage != "" && !stages.Stage(o.stage).Valid() {
		return usagef("--stage %q: it may be %s", o.stage, stageNames())
	}
	switch {
	case o.rebuild && o.giveUp:
		return usagef("--rebuild and --give-up exclude one another")
	case o.rebuild && len(o.classes) > 0:
		return usagef("--rebuild is for tasks that have a result, --class for those that failed")
	case o.rebuild && stages.Stage(o.stage) == stages.Fetch && !layout.IsReparse(o.month):
		return usagef("--rebuild is for reduce stages: what was fetched cannot be made again")
	case !o.rebuild && o.round != jobs.AllRounds:
		return usagef("--round needs --rebuild: other retries are of the round under way")
	case o.round < jobs.AllRounds:
		return usagef("--round %d: it may be 0 or more, or -1 for all", o.round)
	}
	if o.giveUp {
		switch {
		case len(o.partitions) == 0:
			return usagef("--give-up needs --partition: name the fetch tasks to end, as --partition 3,17")
		case o.stage != "" && stages.Stage(o.stage) != stages.Fetch:
			return usagef("--give-up is for fetch alone, not for --stage %s", o.stage)
		case len(o.classes) > 0:
			return usagef("--give-up takes --partition, not --class")
		}
	} else if len(o.partitions) > 0 && o.stage == "" {
		return usagef("--partition needs --stage: partitions are counted within a stage")
	}
	for _, c := range o.classes {
		if !slices.Contains(manifest.FailureClasses(), c) {
			return usagef("--class %q: it may be %s", c, classNames())
		}
	}
	return nil
}

func runRetry(ctx context.Context, o retryOptions) error {
	if err := o.check(); err != nil {
		return err
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
	var client k8s.Client
	if !o.giveUp && !o.rebuild { // which run here, whatever the executor
		if client, err = o.client(ctx, cfg); err != nil {
			return err
		}
	}
	d, finish, err := o.driver(ctx, b, cfg, client, measured)
	if err != nil {
		return err
	}
	defer finish()
	switch {
	case o.giveUp:
		return retryGiveUp(ctx, o, d, finish)
	case o.rebuild:
		return retryRebuild(ctx, o, d, finish)
	}
	n, err := d.Retry(ctx, o.month, jobs.RetryRequest{Stage: stages.Stage(o.stage), Partitions: o.partitions, Classes: o.classes})
	finish()
	switch {
	case err != nil:
		return o.hint(err, o.month)
	case n == 0 && len(o.classes) > 0:
		fmt.Fprintf(show.Folding(o.out), "nothing to retry: no task asked for failed last with %s\n", strings.Join(o.classes, " or "))
	case n == 0:
		fmt.Fprintln(show.Folding(o.out), "nothing to retry: every task asked for has a result")
	default:
		fmt.Fprintf(show.Folding(o.out), "%s done: go on with `crawlbatch run --month %s%s`\n", show.Count(int64(n), "task"), o.month, o.again())
	}
	return nil
}

// retryGiveUp ends the fetch tasks asked for.
func retryGiveUp(ctx context.Context, o retryOptions, d *jobs.Driver, finish func()) error {
	n, err := d.GiveUp(ctx, o.month, o.partitions)
	finish()
	switch {
	case err != nil:
		return o.hint(err, o.month)
	case n == 0:
		fmt.Fprintln(show.Folding(o.out), "nothing to give up: every task asked for has a result")
	default:
		fmt.Fprintf(show.Folding(o.out), "%s given up: go on with `crawlbatch run --month %s%s`\n", show.Count(int64(n), "task"), o.month, o.again())
	}
	return nil
}

// retryRebuild makes lost parts again, and prints which.
func retryRebuild(ctx context.Context, o retryOptions, d *jobs.Driver, finish func()) error {
	parts := 0
	err := d.Rebuild(ctx, o.month, jobs.RebuildRequest{Stage: stages.Stage(o.stage), Partitions: o.partitions, Round: o.round}, func(t stages.Task, keys []string) {
		for _, key := range keys {
			fmt.Fprintf(show.Folding(o.out), "%s rebuilt %s\n", t, key)
		}
		parts += len(keys)
	})
	finish()
	if err != nil {
		return o.hint(err, o.month)
	}
	if parts == 0 {
		fmt.Fprintln(show.Folding(o.out), "nothing to rebuild: no part is missing that a result lists")
		return nil
	}
	fmt.Fprintf(show.Folding(o.out), "%s rebuilt: check the crawl with `crawlbatch verify --month %s%s`\n", show.Count(int64(parts), "part"), o.month, o.again())
	return nil
}

func stageNames() string {
	var names []string
	for _, s := range stages.Order {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func classNames() string { return strings.Join(manifest.FailureClasses(), ", ") }
