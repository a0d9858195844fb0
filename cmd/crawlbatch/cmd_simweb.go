package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

type simwebOptions struct {
	*common
	listen string
	seeds  string
	force  bool // replace the file of seeds
	log    string
	web    simweb.Config
	faults []string
}

func newSimweb(c *common) *cobra.Command {
	o := simwebOptions{common: c, web: simweb.Default()}
	cmd := &cobra.Command{
		Use:   "simweb",
		Short: "Serve a deterministic synthetic web to crawl",
		Long: `Simweb serves a synthetic web that is a pure function of its seed: hosts with robots.txt,
pages, links, exact and near duplicates, redirects, errors, sitemaps and malformed
answers. It is reached by any crawler that sends its connections to the address it
prints; the host name decides which site answers.`,
		Example: `  crawlbatch simweb --listen 127.0.0.1:8080 --seeds urls.txt
  crawlbatch plan --month 2026-11 --source urls.txt --connect-to ::127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSimweb(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address; port 0 takes a free one")
	f.StringVar(&o.seeds, "seeds", "", "write the seed URLs to this file or pipe, once requests are answered")
	f.BoolVar(&o.force, "force", false, "replace a --seeds file that holds something else")
	f.StringVar(&o.log, "log", "", "write each request to this file, one JSON object a line")
	f.Uint64Var(&o.web.Seed, "seed", o.web.Seed, "of the web")
	f.IntVar(&o.web.Hosts, "hosts", o.web.Hosts, "number of hosts")
	f.IntVar(&o.web.PagesPerHost, "pages", o.web.PagesPerHost, "mean number of pages of a host")
	f.Float64Var(&o.web.FaultShare, "faults", o.web.FaultShare, "share of pages that misbehave, 0 to 0.9")
	f.StringSliceVar(&o.faults, "fault-classes", []string{"quick"}, "quick, retried (asked again after a pause), slow (take a crawler's time limits)")
	f.DurationVar(&o.web.CrawlDelay, "crawl-delay", o.web.CrawlDelay, "that some robots.txt ask for")
	f.DurationVar(&o.web.RetryAfter, "retry-after", o.web.RetryAfter, "that 429 and 503 answers name; 0: none")
	return cmd
}

func runSimweb(ctx context.Context, o simwebOptions) error {
	o.web.Faults = 0
	for _, class := range o.faults {
		c, ok := map[string]faults.Class{"quick": faults.Quick, "retried": faults.Retried, "slow": faults.Slow}[class]
		if !ok {
			return usagef("--fault-classes %q: it may be quick, retried, slow", class)
		}
		o.web.Faults |= c
	}
	web, err := simweb.New(o.web)
	if err != nil {
		return usageError{err}
	}
	var log *simweb.Log
	if o.log != "" {
		f, err := os.Create(o.log)
		if err != nil {
			return usageError{err}
		}
		defer f.Close()
		log = simweb.NewLog(0, f)
	}
	ln, err := net.Listen("tcp", o.listen)
	if err != nil {
		return usagef("--listen %q: %v", o.listen, err)
	}
	defer ln.Close()
	if o.seeds != "" {
		if err := web.WriteSeeds(ctx, o.seeds, o.force); err != nil {
			return usageError{err}
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	fmt.Fprintf(o.out, "serving %d hosts at %s; seeds such as %s\n", web.Hosts(), ln.Addr(), web.URL(0, 0))
	fmt.Fprintf(o.out, "crawl them with --connect-to ::%s:%s\n", bracket(host), port)
	return simweb.NewServer(web, log).Serve(ctx, ln)
}

func bracket(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return "[" + host + "]"
	}
	return host
}
