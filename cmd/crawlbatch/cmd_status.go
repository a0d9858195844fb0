package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

type statusOptions struct {
	runOptions // the status repeats these options in the commands that it advises
	watch      bool
	output     string
	every      time.Duration
}

func newStatus(c *common) *cobra.Command {
	o := statusOptions{runOptions: runOptions{common: c}}
	cmd := usage.WithOptions(&o, runStatus, &cobra.Command{
		Use:   "status [--month YYYY-MM]",
		Short: "Show every stage and partition of a crawl",
		Long: `Status prints for each round how far each stage is and what its ended attempts cost
(calls to the store, bytes, the sum of their times). For fetch tasks it adds the progress
at the last checkpoint. It also shows the hosts for which the tasks waited when they last renewed
their leases, with the reason and the end of each wait. For each failed task it prints the
last error and the command that reruns it. Below the stages, it compares what the round was
predicted to use with what it used, in dollars of the config key prices too, and says how fast
the running stage is and when it will end: a range, while a robots.txt fails and may be tried
again. It prints the commands that stop the hosts which decide the end. For the newest finished
round, it says which host decided its length, and why. A fetch task is shown as running while an
attempt holds its partition; if no attempt reports, status says for how long. If the store has
lost objects, status names them and exits 78.

On a terminal, --watch redraws the screen that run shows. Elsewhere it prints the status again,
with -o json as one line.

The executor and cluster flags only go into the commands that it prints.`,
		Example: "  crawlbatch status --month 2026-11 --watch",
	})
	usage.NewestMonthFlag(cmd, &o.month, "crawl to show")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "print again every --every, until interrupted")
	cmd.Flags().DurationVar(&o.every, "every", 5*time.Second, "time between two updates with --watch")
	o.clusterFlags(cmd)
	usage.OutputFlag(cmd, &o.output, "table", "json")
	return cmd
}

func runStatus(ctx context.Context, o statusOptions) error {
	if err := usage.OneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	if o.every < 100*time.Millisecond {
		return usage.Errorf("--every %s: it must be 100ms or more", o.every)
	}
	if err := o.checkExecutor(); err != nil {
		return err
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil && !errors.Is(err, ledger.ErrLost) {
		return err
	}
	if cfg != nil {
		o.warnOfAgent(cfg)
	}
	reader := jobs.StatusReader{Bucket: b, Flags: o.givenFlags()}
	if cfg != nil {
		reader.Costs = costModel(cfg)
	}
	if o.watch {
		reader.Clock = stages.SystemClock{}
	}
	read := func(ctx context.Context) (*jobs.Status, error) {
		s, err := reader.Read(ctx, o.month)
		if err != nil {
			return nil, err
		}
		for _, lost := range s.Lost {
			lost.Remedy = usage.Advise(lost.Remedy, o.givenFlags())
		}
		for i := range s.Rounds {
			s.Rounds[i].Advice = usage.Advise(s.Rounds[i].Advice, o.givenFlags())
		}
		return s, nil
	}
	clock := stages.SystemClock{}
	if width, _, ok := show.Size(o.out); ok && o.watch && o.output == "table" && width > 0 {
		return show.WatchStatus(ctx, o.out, clock, o.every, read)
	}
	var meter show.Meter
	for first := true; ; first = false {
		s, err := read(ctx)
		if err != nil {
			return err
		}
		if o.output == "json" {
			err = show.StatusJSON(o.out, s, &meter, clock.Now(), o.watch)
		} else {
			if !first {
				fmt.Fprintf(o.out, "\n%s\n", clock.Now().Format(time.TimeOnly))
			}
			err = show.Status(o.out, s, clock.Now(), show.Width(o.out, show.StatusWidth))
		}
		if err == nil && !o.watch {
			err = s.Err()
		}
		if err != nil || !o.watch {
			return err
		}
		if clock.Sleep(ctx, o.every) != nil {
			return nil
		}
	}
}
