// Package explain holds the command inspect, which shows how crawlbatch reads one input, and why.
package explain

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/inspect"
	"crawlbatch.io/crawlbatch/jobs/lookup"
	"crawlbatch.io/crawlbatch/jobs/optout"
)

// Configs opens configs and stores as the flags of the command line say.
type Configs struct {
	// New returns the config of --config and the flags, without reading a crawl.
	New func() (*config.Config, error)
	// Crawl returns the store and the config of a crawl, for a command that only reads.
	Crawl func(ctx context.Context, crawl string) (store.Bucket, *config.Config, error)
	// Archive opens a store that is only read.
	Archive func(ctx context.Context, address string) (store.Bucket, error)
}

// Command returns the command inspect.
func Command(c Configs) *cobra.Command {
	return usage.Group(&cobra.Command{
		Use:        "inspect url|robots|page|warc",
		SuggestFor: []string{"why", "explain"},
		Short:      "Show how crawlbatch reads a URL, a robots.txt, a page or a WARC file, and why",
		Long: `Inspect runs the crawler's code on one input and prints the result with its reasons.
With --jsonl each command reads one JSON object per line from stdin and writes one per line,
in order.`,
	}, newURL(c), newRobots(c), newPage(c), newWARC())
}

func jsonlFlag(cmd *cobra.Command, lines *bool) {
	cmd.Flags().BoolVar(lines, "jsonl", false, "read one JSON object per line from stdin and write one per line")
}

func newURL(c Configs) *cobra.Command {
	var base, crawl string
	var lines bool
	cmd := &cobra.Command{
		Use:   "url URL…",
		Short: "Show a URL's canonical form, SURT and domain, why it would be skipped, and what a crawl knows of it",
		Long: `Url prints for each URL its WHATWG form, its canonical form (under which it is known),
its SURT key, its registered domain (the unit of sharding) and its host (the unit of
politeness). If the form that is sent is not the canonical one, it prints that: path and query
are sent as they are given. If the URL would not be planned, it prints the reason. With --jsonl,
{"url","base"} gives {"ok","whatwg","canonical","surt","domain","host","skip"}, and "sent" if it
is not the canonical form. ok is false if
the parser of the URL standard fails. If rules of the config (plan.canonical, plan.rewrite) change
the URL, each step is printed; --jsonl adds {"steps":[{"rule","from","to"}]}. If the list plan.opt_out
names the URL, the reason is opt_out.

With --month it also says whether the URL was taken down, and prints what the store knows of the URL: its state and the newest
round that changed the state, the form in which it is asked for, its priority as the sum of its parts (plan.priority), why the
URL was skipped, and its partition in the newest plan.
With --month, --jsonl adds {"known":{"state","skip","planned"}}, each with its "round", or
null. The crawl's frozen rules apply.`,
		Example: "  crawlbatch inspect url 'HTTP://Example.org:80/a/../b?utm_source=x&b=2&a=1#frag'\n" +
			"  crawlbatch inspect url --month 2026-11 http://example.org/",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !lines && len(args) == 0 {
				return usage.Errorf("give at least one URL: see `crawlbatch inspect url --help`")
			}
			if !lines {
				return c.URLs(cmd.Context(), crawl, base, args, cmd.OutOrStdout())
			}
			i, err := c.urlInspector(cmd.Context(), crawl)
			if err != nil {
				return err
			}
			return inspect.Lines(cmd.InOrStdin(), cmd.OutOrStdout(), func(q inspect.URLQuestion) (any, error) { return i.Answer(cmd.Context(), q) })
		},
	}
	cmd.Flags().StringVar(&base, "base", "", "URL of the page with the link")
	usage.MonthFlag(cmd, &crawl, "crawl to look the URL up in")
	jsonlFlag(cmd, &lines)
	return cmd
}

// URLs writes how crawlbatch reads each URL, which may be relative to base. If crawl is not "",
// URLs also writes what the crawl's store knows about the URL.
func (c Configs) URLs(ctx context.Context, crawl, base string, urls []string, out io.Writer) error {
	i, err := c.urlInspector(ctx, crawl)
	if err != nil {
		return err
	}
	for n, u := range urls {
		if n > 0 {
			fmt.Fprintln(out)
		}
		a, err := i.Answer(ctx, inspect.URLQuestion{URL: u, Base: base})
		if err != nil {
			return err
		}
		a.Print(out, u)
		if crawl == "" {
			fmt.Fprintln(out, "known      not looked up: --month YYYY-MM asks that crawl")
		}
	}
	return nil
}

// urlInspector returns an inspector of URLs. If a crawl is named, it applies the config of this crawl and
// looks URLs up in its store, otherwise it applies the config of c.New.
func (c Configs) urlInspector(ctx context.Context, crawl string) (*inspect.URL, error) {
	var cfg *config.Config
	var known *lookup.Crawl
	var b store.Bucket
	var err error
	if crawl == "" {
		cfg, err = c.New()
	} else if b, cfg, err = c.Crawl(ctx, crawl); err == nil {
		known, err = lookup.Open(ctx, b, crawl, time.Now())
	}
	if err != nil {
		return nil, err
	}
	optOut, err := optout.Read(ctx, cfg, c.Archive)
	if err != nil {
		return nil, err
	}
	i, err := inspect.NewURL(cfg, optOut, known)
	if err == nil && crawl != "" {
		err = i.ReadTakedowns(ctx, b, cfg)
	}
	return i, err
}

func newRobots(c Configs) *cobra.Command {
	var agent string
	var lines bool
	cmd := &cobra.Command{
		Use:   "robots FILE --agent A URL…",
		Short: "Show the verdict of a robots.txt on URLs, and the line that decides",
		Long: `Robots reads a robots.txt (- for stdin) and prints for each URL whether a crawl with the
user agent A would request it, by Google's reading of the rules and by RFC 9309: it is denied if
either denies it. The verdict is about the URL as it is sent: with path and query as they are
given here, as a crawl sends a URL that a list gives so. If that is not the canonical URL, a
second line has the verdict on the canonical URL.

With --jsonl: {"robots_base64","agent","url"} gives {"allowed","rule","crawl_delay_seconds",
"sitemaps"}, with "canonical" if that differs from url, "sent" if the URL that is sent is not
the canonical one, and "warning" if agent or url cannot be used as they are.`,
		Example: "  crawlbatch inspect robots robots.txt --agent examplebot https://example.org/private/x",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.New()
			if err != nil {
				return err
			}
			r, err := inspect.NewRobots(cfg)
			if err != nil {
				return err
			}
			if lines {
				return inspect.Lines(cmd.InOrStdin(), cmd.OutOrStdout(), r.Answer)
			}
			if len(args) < 2 || agent == "" {
				return usage.Errorf("give a FILE, --agent and at least one URL: see `crawlbatch inspect robots --help`")
			}
			body, err := usage.ReadFile(args[0], cmd.InOrStdin(), inspect.MaxInput)
			if err != nil {
				return err
			}
			r.Print(cmd.OutOrStdout(), cmd.ErrOrStderr(), body, agent, args[1:])
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "user agent; robots.txt groups are matched with its product token")
	jsonlFlag(cmd, &lines)
	return cmd
}

func newPage(c Configs) *cobra.Command {
	var url, contentType string
	var lines bool
	cmd := &cobra.Command{
		Use:   "page FILE --url U",
		Short: "Show the rows that the parser makes of a document",
		Long: `Page parses a document (- for stdin) as the response of a URL and prints the rows as
JSON. With --jsonl: {"html_base64","url","content_type"} gives
{"page":{…},"links":[…],"text":{"main","full"}}, with the columns as keys.`,
		Example: "  crawlbatch inspect page saved.html --url https://example.org/a",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.New()
			if err != nil {
				return err
			}
			p, err := inspect.NewPage(cfg)
			if err != nil {
				return err
			}
			if lines {
				return inspect.Lines(cmd.InOrStdin(), cmd.OutOrStdout(), p.Answer)
			}
			if len(args) != 1 || url == "" {
				return usage.Errorf("give one FILE and its --url: see `crawlbatch inspect page --help`")
			}
			body, err := usage.ReadFile(args[0], cmd.InOrStdin(), inspect.MaxInput)
			if err != nil {
				return err
			}
			rows, err := p.Rows(body, url, contentType)
			if err != nil {
				return usage.Errorf("--url %q: %v", url, err)
			}
			return usage.Indent(cmd.OutOrStdout(), rows)
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "URL of the response")
	cmd.Flags().StringVar(&contentType, "content-type", "text/html", "Content-Type field of the response")
	jsonlFlag(cmd, &lines)
	return cmd
}

func newWARC() *cobra.Command {
	var lines bool
	cmd := &cobra.Command{
		Use:   "warc FILE",
		Short: "List the records of a WARC file and check their digests",
		Long: `Warc lists the records of a WARC file, plain or gzip (- for stdin): offset, length, type,
target, first line and whether the digests match. It reports damaged bytes and reads on
after them; any damage ends with exit 4. With --jsonl: one JSON object per record.`,
		Example: "  crawlbatch inspect warc crawl-data/warc/crawl=2026-11/round=0/2026-11-r0-4f2a8c17d03b65e9-part-00000-e1-00001.warc.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("give one FILE (- for stdin): see `crawlbatch inspect warc --help`")
			}
			in, err := usage.Open(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer in.Close()
			return inspect.WARC(in, cmd.OutOrStdout(), args[0], lines)
		},
	}
	cmd.Flags().BoolVar(&lines, "jsonl", false, "write one JSON object per record")
	return cmd
}
