package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/verify"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

type taskOptions struct {
	*common
	task       stages.Task
	tasks      string // key of a task list
	index      string // index of the task in the task list
	politeness string // file with a politeness section; the task applies each change of the file
	metrics    metricsOptions
}

func newTask(c *common) *cobra.Command {
	o := taskOptions{common: c}
	cmd := &cobra.Command{
		Use:   "task STAGE --month YYYY-MM --round N (--partition N | --tasks KEY)",
		Short: "Run one task, as a pod does",
		Long: `Task makes one attempt at one task. It commits the task's result, once, or records under
attempts/ how the attempt failed. It does nothing if the task has a result. The stages
verify-ID-files and verify-ID-checks belong to an audit that verify --tasks started.

In a pod of an Indexed Job, --tasks names a list of partitions in the store, and
JOB_COMPLETION_INDEX selects one of them.`,
		Example:   "  crawlbatch task fetch --month 2026-11 --round 0 --partition 17",
		Args:      cobra.ExactArgs(1),
		ValidArgs: stageNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.task.Stage = stages.Stage(args[0])
			if cmd.Flags().Changed("tasks") {
				if cmd.Flags().Changed("partition") {
					return usage.Errorf("--tasks and --partition cannot be combined")
				}
				o.index = os.Getenv("JOB_COMPLETION_INDEX")
			}
			if err := k8s.WriteCrashesTo(c.terminated); err != nil {
				return usage.Errorf("--termination-log: %v", err)
			}
			return runTask(cmd.Context(), o)
		},
	}
	usage.MonthFlag(cmd, &o.task.Crawl, "crawl of the task")
	cmd.Flags().IntVar(&o.task.Round, "round", 0, "round of the task")
	cmd.Flags().IntVar(&o.task.Partition, "partition", 0, "partition of the task")
	cmd.Flags().StringVar(&o.tasks, "tasks", "", "key of a task list in the store; JOB_COMPLETION_INDEX selects a task of it")
	cmd.Flags().StringVar(&o.settings, "settings", "", "key in the store of the config to run with")
	cmd.Flags().StringVar(&o.politeness, "politeness", "", "file with a politeness section, read again when it changes")
	cmd.Flags().StringVar(&c.terminated, "termination-log", "", "file for one line that says why the task failed")
	addMetricsFlags(cmd, &o.metrics)
	return cmd
}

func runTask(ctx context.Context, o taskOptions) error {
	_, audits := o.task.Stage.Audit()
	if !o.task.Stage.Valid() && !audits {
		return usage.Errorf("stage %q: it must be %s", o.task.Stage, usage.OrList(stageNames()))
	}
	if o.task.Stage == stages.Fetch {
		boundMemory(fetchMemory)
	}
	measured, stopMetrics, err := serveMetrics(o.metrics, o.log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	if audits {
		return runAudit(ctx, o)
	}
	b, cfg, err := o.openToWrite(ctx, o.task.Crawl, false)
	if err != nil {
		return err
	}
	b = measured.Bucket(b)
	try, updates, remove, err := o.runner(ctx, b, cfg, o.task.Crawl)
	if err != nil {
		return err
	}
	defer remove()
	fetches, others := 0, 1
	if o.task.Stage == stages.Fetch {
		fetches, others = 1, 0
	}
	if try.Shares, err = o.obey(cfg, fetches, others); err != nil {
		return err
	}
	try.Progress, try.Watcher, try.Machine = measured.Progress(stages.NoProgress{}), measured.Watcher(nil), os.Getenv(k8s.PodName)
	if err := o.find(ctx, b); err != nil {
		return err
	}
	if o.politeness != "" {
		following, stop := context.WithCancel(ctx)
		defer stop()
		go updates.Follow(following, o.politeness)
	}
	if err := measured.Attempt(try.Run)(ctx, o.task); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s done\n", o.task)
	return nil
}

// find looks up the task in the list of --tasks, if that flag is given.
func (o *taskOptions) find(ctx context.Context, b store.Bucket) (err error) {
	if o.tasks != "" {
		o.task.Partition, err = k8s.PartitionAt(ctx, b, o.tasks, o.index, o.task)
	}
	return err
}

// inScratch calls run with a scratch directory, for the task that find finds.
func (o *taskOptions) inScratch(ctx context.Context, b store.Bucket, run func(dir string) error) error {
	if err := o.find(ctx, b); err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	if err := run(dir); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s done\n", o.task)
	return nil
}

// runAudit runs a task of an audit, which verify started.
func runAudit(ctx context.Context, o taskOptions) error {
	b, cfg, err := o.openAudit(ctx, o.task.Crawl)
	if err != nil {
		return err
	}
	return o.inScratch(ctx, b, func(dir string) error {
		const checks = 1 // at a time, because a pod requests one CPU and the memory for one check
		boundAudit(checks)
		options := verify.Options{Bucket: b, Crawl: o.task.Crawl, Config: cfg, Scratch: dir, Parallel: checks, Version: version, Archive: o.openArchive}
		return verify.RunTask(ctx, options, o.task)
	})
}
