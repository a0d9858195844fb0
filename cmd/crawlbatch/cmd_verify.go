package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/verify"
)

type verifyOptions struct {
	*common
	month    string
	round    int
	sample   float64
	output   string
	oneClock bool
	parallel int
}

func newVerify(c *common) *cobra.Command {
	o := verifyOptions{common: c}
	cmd := &cobra.Command{
		Use:   "verify --month YYYY-MM",
		Short: "Audit what is stored of a crawl against what is promised",
		Long: `Verify reads what is stored of a crawl, and nothing else, and checks what crawlbatch
promises: every file is whole, every planned URL has one outcome, no request broke
robots.txt or came too early, every capture is in its WARC file, duplicates and links
are complete, and the same inputs give the same bytes. It writes nothing to the store.

Each check says how much it looked at. With --sample 0.01 it looks at one in a hundred
partitions, records and files.`,
		Example: "  crawlbatch verify --month 2026-11 --sample 0.01",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("round") {
				o.round = -1
			} else if o.round < 0 {
				return usagef("--round %d: it may be 0 or more", o.round)
			}
			return runVerify(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.month, "month", "", "crawl, as 2026-11")
	cmd.Flags().IntVar(&o.round, "round", 0, "the only round to look at; all if it is not given")
	cmd.Flags().Float64Var(&o.sample, "sample", 1, "share of partitions, records and files to look at, over 0 and up to 1")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table or json")
	cmd.Flags().BoolVar(&o.oneClock, "one-clock", false, "all tasks ran on one machine: compare times across restarts too")
	cmd.Flags().IntVar(&o.parallel, "parallel", 0, "checks at a time; 0: one a CPU")
	return cmd
}

func runVerify(ctx context.Context, o verifyOptions) error {
	switch {
	case o.output != "table" && o.output != "json":
		return usagef("--output %q: it may be table or json", o.output)
	case !(o.sample > 0 && o.sample <= 1):
		return usagef("--sample %v: it may be over 0 and up to 1", o.sample)
	case o.parallel < 0:
		return usagef("--parallel %d: it may be 0 or more", o.parallel)
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if errors.Is(err, manifest.ErrCorrupt) {
		// That crawl.json cannot be read is a finding; the rest is looked at without it.
		later, lerr := o.loadConfig()
		if lerr != nil {
			return lerr
		}
		b, err = o.openStore(ctx, later)
		cfg = nil
	}
	if err != nil {
		return err
	}
	scratch, remove, err := newScratch()
	if err != nil {
		return err
	}
	defer remove()
	report, err := verify.Run(ctx, verify.Options{
		Bucket: b, Crawl: o.month, Round: o.round, Config: cfg, Scratch: scratch, Log: o.log,
		Parallel: o.parallel, Sample: o.sample, OneClock: o.oneClock, Version: version, Archive: o.openArchive,
	})
	if err != nil {
		return err
	}
	for i := range report.Violations {
		// The commands that it advises are for this store.
		v := &report.Violations[i]
		v.Problem = strings.ReplaceAll(v.Problem, "--month "+o.month, "--month "+o.month+o.again())
	}
	if o.output == "json" {
		enc := json.NewEncoder(o.out)
		enc.SetIndent("", " ")
		err = enc.Encode(report)
	} else {
		err = printReport(show.Folding(o.out), report)
	}
	if err != nil {
		return err
	}
	if n := report.Found(); n > 0 {
		return fmt.Errorf("crawl %s is not as promised: %s: %w", o.month, count(n, "violation"), errViolation)
	}
	return nil
}

func printReport(w io.Writer, r *verify.Report) error {
	fmt.Fprintf(w, "crawl %s in %s\n", r.Crawl, r.Store)
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"invariant", "check", "looked at", "of", "violations"})
	var idle []string
	var list strings.Builder // in the place of a table that is too wide
	for _, c := range r.Checked {
		invariant := fmt.Sprint(c.Invariant)
		if c.Invariant == 0 {
			invariant = "store"
		}
		t.AppendRow(table.Row{invariant, c.Check, c.Looked, c.Of, c.Found})
		fmt.Fprintf(&list, "%s %s: %d %s, %s\n", invariant, c.Check, c.Looked, c.Of, count(c.Found, "violation"))
		if c.Looked == 0 {
			idle = append(idle, c.Check)
		}
	}
	rows := t.Render()
	if first, _, _ := strings.Cut(rows, "\n"); utf8.RuneCountInString(first) > show.Width(w, math.MaxInt) {
		rows = strings.TrimSuffix(list.String(), "\n")
	}
	fmt.Fprintln(w, rows)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "\n%s in %s: %s\n", v.Check, printable(where(&v)), printable(v.Problem))
		if v.Row != "" {
			fmt.Fprintf(w, "  row: %s\n", printable(v.Row))
		}
		if v.Where != "" && path.Ext(v.Object) == ".parquet" {
			// SQL, not a shell's command line: a URL may hold what a shell would run.
			fmt.Fprintf(w, "  in DuckDB: SELECT * FROM '%s/%s' WHERE %s;\n", strings.TrimSuffix(r.Store, "/"), printable(v.Object), printable(v.Where))
		}
	}
	if n := r.Found() - int64(len(r.Violations)); n > 0 {
		fmt.Fprintf(w, "\n%d more of the same kinds are not listed\n", n)
	}
	if len(idle) > 0 {
		fmt.Fprintf(w, "\nlooked at nothing, since there is none or none is in the sample: %s\n", strings.Join(idle, ", "))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "\n%s\n", printable(n))
	}
	for _, n := range r.Unsealed {
		fmt.Fprintf(w, "\nround %d is not finished: it was looked at as far as it goes\n", n)
	}
	rounds := "no round"
	if n := len(r.Rounds); n > 0 {
		rounds = count(int64(n), "round")
	}
	if n := r.Found(); n > 0 {
		_, err := fmt.Fprintf(w, "\n%s in %s: not as promised\n", count(n, "violation"), rounds)
		return err
	}
	share := ""
	if r.Sample < 1 {
		share = fmt.Sprintf(" in a sample of %g", r.Sample)
	}
	_, err := fmt.Fprintf(w, "\nno violation in %s%s: as promised\n", rounds, share)
	return err
}

// printable is a text that was stored, on one line and without control characters,
// which a terminal would obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, oneLine(errors.New(s)))
}

// where names the object of a violation, and its round.
func where(v *verify.Violation) string {
	if v.Round < 0 {
		return v.Object
	}
	return fmt.Sprintf("round %d, %s", v.Round, v.Object)
}
