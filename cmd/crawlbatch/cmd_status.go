package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/jobs"
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
come at their last checkpoint, and for each failed task its last error and the
command that reruns it. A running fetch task is one that an attempt holds: whether
that attempt lives still, the store cannot tell.

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
	b, _, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	reader := jobs.StatusReader{Bucket: b, Flags: o.again()}
	for {
		s, err := reader.Read(ctx, o.month)
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
		fmt.Fprintf(w, "\nround %d: %s, %s in %s, plan %s\n", r.Round, r.State, count(r.URLs, "URL"), count(int64(r.Partitions), "partition"), r.Plan)
		t := table.NewWriter()
		t.SetStyle(table.StyleLight)
		var right []table.ColumnConfig
		for _, name := range []string{"running", "written", "read", "task time"} {
			right = append(right, table.ColumnConfig{Name: name, Align: text.AlignRight})
		}
		t.SetColumnConfigs(right)
		t.AppendHeader(table.Row{"stage", "tasks", "done", "running", "failed", "PUT", "GET", "LIST", "written", "read", "task time"})
		for _, st := range r.Stages {
			running := ""
			if st.Stage == stages.Fetch {
				running = fmt.Sprint(st.Running)
			}
			u := st.Usage
			t.AppendRow(table.Row{
				st.Stage, st.Tasks, st.Done, running, len(st.Failed), u.Puts, u.Gets, u.Lists,
				sizeText(u.BytesWritten), sizeText(u.BytesRead), u.Wall().Round(100 * time.Millisecond),
			})
			failed = append(failed, st.Failed...)
		}
		fmt.Fprintln(w, t.Render())
		for _, st := range r.Stages {
			printFetching(w, st, r.URLs)
		}
	}
	for _, f := range failed {
		fmt.Fprintf(w, "\n%s failed %s, last (%s): %s\n  rerun: %s\n", f.Task, count(int64(f.Attempts), "time"), f.Class, f.Error, f.Rerun)
	}
	return nil
}

// shownTasks is how many fetch tasks without result are shown, one line each.
const shownTasks = 20

// printFetching tells of the fetch tasks that are under way what their checkpoints say.
func printFetching(w io.Writer, st jobs.StageStatus, urls int64) {
	if len(st.Fetching) == 0 {
		return
	}
	fmt.Fprintf(w, "%s: %s of %s URLs recorded\n", st.Stage, thousands(st.Recorded), thousands(urls))
	for i, f := range st.Fetching {
		if i == shownTasks {
			fmt.Fprintf(w, "  and %d more: -o json lists all\n", len(st.Fetching)-i)
			return
		}
		state := "held"
		switch {
		case f.Complete:
			state = "complete, result missing"
		case f.Released:
			state = "released"
		}
		elapsed := (time.Duration(f.ElapsedMS) * time.Millisecond).Round(time.Second)
		fmt.Fprintf(w, "  partition %d: %s of %s, epoch %d, %s, %s of its window\n", f.Partition, thousands(f.Recorded), thousands(f.Planned), f.Epoch, state, elapsed)
	}
}

// thousands writes n with commas: 12,345.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
