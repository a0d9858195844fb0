package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/lookup"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
)

func newInspectURL(c *common) *cobra.Command {
	var base, crawl string
	var lines bool
	cmd := &cobra.Command{
		Use:   "url URL…",
		Short: "Canonical form, SURT, domain, why a URL would be skipped, and what a crawl knows of it",
		Long: `Url shows for each URL its WHATWG form, its canonical form (what is fetched and stored),
its SURT key, its registered domain (the unit of sharding), its host (the unit of
politeness) and why it would not be planned. With --jsonl: {"url","base"} gives
{"ok","whatwg","canonical","surt","domain","host","skip"}; ok is false where the URL
standard's parser fails.

With --month it tells too what the store knows of the URL: the newest round that
changed its state, and that state; why it was skipped; the partition of the newest plan
that holds it. --jsonl then adds {"known":{"state","skip","planned"}}, each with its
"round" and null where there is none; its rules are those that the crawl froze.`,
		Example: "  crawlbatch inspect url 'HTTP://Example.org:80/a/../b?utm_source=x&b=2&a=1#frag'\n" +
			"  crawlbatch inspect url --month 2026-11 http://example.org/",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !lines && len(args) == 0 {
				return usagef("give at least one URL: see `crawlbatch inspect url --help`")
			}
			i, err := c.urlInspector(cmd.Context(), crawl)
			if err != nil {
				return err
			}
			if lines {
				return jsonl(c.in, c.out, func(q urlQuestion) (any, error) { return i.answer(cmd.Context(), q) })
			}
			for n, u := range args {
				if n > 0 {
					fmt.Fprintln(c.out)
				}
				a, err := i.answer(cmd.Context(), urlQuestion{URL: u, Base: base})
				if err != nil {
					return err
				}
				fmt.Fprintf(c.out, "url        %s\nwhatwg     %s\ncanonical  %s\nsurt       %s\ndomain     %s\nhost       %s\nskip       %s\n",
					u, dash(a.WHATWG), dash(a.Canonical), dash(a.SURT), dash(a.Domain), dash(a.Host), dash(a.Skip))
				if a.Spelling != "" {
					fmt.Fprintf(c.out, "spelling   %s (robots.txt has to allow it, too)\n", a.Spelling)
				}
				if a.Known != nil {
					a.Known.print(c.out)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&base, "base", "", "URL of the page that names it")
	cmd.Flags().StringVar(&crawl, "month", "", "crawl to look the URL up in, as 2026-11")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "one JSON object a line in, one a line out")
	return cmd
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type urlQuestion struct {
	URL  string `json:"url"`
	Base string `json:"base"`
}

type urlAnswer struct {
	OK        bool   `json:"ok"`
	WHATWG    string `json:"whatwg"`
	Canonical string `json:"canonical"`
	SURT      string `json:"surt"`
	Domain    string `json:"domain"`
	Host      string `json:"host"`
	Skip      string `json:"skip"` // "" where it would be planned
	// Spelling is how it was spelled, where that is not canonical: robots.txt is asked
	// for it, too.
	Spelling string `json:"spelling,omitempty"`

	Known *knownURL `json:"known,omitempty"` // with --month
}

type urlInspector struct {
	canonical *urlkey.Canonicalizer
	plan      planner.Config
	crawl     *lookup.Crawl // nil: the store is not asked
}

// urlInspector judges by the config or, where a crawl is named, by what that froze.
func (c *common) urlInspector(ctx context.Context, crawl string) (*urlInspector, error) {
	if crawl == "" {
		cfg, err := c.loadConfig()
		if err != nil {
			return nil, err
		}
		return newURLInspector(cfg)
	}
	b, cfg, err := c.openCrawl(ctx, crawl)
	if err != nil {
		return nil, err
	}
	i, err := newURLInspector(cfg)
	if err != nil {
		return nil, err
	}
	i.crawl, err = lookup.Open(ctx, b, crawl)
	return i, err
}

func newURLInspector(cfg *config.Config) (*urlInspector, error) {
	c, err := urlkey.New(cfg.Plan.StripParams)
	if err != nil {
		return nil, err
	}
	return &urlInspector{canonical: c, plan: worker.PlanConfig(cfg)}, nil
}

func (i *urlInspector) answer(ctx context.Context, q urlQuestion) (urlAnswer, error) {
	var a urlAnswer
	if href, err := urlkey.WHATWG(q.URL, q.Base); err == nil {
		a.OK, a.WHATWG = true, href
	}
	if key, err := i.canonical.Canonical(q.URL, q.Base); err == nil {
		a.Canonical, a.SURT, a.Domain, a.Host = key.URL, key.SURT, key.Domain, key.Host
		if _, spelling, err := i.canonical.Spelled(q.URL, q.Base); err == nil {
			a.Spelling = spelling
		}
		if i.crawl != nil {
			found, err := i.crawl.Find(ctx, key)
			if err != nil {
				return a, err
			}
			a.Known = newKnownURL(found)
		}
	}
	_, reason, detail, err := planner.Judge(i.plan, q.URL, q.Base)
	switch {
	case err != nil:
		a.Skip = err.Error()
	case reason != "" && detail != "":
		a.Skip = fmt.Sprintf("%s: %s", reason, detail)
	default:
		a.Skip = string(reason)
	}
	return a, nil
}
