package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// demoCrawl is a month that no real crawl uses.
const demoCrawl = "2000-01"

const demoAgent = "crawlbatch-demo/1.0"

type demoOptions struct {
	*common
	rounds int
}

func newDemo(c *common) *cobra.Command {
	o := demoOptions{common: c}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Crawl a synthetic web, offline, in under a minute",
		Long: `Demo serves the built-in synthetic web on loopback and crawls two rounds of it into
--store as the month 2000-01, with the same code as a real crawl. Run it again to continue an
interrupted demo.`,
		Example: "  crawlbatch demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.rounds, "rounds", 2, "rounds to crawl")
	return cmd
}

// demoWeb is the web of the demo: it has no faults that take long.
func demoWeb() simweb.Config {
	w := simweb.Default()
	w.Hosts, w.PagesPerHost = 40, 60
	w.Faults = faults.Quick
	w.CrawlDelay = 40 * time.Millisecond
	return w
}

// demoConfig crawls the web at addr, faster than a real host should be crawled.
func demoConfig(addr string) (*config.Config, error) {
	c := config.Default()
	c.UserAgent = demoAgent
	c.Politeness.Delay = config.Duration(20 * time.Millisecond)
	c.Fetch.Pauses = config.Pauses{
		RateLimited: config.Duration(200 * time.Millisecond), Timeout: config.Duration(200 * time.Millisecond),
		ServerError: config.Duration(100 * time.Millisecond), DNS: config.Duration(100 * time.Millisecond),
		Breaker: config.Duration(200 * time.Millisecond),
	}
	c.Fetch.Retries.Robots = 0 // some hosts never serve theirs, and the demo should not wait for them
	c.Plan.PartitionURLs = 500
	c.Fetch.ConnectTo = []string{"::" + addr}
	return c, c.Validate()
}

// demoLists are the hosts whose sitemap and feed are seeds of the demo.
const demoLists = 3

// addLists appends the sitemaps and feeds of a few hosts to a file of seeds: the demo then
// finds links of every kind.
func addLists(web *simweb.Web, seeds string) error {
	f, err := os.OpenFile(seeds, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for host := range demoLists {
		fmt.Fprintf(f, "http://%s/sitemap.xml\nhttp://%[1]s/feed.xml\n", web.Host(host)) // Close reports errors
	}
	return f.Close()
}

func runDemo(ctx context.Context, o demoOptions) error {
	if o.rounds < 1 {
		return usagef("--rounds %d: it must be 1 or more", o.rounds)
	}
	web, err := simweb.New(demoWeb())
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- simweb.NewServer(web, nil).Serve(serving, ln) }()
	defer func() {
		stop()
		<-served
	}()
	cfg, err := demoConfig(ln.Addr().String())
	if err != nil {
		return err
	}
	b, err := o.openStore(ctx, cfg)
	if err != nil {
		return storeError(err)
	}
	if err := o.planDemo(ctx, b, cfg, web); err != nil {
		return err
	}
	r := runOptions{common: o.common, month: demoCrawl, rounds: o.rounds, fetchTasks: 4}
	d, finish, err := r.driver(ctx, &opened{b: b, cfg: cfg}, false)
	if err != nil {
		return storeError(err)
	}
	defer finish()
	began := time.Now()
	err = d.Run(ctx, demoCrawl, o.rounds)
	finish()
	if exitCode(err) == exitInterrupted {
		return fmt.Errorf("%w: what was done is kept; go on with `crawlbatch demo%s`", err, o.given())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.err, "crawled in %s\n", time.Since(began).Round(100*time.Millisecond))
	fmt.Fprintf(show.Folding(o.out), "\ntables: %[1]s/tables, raw responses: %[1]s/warc\n", strings.TrimSuffix(o.store, "/"))
	fmt.Fprintf(o.out, `query them with DuckDB:
  crawlbatch views --dialect duckdb --month %[2]s%[1]s > views.sql
  duckdb -init views.sql -c "SELECT url, title, inlinks, rank FROM pages ORDER BY inlinks DESC LIMIT 10"
`, storeFlag(o.store), demoCrawl)
	return nil
}

// planDemo plans the demo's crawl, unless the store has it already.
func (o *demoOptions) planDemo(ctx context.Context, b store.Bucket, cfg *config.Config, web *simweb.Web) error {
	_, frozen, err := roundstate.OpenCrawl(ctx, b, demoCrawl, os.LookupEnv)
	switch {
	case err == nil && frozen.UserAgent != demoAgent:
		return usagef("%s holds a crawl %s that is not the demo's: give another --store", b, demoCrawl)
	case err == nil:
		fmt.Fprintf(o.err, "going on with the demo in %s; remove it for a fresh one\n", b)
		return nil
	case !errors.Is(err, roundstate.ErrNoCrawl):
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	seeds := filepath.Join(dir, "urls.txt")
	if err := web.WriteSeeds(ctx, seeds, true); err != nil {
		return err
	}
	if err := addLists(web, seeds); err != nil {
		return err
	}
	s, err := source.Files(seeds, nil)
	if err != nil {
		return err
	}
	_, _, err = jobs.Plan(ctx, jobs.PlanRequest{
		Bucket: b, Crawl: demoCrawl, Sources: []source.Source{s}, Config: cfg, Clock: stages.SystemClock{}, Version: version, Scratch: dir, Lookup: os.LookupEnv,
	})
	return storeError(err)
}
