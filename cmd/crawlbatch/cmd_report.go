package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/report"
	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/verify"
)

type reportOptions struct {
	*common
	month, output, to, verdict string
}

func newReport(c *common) *cobra.Command {
	o := reportOptions{common: c}
	cmd := usage.WithOptions(&o, runReport, &cobra.Command{
		Use:   "report [--month YYYY-MM]",
		Short: "Write a report of a crawl, as one HTML file",
		Long: `Report reads the tables of the finished rounds and writes one HTML file that a browser opens
from disk, without a network: what needs attention, progress against the prediction,
throughput, outcomes, latency and waits, politeness, hosts and domains, networks that block,
content, duplicates, links, the cost of each stage, and the change since last month. Each
number shows the SQL that gives it, for the views of ` + "`crawlbatch views`" + `. -o json writes the
same numbers as JSON to stdout.

The store keeps no output of verify. --verdict takes the output of
` + "`crawlbatch verify -o json`" + `, from a file or, with -, from stdin.

Each dataset is read once. The memory does not depend on the number of rows.`,
		Example: `  crawlbatch report --month 2026-11
  crawlbatch verify --month 2026-11 -o json | crawlbatch report --month 2026-11 --verdict -
  crawlbatch report --month 2026-11 -o json > report.json`,
	})
	usage.NewestSealedMonthFlag(cmd, &o.month, "crawl to report")
	usage.OutputFlag(cmd, &o.output, "html", "json")
	cmd.Flags().StringVar(&o.to, "out", "", "file to write, or - for stdout; unset: report-MONTH.html, or stdout for JSON")
	cmd.Flags().StringVar(&o.verdict, "verdict", "", "file with the output of verify -o json, or - for stdin")
	return cmd
}

// largestVerdict bounds the file of --verdict, in bytes. verify lists a bounded number of violations.
const largestVerdict = 64 << 20

func runReport(ctx context.Context, o reportOptions) error {
	if err := usage.OneOf("output", o.output, "html", "json"); err != nil {
		return err
	}
	if o.to == "" {
		o.to = "-"
		if o.output == "html" {
			o.to = "report-" + o.month + ".html"
		}
	}
	if o.to != "-" {
		if err := usage.CheckFile(o.to); err != nil {
			return err
		}
	}
	verdict, err := o.readVerdict()
	if err != nil {
		return err
	}
	b, _, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	r, err := report.Make(ctx, report.Options{
		Bucket: b, Crawl: o.month, Store: o.store, Flags: o.givenFlags(), Version: version, Verdict: verdict,
	})
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if o.output == "json" {
		err = usage.WriteJSON(&page, r)
	} else {
		err = report.HTML(&page, r)
	}
	if err != nil {
		return err
	}
	if o.to == "-" {
		_, err := page.WriteTo(o.out)
		return err
	}
	if err := usage.WriteFile(o.to, page.Bytes()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(show.Folding(o.out), "report: %s (%s bytes)\n", o.to, show.Thousands(int64(page.Len())))
	return err
}

// readVerdict reads the file of --verdict, if there is one.
func (o *reportOptions) readVerdict() (*verify.Report, error) {
	if o.verdict == "" {
		return nil, nil
	}
	body, err := usage.ReadFile(o.verdict, o.in, largestVerdict)
	if err != nil {
		return nil, err
	}
	var v verify.Report
	if err := json.Unmarshal(body, &v); err != nil || v.Crawl == "" {
		return nil, usage.Errorf("--verdict %q is not the output of `crawlbatch verify -o json`", o.verdict)
	}
	if v.Crawl != o.month {
		return nil, usage.Errorf("--verdict %q is about crawl %s, and the report about %s", o.verdict, v.Crawl, o.month)
	}
	return &v, nil
}
