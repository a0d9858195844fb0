package inspect

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// RobotsQuestion asks whether a robots.txt allows a URL.
type RobotsQuestion struct {
	Robots string `json:"robots_base64"`
	Agent  string `json:"agent"`
	URL    string `json:"url"`
}

// RobotsAnswer is the verdict as JSON.
type RobotsAnswer struct {
	Allowed    bool     `json:"allowed"`
	Rule       string   `json:"rule"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
	Sitemaps   []string `json:"sitemaps"`
	Canonical  string   `json:"canonical,omitempty"` // canonical URL, if it differs from the given URL
	Sent       string   `json:"sent,omitempty"`      // URL that a crawl would send, and of which it asks robots.txt, if it differs from the canonical URL
	Warning    string   `json:"warning,omitempty"`
}

// Robots gives the same verdicts on URLs as a fetch task.
type Robots struct{ canonical *urlkey.Canonicalizer }

// NewRobots makes a Robots with the rules for URLs of cfg.
func NewRobots(cfg *config.Config) (*Robots, error) {
	canonical, err := cfg.Plan.Canonicalizer()
	return &Robots{canonical}, err
}

// Answer gives the verdict on one URL.
func (r *Robots) Answer(q RobotsQuestion) (any, error) {
	body, err := base64.StdEncoding.DecodeString(q.Robots)
	if err != nil {
		return nil, fmt.Errorf("robots_base64: %w", err)
	}
	file := robots.Parse(body)
	group := file.GroupFor(robots.ProductToken(q.Agent))
	v := r.verdict(group, q.URL)
	a := RobotsAnswer{Allowed: v.Allowed, Rule: v.Rule, Sitemaps: file.Sitemaps(r.robotsURL(q.URL)), Sent: v.sent, Warning: v.warning}
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

// Print writes the verdicts on URLs, then the delays and sitemaps of the file. It writes warnings
// to errw.
func (r *Robots) Print(out, errw io.Writer, body []byte, agent string, urls []string) {
	file := robots.Parse(body)
	group := file.GroupFor(robots.ProductToken(agent))
	if err := robots.CheckAgent(agent); err != nil {
		fmt.Fprintf(errw, "warning: %v\n", err)
	}
	for _, u := range urls {
		a := r.verdict(group, u)
		if a.warning != "" {
			fmt.Fprintf(errw, "warning: %s\n", a.warning)
		}
		verdict, why := verdictText(a.Verdict)
		asked := cmp.Or(a.sent, a.canonical)
		fmt.Fprintf(out, "%s\t%s\t%s\n", verdict, visible.Text(asked), why)
		if a.sent != "" {
			verdict, why := verdictText(group.Verdict(a.canonical))
			fmt.Fprintf(out, "  canonical\t%s\t%s: %s\n", visible.Text(a.canonical), verdict, why)
		}
		if signals := group.Signals(asked).String(); signals != "" {
			fmt.Fprintf(out, "content-signal\t%s\t%s\n", visible.Text(asked), visible.Text(signals))
		}
	}
	if d, ok := group.CrawlDelay(); ok {
		fmt.Fprintf(out, "crawl-delay\t%s\n", d)
	}
	if d, ok := group.RequestRate(); ok {
		fmt.Fprintf(out, "request-rate\tone each %s\n", d)
	}
	for _, s := range file.Sitemaps(r.robotsURL(urls[0])) {
		fmt.Fprintf(out, "sitemap\t%s\n", visible.Text(s))
	}
}

func verdictText(v robots.Verdict) (verdict, why string) {
	verdict, why = "allowed", "no rule matches"
	if !v.Allowed {
		verdict = "denied"
	}
	if v.Rule != "" {
		why = fmt.Sprintf("line %d: %s", v.Line, visible.Text(v.Rule))
	}
	return verdict, why
}

// robotsVerdict is a fetch task's verdict on a URL.
type robotsVerdict struct {
	robots.Verdict
	canonical string
	sent      string // URL to send; "" if it is canonical
	warning   string
}

// verdict checks a URL as a crawl sends it if a source of its plan gives it so. If the URL cannot be planned, verdict checks
// the given text.
func (r *Robots) verdict(group *robots.Group, given string) robotsVerdict {
	key, sent, err := r.canonical.Sent(given, "")
	if err != nil {
		return robotsVerdict{
			Verdict: group.Verdict(given), canonical: given,
			warning: fmt.Sprintf("a crawl would not request this URL, so the verdict is about the given text: %v", err),
		}
	}
	return robotsVerdict{Verdict: group.Verdict(cmp.Or(sent, key.URL)), canonical: key.URL, sent: sent}
}

// robotsURL returns the address of a URL's robots.txt. It returns "" if the URL cannot be planned.
func (r *Robots) robotsURL(given string) string {
	url, err := r.canonical.URL(given, "")
	if err != nil {
		return ""
	}
	scheme, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + authority + "/robots.txt"
}
