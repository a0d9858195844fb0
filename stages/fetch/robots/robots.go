package robots

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

// maxRuleText limits the text of a rule in a verdict, in bytes.
const maxRuleText = 1 << 10

// File is a parsed robots.txt. It is immutable.
type File struct {
	groups   []group
	sitemaps []string
}

// group is a run of User-agent lines with the rules after them.
type group struct {
	agents  []string // product tokens, or "*"
	rules   []rule
	delays  []delay
	signals []signalLine
}

// agentIndex returns the index of an agent in the group, or -1.
func (g *group) agentIndex(token string) int {
	return slices.IndexFunc(g.agents, func(a string) bool { return strings.EqualFold(a, token) })
}

// delay is a Crawl-delay or Request-rate line. It applies to the agents named since the previous
// such line. It does not end a list of User-agent lines: the agents before and after it share the
// rules that follow.
type delay struct {
	seconds  float64
	rate     bool // whether the line is a Request-rate line
	from, to int  // range of the group's agents to which the delay applies
}

// addDelay adds a delay line for the agents named since the previous delay line. If no agent was
// named since, the line applies to the same agents as the previous one.
func (g *group) addDelay(seconds float64, rate bool) {
	d := delay{seconds: seconds, rate: rate, to: len(g.agents)}
	if n := len(g.delays); n > 0 {
		if d.from = g.delays[n-1].to; d.from == d.to {
			d.from = g.delays[n-1].from
		}
	}
	g.delays = append(g.delays, d)
}

// raiseDelays returns seconds, a Crawl-delay, and rate, the time that a Request-rate demands. It
// raises each to the value that this group has for an agent, if that is longer. All are in seconds.
func (g *group) raiseDelays(token string, seconds, rate float64) (float64, float64) {
	next := 0 // number of agents searched so far
	for _, d := range g.delays {
		if next < d.from {
			next = d.from
		}
		for next < d.to && !strings.EqualFold(g.agents[next], token) {
			next++
		}
		switch {
		case next >= d.to:
		case d.rate:
			rate = max(rate, d.seconds)
		default:
			seconds = max(seconds, d.seconds)
		}
	}
	return seconds, rate
}

type rule struct {
	pattern
	allow     bool
	directory pattern // directory of the index page that the rule allows; without text if it allows none
	line      string
	num       int
}

// Parse parses the first MaxBytes of a robots.txt. It accepts any bytes and skips lines that it
// cannot interpret.
func Parse(body []byte) *File {
	if len(body) > MaxBytes {
		body = body[:MaxBytes]
	}
	f := new(File)
	var open bool // whether the next User-agent line belongs to the last group
	var sitemaps []string
	eachLine(body, func(l line) {
		if l.key == keyUserAgent && !open {
			f.groups = append(f.groups, group{})
			open = true
		}
		if l.key == keySitemap {
			if l.value != "" && !strings.ContainsAny(l.value, " \t") {
				sitemaps = append(sitemaps, l.value)
			}
			return
		}
		if len(f.groups) == 0 {
			return // a rule before the first User-agent line applies to nobody
		}
		g := &f.groups[len(f.groups)-1]
		switch l.key {
		case keyUserAgent:
			g.agents = append(g.agents, agentOf(l.value))
		case keyAllow, keyDisallow:
			open = false
			g.rules = append(g.rules, makeRule(compile(l.value), l.key == keyAllow, ruleText(l.text), l.num))
		case keyCrawlDelay:
			if s, ok := parseSeconds(l.value); ok {
				g.addDelay(s, false)
			}
		case keyRequestRate:
			if s, ok := parseRate(l.value); ok {
				g.addDelay(s, true)
			}
		case keyContentSignal:
			g.signals = append(g.signals, newSignalLine(l.value, len(g.agents)))
		}
	})
	f.sitemaps = readSitemaps(sitemaps)
	return f
}

func makeRule(p pattern, allow bool, line string, num int) rule {
	r := rule{pattern: p, allow: allow, line: line, num: num}
	if allow {
		r.directory = p.directory()
	}
	return r
}

// ruleText makes the text of a line fit into a column: valid UTF-8 of limited length.
func ruleText(text string) string {
	if len(text) > maxRuleText {
		text = text[:maxRuleText]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// agentOf returns the product token in a User-agent line, or "*" for a star, even with words after
// it.
func agentOf(value string) string {
	if value != "" && value[0] == '*' && (len(value) == 1 || isSpace(value[1])) {
		return "*"
	}
	return ProductToken(value)
}

// ProductToken returns the name by which a robots.txt addresses a crawler: the leading letters, '-'
// and '_' of its User-Agent (RFC 9309, section 2.2.1). For "examplebot/1.0
// (+https://example.org/bot)" it is "examplebot".
func ProductToken(userAgent string) string {
	for i := 0; i < len(userAgent); i++ {
		if c := userAgent[i] | 0x20; (c < 'a' || c > 'z') && userAgent[i] != '-' && userAgent[i] != '_' {
			return userAgent[:i]
		}
	}
	return userAgent
}

// CheckAgent returns an error if the product in a User-Agent is not a product token of RFC 9309.
// The product is the part before "/" or a space. With a wrong token, the rules for another crawler
// might apply.
func CheckAgent(userAgent string) error {
	product := userAgent
	if i := strings.IndexAny(product, "/ \t(;,"); i >= 0 {
		product = product[:i]
	}
	token := ProductToken(userAgent)
	switch {
	case token == "":
		return fmt.Errorf("user agent %q begins with no product token, so robots.txt cannot name it: begin with a name of letters, '-' and '_' (RFC 9309, 2.2.1), as in %q",
			userAgent, exampleAgent)
	case token != product:
		return fmt.Errorf("robots.txt reads the user agent %q as %q, and the rules for that crawler would be obeyed: a product token has letters, '-' and '_' only (RFC 9309, 2.2.1); "+
			"name it with these, and put digits after the slash, as in %q", userAgent, token, exampleAgent)
	}
	return nil
}

const exampleAgent = "examplebot/2.0 (+https://example.org/bot)"

// Sitemaps returns the http and https URLs of Sitemap lines in file order, without duplicates.
// Relative URLs are resolved against robotsURL, or left out if robotsURL is "".
func (f *File) Sitemaps(robotsURL string) []string {
	base, err := url.Parse(robotsURL)
	if err != nil {
		base = new(url.URL)
	}
	seen := map[string]bool{}
	var out []string
	for _, s := range f.sitemaps {
		u, err := url.Parse(s)
		if err != nil {
			continue
		}
		if !u.IsAbs() {
			u = base.ResolveReference(u)
			s = u.String()
		}
		if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || seen[s] {
			continue
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}

// GroupFor selects the rules for a crawler. These are the rules of all groups that name its whole
// product token, ignoring case. If no group names it, these are the rules of all groups for "*".
// The Group does not keep the File in memory.
func (f *File) GroupFor(productToken string) *Group {
	g := new(Group)
	token := productToken
	if !slices.ContainsFunc(f.groups, func(gr group) bool { return gr.agentIndex(token) >= 0 }) {
		token = "*"
	}
	seconds, rate := -1.0, -1.0
	for _, gr := range f.groups {
		index := gr.agentIndex(token)
		if index < 0 {
			continue
		}
		for _, r := range gr.rules {
			if r.text != "" { // an empty path has no effect
				g.rules = append(g.rules, r)
			}
		}
		seconds, rate = gr.raiseDelays(token, seconds, rate)
		for _, s := range gr.signals {
			if index < s.agents && len(g.signals) < maxSignalLines {
				g.signals = append(g.signals, s)
			}
		}
	}
	g.rfc = rfcRules(g.rules)
	if seconds >= 0 {
		g.delay, g.hasDelay = readDelay(seconds), true
	}
	if rate >= 0 {
		g.rate, g.hasRate = time.Duration(rate*float64(time.Second)), true
	}
	return g
}

// AllowAll is the Group of a host without a robots.txt.
func AllowAll() *Group { return new(Group) }

// Group holds the rules of a robots.txt for one crawler. It is immutable.
type Group struct {
	rules    []rule
	rfc      []rule // the rules in rfcForm; nil if all rules already have this form
	signals  []signalLine
	delay    time.Duration
	hasDelay bool
	rate     time.Duration // time between two requests, from Request-rate
	hasRate  bool
}

// Verdict is the decision about one URL.
type Verdict struct {
	Allowed bool
	Rule    string // line that decides, such as "Disallow: /a"; "" if no line matches
	Line    int    // number of the deciding line in the file, from 1; 0 if no line matches
}

// Verdict decides whether a URL may be requested, as it is sent. The matching rule with the longest path
// in octets decides. If an Allow and a Disallow have equal length, the Allow wins. Raw octets are compared
// as Google's parser does, and normalised ones as RFC 9309 does (rfcForm). Both comparisons must allow the URL. If a comparison
// denies, Rule is the denying line. Otherwise it is the line that allows the URL.
func (g *Group) Verdict(rawURL string) Verdict {
	path := pathOf(rawURL)
	if path == "/robots.txt" {
		return Verdict{Allowed: true}
	}
	v := decide(g.rules, path)
	if !v.Allowed {
		return v
	}
	rules, form := g.rules, rfcForm(path, false)
	if g.rfc != nil {
		rules = g.rfc
	} else if len(form) == len(path) && form == path {
		return v // both comparisons give the same verdict
	}
	if w := decide(rules, form); !w.Allowed {
		return w
	}
	return v
}

// decide returns the verdict of the longest matching rule.
func decide(rules []rule, path string) Verdict {
	var best *rule
	length := 0
	for i := range rules {
		r := &rules[i]
		n := r.priority(path)
		if n > length || n == length && n > 0 && r.allow && !best.allow {
			best, length = r, n
		}
	}
	if best == nil {
		return Verdict{Allowed: true}
	}
	return Verdict{Allowed: best.allow, Rule: best.line, Line: best.num}
}

// priority returns the length of the rule's path if it matches, otherwise 0.
func (r *rule) priority(path string) int {
	if r.match(path) {
		return len(r.text)
	}
	if r.directory.text != "" && r.directory.match(path) {
		return len(r.directory.text)
	}
	return 0
}

// readSitemaps parses the values of Sitemap lines with the library. Each value is a single word.
func readSitemaps(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	var b strings.Builder
	for _, v := range values {
		b.WriteString("Sitemap: " + strings.ToValidUTF8(v, "\uFFFD") + "\n")
	}
	data, err := robotstxt.FromString(b.String())
	if err != nil {
		return nil
	}
	return data.Sitemaps
}
