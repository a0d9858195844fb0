package main

import (
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

func newInspectRobots(c *common) *cobra.Command {
	var agent string
	var lines bool
	cmd := &cobra.Command{
		Use:   "robots FILE --agent A URL…",
		Short: "The verdict of a robots.txt, and the line that decided",
		Long: `Robots reads a robots.txt (- for stdin) and says for each URL whether agent A may ask
for it. With --jsonl: {"robots_base64","agent","url"} gives
{"allowed","rule","crawl_delay_seconds","sitemaps"}.`,
		Example: "  crawlbatch inspect robots robots.txt --agent examplebot https://example.org/private/x",
		RunE: func(_ *cobra.Command, args []string) error {
			if lines {
				return jsonl(c.in, c.out, answerRobots)
			}
			if len(args) < 2 || agent == "" {
				return usagef("give a FILE, --agent and at least one URL: see `crawlbatch inspect robots --help`")
			}
			body, err := c.readFile(args[0])
			if err != nil {
				return err
			}
			file := robots.Parse(body)
			group := file.For(robots.ProductToken(agent))
			for _, u := range args[1:] {
				v := group.Verdict(robots.Every, u)
				verdict, why := "allowed", "no rule matches"
				if !v.Allowed {
					verdict = "denied"
				}
				if v.Rule != "" {
					why = fmt.Sprintf("line %d: %s", v.Line, v.Rule)
				}
				fmt.Fprintf(c.out, "%s\t%s\t%s\n", verdict, u, why)
				if signals := group.Signals(u).String(); signals != "" {
					fmt.Fprintf(c.out, "content-signal\t%s\t%s\n", u, signals)
				}
			}
			if d, ok := group.CrawlDelay(); ok {
				fmt.Fprintf(c.out, "crawl-delay\t%s\n", d)
			}
			if d, ok := group.RequestRate(); ok {
				fmt.Fprintf(c.out, "request-rate\tone each %s\n", d)
			}
			for _, s := range file.Sitemaps("") {
				fmt.Fprintf(c.out, "sitemap\t%s\n", s)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "user agent; its product token is what is looked for")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "one JSON object a line in, one a line out")
	return cmd
}

type robotsQuestion struct {
	Robots string `json:"robots_base64"`
	Agent  string `json:"agent"`
	URL    string `json:"url"`
}

type robotsAnswer struct {
	Allowed    bool     `json:"allowed"`
	Rule       string   `json:"rule"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
	Sitemaps   []string `json:"sitemaps"`
}

func answerRobots(q robotsQuestion) (any, error) {
	body, err := base64.StdEncoding.DecodeString(q.Robots)
	if err != nil {
		return nil, fmt.Errorf("robots_base64: %w", err)
	}
	file := robots.Parse(body)
	group := file.For(robots.ProductToken(q.Agent))
	v := group.Verdict(robots.Every, q.URL)
	a := robotsAnswer{Allowed: v.Allowed, Rule: v.Rule, Sitemaps: file.Sitemaps("")}
	if a.Sitemaps == nil {
		a.Sitemaps = []string{}
	}
	if d, ok := group.CrawlDelay(); ok {
		s := d.Seconds()
		a.CrawlDelay = &s
	}
	return a, nil
}
