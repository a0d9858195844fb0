package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/owner"
	"crawlbatch.io/crawlbatch/jobs/scratch"
)

type hostOptions struct {
	*common
	month, output string
	domain        bool
	last          int
}

func newHost(c *common) *cobra.Command {
	o := hostOptions{common: c}
	cmd := &cobra.Command{
		Use:   "host HOST --month YYYY-MM",
		Short: "Answer a site owner: what did the crawl do to this host",
		Long: `Host lists each request of a crawl to a host, with its time, URL, purpose, status, the rule
of robots.txt that allowed it, the delay in force and the gap since the request before. It
also lists the planned URLs that got no request, with the reason, such as the rule that
denied them. It adds a summary, what is stored, and a text to reply with.

HOST may be spelled in any way, also as a URL; a port other than 80 and 443 makes another
host. With --domain, it stands for all hosts of its registered domain.

The text shows the last requests; -o csv writes all of them, to send, and -o json adds the
summary. In an unfinished round, requests since the last checkpoint are missing. If the crawl
does not know the host, host names similar ones and exits 2.`,
		Example: `  crawlbatch host example.org --month 2026-11
  crawlbatch host https://www.example.org/about --month 2026-11 -o csv > requests.csv
  crawlbatch host example.org --domain --month 2026-11 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runHost(cmd.Context(), o, args[0]) },
	}
	usage.MonthFlag(cmd, &o.month, "crawl that sent the requests")
	usage.OutputFlag(cmd, &o.output, "text", "csv", "json")
	cmd.Flags().BoolVar(&o.domain, "domain", false, "all hosts of the registered domain of HOST")
	cmd.Flags().IntVar(&o.last, "last", 20, "number of requests that the text shows, up to 100000")
	return cmd
}

func runHost(ctx context.Context, o hostOptions, host string) error {
	if err := usage.OneOf("output", o.output, "text", "csv", "json"); err != nil {
		return err
	}
	if o.last < 0 || o.last > 100_000 {
		return usage.Errorf("--last %d: it must be 0 to 100000", o.last)
	}
	target, err := owner.Parse(host, o.domain)
	if err != nil {
		return usage.Error(err)
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	q := owner.Question{Bucket: b, Crawl: o.month, Config: cfg, Target: target, Scratch: dir}
	switch o.output {
	case "csv":
		err = q.CSV(ctx, o.out)
	case "json":
		err = q.JSON(ctx, o.out)
	default:
		command := "crawlbatch host " + usage.Quote(host) + " --month " + o.month + o.givenFlags()
		if o.domain {
			command += " --domain"
		}
		err = q.Text(ctx, o.out, o.last, command)
	}
	if errors.Is(err, owner.ErrUnknown) {
		return usage.Error(err)
	}
	return err
}
