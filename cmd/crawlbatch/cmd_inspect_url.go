package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
)

func newInspectURL(c *common) *cobra.Command {
	var base string
	var lines bool
	cmd := &cobra.Command{
		Use:   "url URL…",
		Short: "Canonical form, SURT, domain, and why a URL would be skipped",
		Long: `Url shows for each URL its WHATWG form, its canonical form (what is fetched and stored),
its SURT key, its registered domain (the unit of sharding), its host (the unit of
politeness) and why it would not be planned. With --jsonl: {"url","base"} gives
{"ok","whatwg","canonical","surt","domain","host","skip"}; ok is false where the URL
standard's parser fails.`,
		Example: "  crawlbatch inspect url 'HTTP://Example.org:80/a/../b?utm_source=x&b=2&a=1#frag'",
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := c.loadConfig()
			if err != nil {
				return err
			}
			i, err := newURLInspector(cfg)
			if err != nil {
				return err
			}
			if lines {
				return jsonl(c.in, c.out, func(q urlQuestion) (any, error) { return i.answer(q), nil })
			}
			if len(args) == 0 {
				return usagef("give at least one URL: see `crawlbatch inspect url --help`")
			}
			for n, u := range args {
				if n > 0 {
					fmt.Fprintln(c.out)
				}
				a := i.answer(urlQuestion{URL: u, Base: base})
				fmt.Fprintf(c.out, "url        %s\nwhatwg     %s\ncanonical  %s\nsurt       %s\ndomain     %s\nhost       %s\nskip       %s\n",
					u, dash(a.WHATWG), dash(a.Canonical), dash(a.SURT), dash(a.Domain), dash(a.Host), dash(a.Skip))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&base, "base", "", "URL of the page that names it")
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
}

type urlInspector struct {
	canonical *urlkey.Canonicalizer
	plan      planner.Config
}

func newURLInspector(cfg *config.Config) (*urlInspector, error) {
	c, err := urlkey.New(cfg.Plan.StripParams)
	if err != nil {
		return nil, err
	}
	return &urlInspector{c, worker.PlanConfig(cfg)}, nil
}

func (i *urlInspector) answer(q urlQuestion) urlAnswer {
	var a urlAnswer
	if href, err := urlkey.WHATWG(q.URL, q.Base); err == nil {
		a.OK, a.WHATWG = true, href
	}
	if key, err := i.canonical.Canonical(q.URL, q.Base); err == nil {
		a.Canonical, a.SURT, a.Domain, a.Host = key.URL, key.SURT, key.Domain, key.Host
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
	return a
}
