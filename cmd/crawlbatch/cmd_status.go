package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

type statusOptions struct {
	runOptions // for the commands that it prints
	watch      bool
	output     string
	every      time.Duration
}

func newStatus(c *common) *cobra.Command {
	o := statusOptions{runOptions: runOptions{common: c}}
	cmd := &cobra.Command{
		Use:   "status --month YYYY-MM",
		Short: "Show every stage and partition of a crawl",
		Long: `Status prints for each round how far each stage is and what its ended attempts cost
(calls to the store, bytes, the sum of their times). For fetch tasks it adds the progress
at the last checkpoint, and the hosts they waited for when they last renewed their lease,
why and until when. For each failed task it prints the last error and the command that
reruns it. A running fetch task is one whose partition an attempt holds: the store cannot
tell whether that attempt is still alive.

The executor and cluster flags only go into the commands that it prints.`,
		Example: "  crawlbatch status --month 2026-11 --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runStatus(cmd.Context(), o)
		},
	}
	monthFlag(cmd, &o.month, "crawl to show")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "print again every --every, until interrupted")
	cmd.Flags().DurationVar(&o.every, "every", 5*time.Second, "time between two looks with --watch")
	o.whereFlags(cmd)
	outputFlag(cmd, &o.output, "table", "json")
	return cmd
}

func runStatus(ctx context.Context, o statusOptions) error {
	if err := oneOf("output", o.output, "table", "json"); err != nil {
		return err
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
			err = writeJSON(o.out, s)
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

// statusWidth is the width of a status outside of terminals.
const statusWidth = 80

// redraw shows the status in place on a terminal, until ctx ends or the status cannot be read.
func (o *statusOptions) redraw(ctx context.Context, reader *jobs.StatusReader) error {
	clock := stages.SystemClock{}
	block := show.Block{W: o.out, Size: func() (int, int) {
		width, height, ok := show.Size(o.out)
		if !ok {
			return statusWidth, 24 // the terminal is gone
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
		// Draw every second: the terminal may change its size.
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
