package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/inspect"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
)

func newFetch(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "fetch URL",
		Short: "Fetch one URL as a fetch task would, and print its rows as JSON",
		Long: `Fetch takes one URL through the code of a fetch task: robots.txt first, redirects,
retries, parsing. It prints one JSON object with the rows that the task would record:
fetch, requests, captures, page, text and links, keyed by column. It stores nothing.

It retries after seconds, not minutes, and prints on stderr what it waits for. It keeps
the delay between requests and obeys robots.txt as a crawl does.

It reads only the list of takedowns of --store. It refuses a URL that was taken down, and does not
follow redirects to one.

It exits with 0 if the host answered for the URL (outcomes ok, not_modified, redirected,
mime_filtered, http_4xx,
blocked, payment_required). It exits with 78 if trying again cannot help (robots_denied,
address_blocked, stopped, redirect_limit, or taken down). Otherwise it exits with 3: the host gave no
response, the response was a failure (http_5xx, rate_limited), or robots.txt was unreachable.`,
		Example: `  crawlbatch fetch https://example.org/ --user-agent "examplebot/1.0 (+https://example.org/bot)"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runFetch(cmd.Context(), c, args[0])
		},
	}
}

func runFetch(ctx context.Context, c *common, url string) error {
	cfg, err := c.loadConfig()
	if err != nil {
		return err
	}
	if err := cfg.RequireContact(); err != nil {
		return err
	}
	if err := jobs.CheckAgent(cfg); err != nil {
		return err
	}
	b, err := c.openArchive(ctx, c.store) // which need not exist
	if err != nil {
		return err
	}
	gone, err := inspect.CheckTakedown(ctx, b, cfg, url)
	if err != nil {
		return storeError(err)
	}
	parser, err := worker.NewParser(cfg)
	if err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	env := &stages.Env{Scratch: dir, Clock: stages.SystemClock{}, Log: c.log, Progress: stages.NoProgress{}, Version: version}
	session, err := fetch.NewSession(env, worker.FetchConfig(cfg, version), parser, func(url, _ string) bool { return gone.URL(url) }, c.printWait)
	if err != nil {
		return usage.Error(err)
	}
	defer session.Close()
	rows, err := session.Fetch(ctx, url)
	if err != nil {
		if ctx.Err() != nil {
			return stages.ErrInterrupted
		}
		return usage.Errorf("%q: %v", url, err)
	}
	body, err := inspect.FetchRows(rows)
	if err != nil {
		return err
	}
	if err := usage.Indent(c.out, body); err != nil {
		return err
	}
	return inspect.Answered(*rows.Fetch)
}

// printWait prints why the command waits for a host.
func (c *common) printWait(w stages.Wait) {
	in := ""
	if !w.Until.IsZero() {
		in = fmt.Sprintf(" in %s", max(time.Until(w.Until), time.Second).Round(time.Second))
	}
	fmt.Fprintf(c.err, "crawlbatch: %s: %s%s\n", w.Host, w.Why, in)
}
