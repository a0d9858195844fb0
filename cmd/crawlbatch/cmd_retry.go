package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/stages"
)

type retryOptions struct {
	runOptions
	stage      string
	partitions []int
}

func newRetry(c *common) *cobra.Command {
	o := retryOptions{runOptions: runOptions{common: c}}
	cmd := &cobra.Command{
		Use:   "retry --month YYYY-MM",
		Short: "Rerun the tasks that have no result",
		Long: `Retry runs the tasks of the current round that have no result, whatever became of
their earlier attempts: of one stage and of some partitions where they are named,
otherwise of the first stage that is not done. ` + "`crawlbatch run`" + ` then goes on with the round.`,
		Example: "  crawlbatch retry --month 2026-11 --stage fetch --partition 3,17",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRetry(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.month, "month", "", "crawl, as 2026-11")
	cmd.Flags().StringVar(&o.stage, "stage", "", "fetch, merge, dedup, rank, frontier or publish")
	cmd.Flags().IntSliceVar(&o.partitions, "partition", nil, "partitions, as 3,17")
	o.executorFlags(cmd)
	return cmd
}

func runRetry(ctx context.Context, o retryOptions) error {
	if o.stage != "" && !stages.Stage(o.stage).Valid() {
		return usagef("--stage %q: it may be %s", o.stage, stageNames())
	}
	if len(o.partitions) > 0 && o.stage == "" {
		return usagef("--partition needs --stage: partitions are counted within a stage")
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
	n, err := d.Retry(ctx, o.month, stages.Stage(o.stage), o.partitions)
	finish()
	if err != nil {
		return hint(err, o.month)
	}
	if n == 0 {
		fmt.Fprintln(o.out, "nothing to retry: every task asked for has a result")
		return nil
	}
	fmt.Fprintf(o.out, "%d tasks done: go on with `crawlbatch run --month %s`\n", n, o.month)
	return nil
}

func stageNames() string {
	var names string
	for i, s := range stages.Order {
		if i > 0 {
			names += ", "
		}
		names += string(s)
	}
	return names
}
