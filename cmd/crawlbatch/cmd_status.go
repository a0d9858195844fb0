package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

type statusOptions struct {
	*common
	month  string
	watch  bool
	output string
	every  time.Duration
}

func newStatus(c *common) *cobra.Command {
	o := statusOptions{common: c}
	cmd := &cobra.Command{
		Use:     "status --month YYYY-MM",
		Short:   "Every stage and partition of a crawl",
		Long:    `Status says how far each stage of each round is, and for each failed task its last error and the command that reruns it.`,
		Example: "  crawlbatch status --month 2026-11 --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runStatus(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.month, "month", "", "crawl, as 2026-11")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "print again every --every, until interrupted")
	cmd.Flags().DurationVar(&o.every, "every", 5*time.Second, "with --watch")
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
	b, _, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	for {
		s, err := jobs.ReadStatus(ctx, b, o.month)
		if err != nil {
			return err
		}
		if o.output == "json" {
			enc := json.NewEncoder(o.out)
			enc.SetIndent("", " ")
			err = enc.Encode(s)
		} else {
			err = printStatus(o.out, s)
		}
		if err != nil || !o.watch {
			return err
		}
		if (stages.SystemClock{}).Sleep(ctx, o.every) != nil {
			return nil
		}
	}
}

func printStatus(w io.Writer, s *jobs.Status) error {
	fmt.Fprintf(w, "crawl %s in %s\n", s.Crawl, s.Store)
	var failed []jobs.TaskStatus
	for _, r := range s.Rounds {
		fmt.Fprintf(w, "\nround %d: %s, %d URLs in %d partitions, plan %s\n", r.Round, r.State, r.URLs, r.Partitions, r.Plan)
		t := table.NewWriter()
		t.SetStyle(table.StyleLight)
		t.AppendHeader(table.Row{"stage", "tasks", "done", "failed"})
		for _, st := range r.Stages {
			t.AppendRow(table.Row{st.Stage, st.Tasks, st.Done, len(st.Failed)})
			failed = append(failed, st.Failed...)
		}
		fmt.Fprintln(w, t.Render())
	}
	for _, f := range failed {
		fmt.Fprintf(w, "\n%s failed %d times, last (%s): %s\n  rerun: %s\n", f.Task, f.Attempts, f.Class, f.Error, f.Rerun)
	}
	return nil
}
