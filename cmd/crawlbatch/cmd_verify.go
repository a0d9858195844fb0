package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/scratch"
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
		Short: "Audit the stored data of a crawl",
		Long: `Verify checks what crawlbatch promises, from the stored data alone: every file is whole,
every planned URL has one outcome, no request violated robots.txt or the delay, every
capture is in its WARC file, duplicates and links are complete, and the same inputs give
the same bytes. It writes nothing to the store.

Each check reports how much it read. With --sample 0.01, verify reads one in a hundred
partitions, records and files.`,
		Example: "  crawlbatch verify --month 2026-11 --sample 0.01",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("round") {
				o.round = -1
			} else if o.round < 0 {
				return usage.Errorf("--round %d: it must be 0 or more", o.round)
			}
			return runVerify(cmd.Context(), o)
		},
	}
	monthFlag(cmd, &o.month, "crawl to audit")
	cmd.Flags().IntVar(&o.round, "round", 0, "the only round to audit; not given: all")
	cmd.Flags().Float64Var(&o.sample, "sample", 1, "share of partitions, records and files to look at, over 0 and up to 1")
	outputFlag(cmd, &o.output, "table", "json")
	cmd.Flags().BoolVar(&o.oneClock, "one-clock", false, "all tasks ran on one machine: compare times across restarts too")
	cmd.Flags().IntVar(&o.parallel, "parallel", 0, "checks at a time; 0: one per CPU")
	return cmd
}

func runVerify(ctx context.Context, o verifyOptions) error {
	if err := usage.OneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	switch {
	case !(o.sample > 0 && o.sample <= 1):
		return usage.Errorf("--sample %v: it must be over 0 and up to 1", o.sample)
	case o.parallel < 0:
		return usage.Errorf("--parallel %d: it must be 0 or more", o.parallel)
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if errors.Is(err, manifest.ErrCorrupt) {
		// The audit reports a damaged crawl.json, and checks the rest without its config.
		b, _, err = o.openNew(ctx)
		cfg = nil
	}
	if err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	report, err := verify.Run(ctx, verify.Options{
		Bucket: b, Crawl: o.month, Round: o.round, Config: cfg, Scratch: dir,
		Parallel: o.parallel, Sample: o.sample, OneClock: o.oneClock, Version: version, Archive: o.openArchive,
	})
	if err != nil {
		return err
	}
	for i := range report.Violations {
		// The commands in the findings need the flags for this store.
		v := &report.Violations[i]
		v.Problem = strings.ReplaceAll(v.Problem, "--month "+o.month, "--month "+o.month+o.given())
	}
	if o.output == "json" {
		err = writeJSON(o.out, report)
	} else {
		err = show.Report(show.Folding(o.out), report)
	}
	if err != nil {
		return err
	}
	if n := report.Found(); n > 0 {
		return fmt.Errorf("crawl %s is not as promised: %s: %w", o.month, show.Count(n, "violation"), errViolation)
	}
	return nil
}
