package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
)

func newFetch(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "fetch URL",
		Short: "One URL as a map task would take it, as JSON",
		Long: `Fetch takes one URL through the code of a map task: robots.txt first, redirects, retries,
parsing. It prints one JSON object with the rows that it would have recorded: fetch,
requests, captures, page, text and links, keyed by column. It stores nothing.

As somebody waits, it tries again after seconds, not minutes, and says on stderr what it
waits for. The delay between requests and robots.txt are kept as in a crawl.

It exits with 0 when the host answered for the URL (outcomes ok, not_modified,
redirected, mime_filtered, http_4xx), with 78 when trying again cannot help
(robots_denied, address_blocked, stopped, redirect_limit), and with 3 otherwise: no
answer, a failing one (http_5xx, rate_limited), or a robots.txt that could not be had.`,
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
	parser, err := worker.NewParser(cfg)
	if err != nil {
		return err
	}
	scratch, remove, err := newScratch()
	if err != nil {
		return err
	}
	defer remove()
	env := &stages.Env{Scratch: scratch, Clock: stages.SystemClock{}, Log: c.log, Progress: stages.NoProgress{}, Version: version}
	rows, err := fetch.One(ctx, env, worker.FetchConfig(cfg, version), parser, url, c.waits)
	if err != nil {
		if ctx.Err() != nil {
			return stages.ErrInterrupted
		}
		return usagef("%q: %v", url, err)
	}
	w := rowWriter{}
	w.object("fetch", rows.Fetch)
	w.list("requests", len(rows.Requests), func(i int) any { return rows.Requests[i] })
	w.list("captures", len(rows.Captures), func(i int) any { return rows.Captures[i].Capture })
	if rows.Page != nil {
		w.object("page", *rows.Page)
	} else {
		w.null("page")
	}
	if rows.Text != nil {
		w.object("text", *rows.Text)
	} else {
		w.null("text")
	}
	w.list("links", len(rows.Links), func(i int) any { return rows.Links[i] })
	body, err := w.done()
	if err != nil {
		return err
	}
	if err := indent(c.out, body); err != nil {
		return err
	}
	return had(rows.Fetch)
}

// waits says what a person waits for.
func (c *common) waits(w stages.Wait) {
	in := ""
	if !w.Until.IsZero() {
		in = fmt.Sprintf(" in %s", max(time.Until(w.Until), time.Second).Round(time.Second))
	}
	fmt.Fprintf(c.err, "crawlbatch: %s: %s%s\n", w.Host, w.Why, in)
}

// errNotHad: a URL could not be had now, and may be later.
var errNotHad = errors.New("trying again later may help")

// had is nil if the host answered for the URL, else what became of it.
func had(f schema.Fetch) error {
	kind := errNotHad
	switch f.Outcome {
	case schema.OK, schema.NotModified, schema.Redirected, schema.MIMEFiltered, schema.HTTP4xx:
		return nil
	case schema.RobotsDenied, schema.AddressBlocked, schema.Stopped, schema.RedirectLimit:
		kind = stages.ErrPermanent
	}
	what := string(f.Outcome)
	switch {
	case f.Error != "":
		what += ": " + f.Error
	case f.Outcome == schema.RobotsDenied:
		what += ": " + f.RobotsRule
	case f.HTTPStatus != 0:
		what += fmt.Sprintf(": HTTP status %d", f.HTTPStatus)
	}
	return fmt.Errorf("%s: %s: %w", f.URL, what, kind)
}

// rowWriter builds a JSON object of rows, keyed by column.
type rowWriter struct {
	body []byte
	err  error
}

func (w *rowWriter) key(name string) {
	if len(w.body) == 0 {
		w.body = append(w.body, '{')
	} else {
		w.body = append(w.body, ',')
	}
	w.body = fmt.Appendf(w.body, "%q:", name)
}

func (w *rowWriter) row(row any) {
	if w.err == nil {
		w.body, w.err = catalog.AppendJSON(w.body, row)
	}
}

func (w *rowWriter) object(name string, row any) {
	w.key(name)
	w.row(row)
}

func (w *rowWriter) null(name string) {
	w.key(name)
	w.body = append(w.body, "null"...)
}

func (w *rowWriter) list(name string, n int, at func(int) any) {
	w.key(name)
	w.body = append(w.body, '[')
	for i := range n {
		if i > 0 {
			w.body = append(w.body, ',')
		}
		w.row(at(i))
	}
	w.body = append(w.body, ']')
}

func (w *rowWriter) done() ([]byte, error) { return append(w.body, '}'), w.err }
