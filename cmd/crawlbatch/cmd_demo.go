package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/show"
)

type demoOptions struct {
	*common
	rounds int
}

func newDemo(c *common) *cobra.Command {
	o := demoOptions{common: c}
	cmd := usage.WithOptions(&o, runDemo, &cobra.Command{
		Use:   "demo",
		Short: "Crawl a synthetic web, offline, in under a minute",
		Long: `Demo serves the built-in synthetic web on loopback and crawls two rounds of it into
--store as the month 2000-01, with the same code as a real crawl. It writes a report of the
crawl beside the store. Run it again to continue an interrupted demo.`,
		Example: "  crawlbatch demo",
	})
	cmd.Flags().IntVar(&o.rounds, "rounds", 2, "rounds to crawl")
	return cmd
}

func runDemo(ctx context.Context, o demoOptions) error {
	if o.rounds < 1 {
		return usage.Errorf("--rounds %d: it must be 1 or more", o.rounds)
	}
	web, err := demo.Serve(ctx)
	if err != nil {
		return err
	}
	defer web.Close()
	b, err := o.openStore(ctx, web.Config)
	if err != nil {
		return storeError(err)
	}
	begun, err := demo.Begun(ctx, b)
	if err != nil {
		return err
	}
	if begun {
		fmt.Fprintf(o.err, "continuing the demo in %s; to start afresh, remove that store\n", b)
	} else if err := web.Plan(ctx, b, version); err != nil {
		return storeError(err)
	}
	r := runOptions{common: o.common, month: demo.Crawl, rounds: o.rounds, fetchTasks: defaultFetchTasks}
	d, finish, err := r.makeDriver(ctx, &openedCrawl{b: b, cfg: web.Config}, false)
	if err != nil {
		return storeError(err)
	}
	defer finish()
	began := time.Now()
	err = d.Run(ctx, demo.Crawl, o.rounds)
	finish()
	if exitCode(err) == exitInterrupted {
		return fmt.Errorf("%w: what was done is kept; go on with `crawlbatch demo%s`", err, o.givenFlags())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.err, "crawled in %s\n", time.Since(began).Round(100*time.Millisecond))
	fmt.Fprintf(show.Folding(o.out), "\ntables: %[1]s/tables, raw responses: %[1]s/warc\n", strings.TrimSuffix(o.store, "/"))
	fmt.Fprintf(o.out, `query them with DuckDB:
  crawlbatch query --month %[2]s%[1]s "SELECT url, title, inlinks, rank FROM pages ORDER BY inlinks DESC LIMIT 10"
  crawlbatch query --list
`, storeFlag(o.store), demo.Crawl)
	return o.report(ctx)
}

// report writes the report of the demo beside the store. For a store that is no directory, it prints
// the command that writes the report.
func (o *demoOptions) report(ctx context.Context) error {
	name := "report-" + demo.Crawl + ".html"
	if strings.Contains(o.store, "://") {
		_, err := fmt.Fprintf(o.out, "write a report: crawlbatch report --month %s%s\n", demo.Crawl, o.givenFlags())
		return err
	}
	return runReport(ctx, reportOptions{common: o.common, month: demo.Crawl, output: "html", to: filepath.Join(filepath.Dir(filepath.Clean(o.store)), name)})
}
