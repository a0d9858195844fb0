package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

type taskOptions struct {
	*common
	task stages.Task
}

func newTask(c *common) *cobra.Command {
	o := taskOptions{common: c}
	cmd := &cobra.Command{
		Use:   "task STAGE --month YYYY-MM --round N --partition N",
		Short: "Run one task: what a pod runs",
		Long: `Task makes one attempt at one task. It commits the task's result, once, or records
under attempts/ how it failed. A task whose result exists is done at once.`,
		Example: "  crawlbatch task fetch --month 2026-11 --round 0 --partition 17",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.task.Stage = stages.Stage(args[0])
			return runTask(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.task.Crawl, "month", "", "crawl, as 2026-11")
	cmd.Flags().IntVar(&o.task.Round, "round", 0, "round")
	cmd.Flags().IntVar(&o.task.Partition, "partition", 0, "partition")
	return cmd
}

func runTask(ctx context.Context, o taskOptions) error {
	if !o.task.Stage.Valid() {
		return usagef("stage %q: it may be %s", o.task.Stage, stageNames())
	}
	b, cfg, err := o.openCrawl(ctx, o.task.Crawl)
	if err != nil {
		return err
	}
	if err := cfg.RequireContact(); err != nil {
		return err
	}
	scratch, remove, err := newScratch()
	if err != nil {
		return err
	}
	defer remove()
	try := worker.Runner{
		Bucket: b, Config: cfg, Version: version, Scratch: scratch, Clock: stages.SystemClock{}, Log: o.log, Progress: stages.NoProgress{},
		Reloads: o.reloadOnHangup(ctx, b, o.task.Crawl, cfg),
	}
	if err := try.Run(ctx, o.task); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s done\n", o.task)
	return nil
}
