package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

type simwebOptions struct {
	listen string
	seeds  string
	force  bool // true: replace an existing file of seeds
	log    string
	web    simweb.Config
	faults []string
}

// faultClasses are the values of --fault-classes.
var faultClasses = []string{"quick", "retried", "slow"}

// Simweb returns the command simweb, which serves a synthetic web.
func Simweb() *cobra.Command {
	o := simwebOptions{web: simweb.Default()}
	cmd := &cobra.Command{
		Use:   "simweb",
		Short: "Serve a deterministic synthetic web to crawl",
		Long: `Simweb serves a synthetic web that is a pure function of its seed: hosts with robots.txt,
pages, links, exact and near duplicates, redirects, errors, sitemaps and malformed
responses. A crawler reaches it by connecting to the address that simweb prints; the host
name of a request selects the site.`,
		Example: `  crawlbatch simweb --listen 127.0.0.1:8080 --seeds urls.txt
  crawlbatch plan --month 2026-11 --source urls.txt --connect-to ::127.0.0.1:8080`,
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to serve on; port 0 takes a free port")
	f.StringVar(&o.seeds, "seeds", "", "file or pipe to write the seed URLs to, once the web is served")
	f.BoolVar(&o.force, "force", false, "replace a --seeds file that holds something else")
	f.StringVar(&o.log, "log", "", "file to write each request to, one JSON object per line")
	f.Uint64Var(&o.web.Seed, "seed", o.web.Seed, "seed of the web")
	f.IntVar(&o.web.Hosts, "hosts", o.web.Hosts, "number of hosts")
	f.IntVar(&o.web.PagesPerHost, "pages", o.web.PagesPerHost, "mean number of pages of a host")
	f.Float64Var(&o.web.FaultShare, "faults", o.web.FaultShare, "share of pages that misbehave, 0 to 0.9")
	f.StringSliceVar(&o.faults, "fault-classes", []string{"quick"}, "faults to serve: quick, retried (after a pause), slow (until a time limit of the crawler)")
	f.DurationVar(&o.web.CrawlDelay, "crawl-delay", o.web.CrawlDelay, "Crawl-delay of some robots.txt")
	f.DurationVar(&o.web.RetryAfter, "retry-after", o.web.RetryAfter, "Retry-After of 429 and 503 responses; 0: none")
	usage.CompleteFlag(cmd, "fault-classes", faultClasses...)
	return cmd
}

func (o *simwebOptions) run(ctx context.Context, out io.Writer) error {
	o.web.Faults = 0
	for _, class := range o.faults {
		if err := usage.OneOf("fault-classes", class, faultClasses...); err != nil {
			return err
		}
		o.web.Faults |= map[string]faults.Class{"quick": faults.Quick, "retried": faults.Retried, "slow": faults.Slow}[class]
	}
	web, err := simweb.New(o.web)
	if err != nil {
		return usage.Error(err)
	}
	var log *simweb.Log
	if o.log != "" {
		f, err := os.Create(o.log)
		if err != nil {
			return usage.Error(err)
		}
		defer f.Close()
		log = simweb.NewLog(f)
	}
	ln, err := net.Listen("tcp", o.listen)
	if err != nil {
		return usage.Errorf("--listen %q: %v", o.listen, err)
	}
	defer ln.Close()
	if o.seeds != "" {
		if err := web.WriteSeeds(ctx, o.seeds, o.force); err != nil {
			return usage.Error(err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	fmt.Fprintf(out, "serving %d hosts at %s; seeds such as %s\n", web.Hosts(), ln.Addr(), web.URL(0, 0))
	fmt.Fprintf(out, "crawl them with --connect-to ::%s\n", ln.Addr())
	return simweb.NewServer(web, log).Serve(ctx, ln)
}
