package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	report, err := verify.Run(ctx, verify.Options{
		Bucket: b, Crawl: o.month, Round: o.round, Config: cfg, Scratch: dir, Log: o.log,
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
