package robots

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

// maxRuleText bounds the text of a rule that a verdict carries, in bytes.
const maxRuleText = 1 << 10

// File is a robots.txt that was read. It does not change.
type File struct {
	groups   []group
	sitemaps []string
}

// group is one or more User-agent lines and the rules that follow them.
type group struct {
	agents  []string // product tokens as reduced, or "*"
	rules   []rule
	delays  []delay
	signals []signalLine
}

// named gives the place of a token among the group's agents, -1 if it is not there.
func (g *group) named(token string) int {
	return slices.IndexFunc(g.agents, func(a string) bool { return strings.EqualFold(a, token) })
}

// delay is a Crawl-delay or Request-rate line. Such lines are no rules, so the agents
// before and after them share the rules that follow; a delay holds for the agents that
// are named between the delay lines before it and itself.
type delay struct {
	seconds  float64
	rate     bool // it is a Request-rate
	from, to int  // of the group's agents
}

// addDelay adds a delay for the agents named since the last delay lines, which are those
// of the last delay where nobody is named in between.
func (g *group) addDelay(seconds float64, rate bool) {
	d := delay{seconds: seconds, rate: rate, to: len(g.agents)}
	if n := len(g.delays); n > 0 {
		if d.from = g.delays[n-1].to; d.from == d.to {
			d.from = g.delays[n-1].from
		}
	}
	g.delays = append(g.delays, d)
}

// paced adds to the longest delay and rate of an agent, in seconds, those of the group.
func (g *group) paced(token string, seconds, rate float64) (float64, float64) {
	next := 0 // agent at which the token is looked for
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
	directory pattern // for an Allow of an index page; text "" if none
	line      string
	num       int
}

// Parse reads a robots.txt, at most its first MaxBytes. Whatever the bytes are,
// it gives a File; lines that mean nothing are passed over.
func Parse(body []byte) *File {
	if len(body) > MaxBytes {
		body = body[:MaxBytes]
	}
	f := new(File)
	var open bool // the last group still takes User-agent lines
	var sitemaps []string
	eachLine(body, func(l line) {
		switch l.key {
		case keyUserAgent:
			if !open {
				f.groups = append(f.groups, group{})
				open = true
			}
			g := &f.groups[len(f.groups)-1]
			g.agents = append(g.agents, agentOf(l.value))
		case keyAllow, keyDisallow:
			if len(f.groups) == 0 {
				return // rules before any User-agent line belong to nobody
			}
			open = false
			g := &f.groups[len(f.groups)-1]
			g.rules = append(g.rules, newRule(l))
		case keyCrawlDelay:
			if len(f.groups) == 0 {
				return
			}
			g := &f.groups[len(f.groups)-1]
			if s, ok := parseSeconds(l.value); ok {
				g.addDelay(s, false)
			}
		case keyRequestRate:
			if len(f.groups) == 0 {
				return
			}
			g := &f.groups[len(f.groups)-1]
			if s, ok := parseRate(l.value); ok {
				g.addDelay(s, true)
			}
		case keyContentSignal:
			if len(f.groups) == 0 {
				return
			}
			g := &f.groups[len(f.groups)-1]
			g.signals = append(g.signals, newSignalLine(l.value, len(g.agents)))
		case keySitemap:
			if l.value != "" && !strings.ContainsAny(l.value, " \t") {
				sitemaps = append(sitemaps, l.value)
			}
		}
	})
	f.sitemaps = readSitemaps(sitemaps)
	return f
}

func newRule(l line) rule {
	r := rule{pattern: compile(l.value), allow: l.key == keyAllow, line: ruleText(l.text), num: l.num}
	if r.allow {
		r.directory, _ = r.pattern.directory()
	}
	return r
}

// ruleText is the text of a line as a table may hold it: valid UTF-8, bounded.
func ruleText(text string) string {
	if len(text) > maxRuleText {
		text = text[:maxRuleText]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// agentOf reduces the value of a User-agent line to a product token. A star
// stands for all, also when words follow it.
func agentOf(value string) string {
	if value != "" && value[0] == '*' && (len(value) == 1 || isSpace(value[1])) {
		return "*"
	}
	return ProductToken(value)
}

// ProductToken gives the part of a User-Agent that robots.txt is asked for: its
// leading letters, '-' and '_' (RFC 9309, section 2.2.1). "examplebot/1.0
// (+https://example.org/bot)" gives "examplebot".
func ProductToken(userAgent string) string {
	for i := 0; i < len(userAgent); i++ {
		if c := userAgent[i] | 0x20; (c < 'a' || c > 'z') && userAgent[i] != '-' && userAgent[i] != '_' {
			return userAgent[:i]
		}
	}
	return userAgent
}

// CheckAgent refuses a User-Agent whose product (what stands before "/" or a space) is
// no product token as RFC 9309 defines it: robots.txt would be asked for another name.
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

// Sitemaps lists the http and https URLs of Sitemap lines in their order, each once.
// Relative ones are resolved against the URL of the robots.txt; without one ("") they
// are left out.
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

// For gives the rules that hold for a crawler: those of all groups that name
// its product token (without regard to case, and the whole token), or when none
// does, of all groups for "*". The answer does not keep the File in memory.
func (f *File) For(productToken string) *Group {
	g := new(Group)
	token := productToken
	if !slices.ContainsFunc(f.groups, func(gr group) bool { return gr.named(token) >= 0 }) {
		token = "*"
	}
	seconds, rate := -1.0, -1.0
	for _, gr := range f.groups {
		named := gr.named(token)
		if named < 0 {
			continue
		}
		for _, r := range gr.rules {
			if r.text != "" { // an empty path decides nothing
				g.rules = append(g.rules, r)
			}
		}
		seconds, rate = gr.paced(token, seconds, rate)
		for _, s := range gr.signals {
			if named < s.agents && len(g.signals) < maxSignalLines {
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

// Group is what a robots.txt asks of one crawler. It does not change.
type Group struct {
	rules    []rule
	rfc      []rule // rules as RFC 9309 compares them; nil: they are the same
	signals  []signalLine
	delay    time.Duration
	hasDelay bool
	rate     time.Duration // between two requests, by Request-rate
	hasRate  bool
}

// Verdict is the answer for one URL.
type Verdict struct {
	Allowed  bool
	Rule     string // the line that decided, such as "Disallow: /a"; "" if none did
	Line     int    // its number in the file, from 1; 0 if none
	Spelling string // of the URL, that the line denies; "" if it denies the URL itself
}

// Verdict says whether the URL may be requested. The longest rule that matches
// decides, by octets of its path; of two as long, Allow. The path and query are taken
// as they stand, so the URL has to be in its encoded form. By Every, the URL and its
// spellings (other ways in which its source wrote it) each need the leave of both
// comparisons; the line that denies is named, or else the one that allows the URL.
func (g *Group) Verdict(by Reading, rawURL string, spellings ...string) Verdict {
	path := pathOf(rawURL)
	if path == "/robots.txt" {
		return Verdict{Allowed: true}
	}
	v := g.judge(by, path)
	if by == Google {
		return v
	}
	for i := 0; i < len(spellings) && v.Allowed; i++ {
		if w := g.judge(by, pathOf(spellings[i])); !w.Allowed {
			v, v.Spelling = w, spellings[i]
		}
	}
	return v
}

// judge is the verdict on one path.
func (g *Group) judge(by Reading, path string) Verdict {
	v := decide(g.rules, path)
	if by == Google || !v.Allowed {
		return v
	}
	rules, again := g.rules, rfcForm(path, false)
	if g.rfc != nil {
		rules = g.rfc
	} else if len(again) == len(path) && again == path {
		return v // both comparisons are the same
	}
	if w := decide(rules, again); !w.Allowed {
		return w
	}
	return v
}

// decide finds the rule that decides about a path.
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

// priority is the length of the rule's path if it matches, else 0.
func (r *rule) priority(path string) int {
	if r.match(path) {
		return len(r.text)
	}
	if r.directory.text != "" && r.directory.match(path) {
		return len(r.directory.text)
	}
	return 0
}

// readSitemaps has the library read the values of Sitemap lines, which are one word each.
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
