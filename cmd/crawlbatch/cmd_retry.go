package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

type retryOptions struct {
	runOptions
	stage      string
	partitions []int
	classes    []string
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
` + classNames() + `.`,
		Example: `  crawlbatch retry --month 2026-11 --stage fetch --partition 3,17
  crawlbatch retry --month 2026-11 --class store_unavailable,disk_full`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRetry(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.month, "month", "", "crawl, as 2026-11")
	cmd.Flags().StringVar(&o.stage, "stage", "", "fetch, merge, dedup, rank, frontier or publish")
	cmd.Flags().IntSliceVar(&o.partitions, "partition", nil, "partitions, as 3,17")
	cmd.Flags().StringSliceVar(&o.classes, "class", nil, "only tasks whose newest attempt failed so, as disk_full,failed")
	o.executorFlags(cmd)
	return cmd
}

// check finds what is wrong with the flags.
func (o *retryOptions) check() error {
	if o.stage != "" && !stages.Stage(o.stage).Valid() {
		return usagef("--stage %q: it may be %s", o.stage, stageNames())
	}
	if len(o.partitions) > 0 && o.stage == "" {
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
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	d, finish, err := o.driver(ctx, b, cfg)
	if err != nil {
		return err
	}
	defer finish()
	n, err := d.Retry(ctx, o.month, jobs.RetryRequest{Stage: stages.Stage(o.stage), Partitions: o.partitions, Classes: o.classes})
	finish()
	switch {
	case err != nil:
		return hint(err, o.month)
	case n == 0 && len(o.classes) > 0:
		fmt.Fprintf(o.out, "nothing to retry: no task asked for failed last with %s\n", strings.Join(o.classes, " or "))
	case n == 0:
		fmt.Fprintln(o.out, "nothing to retry: every task asked for has a result")
	default:
		fmt.Fprintf(o.out, "%s done: go on with `crawlbatch run --month %s%s`\n", count(int64(n), "task"), o.month, o.again())
	}
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
