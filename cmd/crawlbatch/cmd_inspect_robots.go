package main

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

func newInspectRobots(c *common) *cobra.Command {
	var agent string
	var lines bool
	cmd := &cobra.Command{
		Use:   "robots FILE --agent A URL…",
		Short: "The verdict of a robots.txt, and the line that decided",
		Long: `Robots reads a robots.txt (- for stdin) and says for each URL whether a crawl with the
user agent A would ask for it: as canonical URL, and in the spelling that is given (its
percent escapes and order of parameters), by Google's reading of the rules and by that of
RFC 9309. One denial denies. Where spelling and canonical URL differ, both verdicts follow.

With --jsonl: {"robots_base64","agent","url"} gives {"allowed","rule","crawl_delay_seconds",
"sitemaps"}, with "canonical" where that differs from url, "spelling" where the rule denies
that and not the canonical URL, and "warning" where something else is asked for than agent
or url say.`,
		Example: "  crawlbatch inspect robots robots.txt --agent examplebot https://example.org/private/x",
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := c.loadConfig()
			if err != nil {
				return err
			}
			canon, err := urlkey.New(cfg.Plan.StripParams)
			if err != nil {
				return err
			}
			if lines {
				return jsonl(c.in, c.out, func(q robotsQuestion) (any, error) { return answerRobots(canon, q) })
			}
			if len(args) < 2 || agent == "" {
				return usagef("give a FILE, --agent and at least one URL: see `crawlbatch inspect robots --help`")
			}
			body, err := c.readFile(args[0])
			if err != nil {
				return err
			}
			c.printRobots(body, agent, canon, args[1:])
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "user agent; its product token is what is looked for")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "one JSON object a line in, one a line out")
	return cmd
}

// printRobots tells what a robots.txt says of URLs.
func (c *common) printRobots(body []byte, agent string, canon *urlkey.Canonicalizer, urls []string) {
	file := robots.Parse(body)
	group := file.For(robots.ProductToken(agent))
	if err := robots.CheckAgent(agent); err != nil {
		fmt.Fprintf(c.err, "warning: %v\n", err)
	}
	for _, u := range urls {
		a := askRobots(group, canon, u)
		if a.warning != "" {
			fmt.Fprintf(c.err, "warning: %s\n", a.warning)
		}
		verdict, why := verdictText(a.Verdict)
		fmt.Fprintf(c.out, "%s\t%s\t%s\n", verdict, a.canonical, why)
		if a.spelling != "" {
			for _, form := range []struct{ name, url string }{{"canonical", a.canonical}, {"as given", a.spelling}} {
				verdict, why := verdictText(group.Verdict(robots.Every, form.url))
				fmt.Fprintf(c.out, "  %s\t%s\t%s: %s\n", form.name, form.url, verdict, why)
			}
		}
		if signals := group.Signals(a.canonical).String(); signals != "" {
			fmt.Fprintf(c.out, "content-signal\t%s\t%s\n", a.canonical, signals)
		}
	}
	if d, ok := group.CrawlDelay(); ok {
		fmt.Fprintf(c.out, "crawl-delay\t%s\n", d)
	}
	if d, ok := group.RequestRate(); ok {
		fmt.Fprintf(c.out, "request-rate\tone each %s\n", d)
	}
	for _, s := range file.Sitemaps(robotsOf(canon, urls[0])) {
		fmt.Fprintf(c.out, "sitemap\t%s\n", s)
	}
}

func verdictText(v robots.Verdict) (verdict, why string) {
	verdict, why = "allowed", "no rule matches"
	if !v.Allowed {
		verdict = "denied"
	}
	if v.Rule != "" {
		why = fmt.Sprintf("line %d: %s", v.Line, v.Rule)
	}
	return verdict, why
}

// robotsVerdict is the verdict on a URL as a crawl would ask for it.
type robotsVerdict struct {
	robots.Verdict
	canonical string
	spelling  string // "": as canonical
	warning   string
}

// askRobots asks for a URL as a crawl would. One that no crawl would plan is asked for
// as it is given.
func askRobots(group *robots.Group, canon *urlkey.Canonicalizer, given string) robotsVerdict {
	key, spelling, err := canon.Spelled(given, "")
	switch {
	case err != nil:
		return robotsVerdict{
			Verdict: group.Verdict(robots.Every, given), canonical: given,
			warning: fmt.Sprintf("a crawl would not ask for this, the verdict is on the text as it is: %v", err),
		}
	case spelling == "":
		return robotsVerdict{Verdict: group.Verdict(robots.Every, key.URL), canonical: key.URL}
	}
	return robotsVerdict{Verdict: group.Verdict(robots.Every, key.URL, spelling), canonical: key.URL, spelling: spelling}
}

// robotsOf is where a URL's robots.txt lies; "" if that is not known.
func robotsOf(canon *urlkey.Canonicalizer, given string) string {
	url, err := canon.URL(given, "")
	if err != nil {
		return ""
	}
	scheme, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + authority + "/robots.txt"
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
	Canonical  string   `json:"canonical,omitempty"`
	Spelling   string   `json:"spelling,omitempty"`
	Warning    string   `json:"warning,omitempty"`
}

func answerRobots(canon *urlkey.Canonicalizer, q robotsQuestion) (any, error) {
	body, err := base64.StdEncoding.DecodeString(q.Robots)
	if err != nil {
		return nil, fmt.Errorf("robots_base64: %w", err)
	}
	file := robots.Parse(body)
	group := file.For(robots.ProductToken(q.Agent))
	v := askRobots(group, canon, q.URL)
	a := robotsAnswer{Allowed: v.Allowed, Rule: v.Rule, Sitemaps: file.Sitemaps(robotsOf(canon, q.URL)), Spelling: v.Spelling, Warning: v.warning}
	if v.canonical != q.URL {
		a.Canonical = v.canonical
	}
	if err := robots.CheckAgent(q.Agent); err != nil && a.Warning == "" {
		a.Warning = err.Error()
	}
	if a.Sitemaps == nil {
		a.Sitemaps = []string{}
	}
	if d, ok := group.CrawlDelay(); ok {
		s := d.Seconds()
		a.CrawlDelay = &s
	}
	return a, nil
}
