package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/feedback"
)

type feedbackOptions struct {
	*common
	month, to string
	round     int
}

func newFeedback(c *common) *cobra.Command {
	o := feedbackOptions{common: c}
	cmd := usage.WithOptions(&o, runFeedback, &cobra.Command{
		Use:   "feedback --month YYYY-MM --to DATABASE",
		Short: "Write outcomes to the database that listed the URLs",
		Long: `Feedback stores the outcomes of finished rounds in a result table beside the table of URLs,
then joins both by ranges of keys and sets status, http_status, fetched_at and
content_digest, as far as the table has these columns. The form of a URL in
the table does not matter. An outcome never replaces the outcome of a newer round. After an
interruption, the same command continues; after that, a repeated command changes nothing.`,
		Example: `  crawlbatch feedback --month 2026-11 --to 'mysql://crawler:${DB_PASSWORD}@db.example/crawler?table=url_queue'`,
	})
	usage.MonthFlag(cmd, &o.month, "crawl whose outcomes are written")
	cmd.Flags().StringVar(&o.to, "to", "", "mysql://, mariadb:// or postgres:// address of the table, as for plan --source; where= is ignored")
	cmd.Flags().IntVar(&o.round, "round", jobs.AllRounds, "round whose outcomes are written; -1: all finished rounds")
	return cmd
}

func runFeedback(ctx context.Context, o feedbackOptions) error {
	if o.to == "" {
		return usage.Errorf("--to is missing: name the table as for plan --source, such as 'mysql://USER:${VAR}@HOST/DATABASE?table=url_queue'")
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	return feedback.Run(ctx, feedback.Request{
		Bucket: b, Crawl: o.month, Round: o.round, Config: cfg, To: o.to, Lookup: os.LookupEnv, Out: o.out, Log: o.log,
	})
}
