package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

type taskOptions struct {
	*common
	task        stages.Task
	tasks       string // key of a task list
	index       string // of the task in it
	politeness  string // file to follow
	termination string // file for one line of why the task failed
	metrics     metricsOptions
}

func newTask(c *common) *cobra.Command {
	o := taskOptions{common: c}
	cmd := &cobra.Command{
		Use:   "task STAGE --month YYYY-MM --round N (--partition N | --tasks KEY)",
		Short: "Run one task: what a pod runs",
		Long: `Task makes one attempt at one task. It commits the task's result, once, or records
under attempts/ how it failed. A task whose result exists is done at once.

In a pod of an Indexed Job, --tasks names a list of partitions in the store, and
JOB_COMPLETION_INDEX the one of them to run.`,
		Example: "  crawlbatch task fetch --month 2026-11 --round 0 --partition 17",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.task.Stage = stages.Stage(args[0])
			if cmd.Flags().Changed("tasks") {
				if cmd.Flags().Changed("partition") {
					return usagef("--tasks and --partition exclude one another")
				}
				o.index = os.Getenv("JOB_COMPLETION_INDEX")
			}
			if err := crashesTo(o.termination); err != nil {
				return err
			}
			err := runTask(cmd.Context(), o)
			return errors.Join(err, lastWords(o.termination, err))
		},
	}
	cmd.Flags().StringVar(&o.task.Crawl, "month", "", "crawl, as 2026-11")
	cmd.Flags().IntVar(&o.task.Round, "round", 0, "round")
	cmd.Flags().IntVar(&o.task.Partition, "partition", 0, "partition")
	cmd.Flags().StringVar(&o.tasks, "tasks", "", "key of a task list in the store; JOB_COMPLETION_INDEX says which of it")
	cmd.Flags().StringVar(&o.settings, "settings", "", "key in the store of the config to run with")
	cmd.Flags().StringVar(&o.politeness, "politeness", "", "file with a politeness section that is read again when it changes")
	cmd.Flags().StringVar(&o.termination, "termination-log", "", "file to write one line to of why the task failed")
	addMetricsFlags(cmd, &o.metrics)
	return cmd
}

// maxLastWords bounds the line: Kubernetes keeps 4 KiB.
const maxLastWords = 4000

// lastWords writes one line of why a task failed to the file that Kubernetes shows
// as a pod's termination message.
func lastWords(file string, err error) error {
	if file == "" || err == nil {
		return nil
	}
	line := oneLine(err)
	if len(line) > maxLastWords {
		line = strings.ToValidUTF8(line[:maxLastWords], "")
	}
	return os.WriteFile(file, []byte(line+"\n"), 0o644)
}

// crashesTo has the runtime write to the same file of what it crashes, if it does.
func crashesTo(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return usagef("--termination-log: %v", err)
	}
	defer f.Close() // the runtime keeps a descriptor of its own
	return debug.SetCrashOutput(f, debug.CrashOptions{})
}

// choose sets the partition that --tasks and the completion index stand for.
func (o *taskOptions) choose(ctx context.Context, b store.Bucket) error {
	if o.tasks == "" {
		return nil
	}
	list, err := k8s.LoadTasks(ctx, b, o.tasks, o.task.Stage, o.task.Crawl, o.task.Round)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(o.index)
	if err != nil || n < 0 || n >= len(list.Partitions) {
		return usagef("JOB_COMPLETION_INDEX is %q: --tasks %s lists %d tasks, so it may be 0 to %d", o.index, o.tasks, len(list.Partitions), len(list.Partitions)-1)
	}
	o.task.Partition = list.Partitions[n]
	return nil
}

func runTask(ctx context.Context, o taskOptions) error {
	if !o.task.Stage.Valid() {
		return usagef("stage %q: it may be %s", o.task.Stage, stageNames())
	}
	if o.task.Stage == stages.Fetch {
		boundMemory(fetchMemory)
	}
	measured, stopMetrics, err := serveMetrics(o.metrics, o.log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	b, cfg, err := o.openCrawl(ctx, o.task.Crawl)
	if err != nil {
		return err
	}
	b = measured.Bucket(b)
	if !layout.IsReparse(o.task.Crawl) { // which asks nobody
		if err := cfg.RequireContact(); err != nil {
			return err
		}
	}
	if err := o.choose(ctx, b); err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	try := worker.Runner{
		Bucket: b, Config: cfg, Version: version, Scratch: dir, Clock: stages.SystemClock{}, Log: o.log, Progress: measured.Progress(stages.NoProgress{}),
		Reloads: o.reloadOnHangup(ctx, b, o.task.Crawl, cfg), Machine: os.Getenv(k8s.PodName), Archive: o.openArchive,
	}
	if o.politeness != "" {
		following, stop := context.WithCancel(ctx)
		defer stop()
		go o.followPoliteness(following, b, o.task.Crawl, o.politeness, try.Clock, try.Reloads)
	}
	if err := try.Run(ctx, o.task); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s done\n", o.task)
	return nil
}
