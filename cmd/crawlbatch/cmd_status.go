package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

type statusOptions struct {
	runOptions // where the commands it prints are to run tasks
	watch      bool
	output     string
	every      time.Duration
}

func newStatus(c *common) *cobra.Command {
	o := statusOptions{runOptions: runOptions{common: c}}
	cmd := &cobra.Command{
		Use:   "status --month YYYY-MM",
		Short: "Every stage and partition of a crawl",
		Long: `Status says how far each stage of each round is, what its attempts that have ended
cost (calls to the store, bytes, the sum of their times), how far fetch tasks have
come at their last checkpoint, which hosts they waited for as they renewed their lease
last, why and until when, and for each failed task its last error and the command that
reruns it. A running fetch task is one that an attempt holds: whether that attempt
lives still, the store cannot tell.

The executor and the cluster are for the commands that it prints: it asks none.`,
		Example: "  crawlbatch status --month 2026-11 --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runStatus(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.month, "month", "", "crawl, as 2026-11")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "print again every --every, until interrupted")
	cmd.Flags().DurationVar(&o.every, "every", 5*time.Second, "with --watch")
	o.whereFlags(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table or json")
	return cmd
}

func runStatus(ctx context.Context, o statusOptions) error {
	if o.output != "table" && o.output != "json" {
		return usagef("--output %q: it may be table or json", o.output)
	}
	if o.every < 100*time.Millisecond {
		return usagef("--every %s: it may be 100ms or more", o.every)
	}
	if err := o.checkExecutor(); err != nil {
		return err
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	o.warnOfAgent(cfg)
	reader := jobs.StatusReader{Bucket: b, Flags: o.again()}
	if width, _, ok := show.Size(o.out); ok && o.watch && o.output == "table" && width > 0 {
		return o.redraw(ctx, &reader)
	}
	clock := stages.SystemClock{}
	for first := true; ; first = false {
		s, err := reader.Read(ctx, o.month)
		if err != nil {
			return err
		}
		if o.output == "json" {
			enc := json.NewEncoder(o.out)
			enc.SetIndent("", " ")
			err = enc.Encode(s)
		} else {
			if !first {
				fmt.Fprintf(o.out, "\n%s\n", clock.Now().Format(time.TimeOnly))
			}
			err = show.Status(o.out, s, clock.Now(), show.Width(o.out, statusWidth))
		}
		if err != nil || !o.watch {
			return err
		}
		if clock.Sleep(ctx, o.every) != nil {
			return nil
		}
	}
}

// statusWidth is how wide a status is where no terminal says more or less.
const statusWidth = 80

// redraw shows the status in place on a terminal, until ctx ends or it cannot be read.
func (o *statusOptions) redraw(ctx context.Context, reader *jobs.StatusReader) error {
	clock := stages.SystemClock{}
	block := show.Block{W: o.out, Size: func() (int, int) {
		width, height, ok := show.Size(o.out)
		if !ok {
			return statusWidth, 24 // it was hung up
		}
		return width, height
	}}
	for {
		s, err := reader.Read(ctx, o.month)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// The terminal may change its size meanwhile: what is shown follows at once.
		for until := clock.Now().Add(o.every); clock.Now().Before(until); {
			var text strings.Builder
			width, _ := block.Size()
			if err := show.Status(&text, s, clock.Now(), width-1); err != nil {
				return err
			}
			if err := block.Draw(nil, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")); err != nil {
				return err
			}
			if clock.Sleep(ctx, min(o.every, time.Second)) != nil {
				return nil
			}
		}
	}
}
