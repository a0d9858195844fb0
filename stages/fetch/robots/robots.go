package robots

import (
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

// delay is a Crawl-delay or Request-rate line, which holds for the agents named
// before it.
type delay struct {
	seconds float64
	rate    bool // it is a Request-rate
	agents  int
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
				g.delays = append(g.delays, delay{s, false, len(g.agents)})
			}
		case keyRequestRate:
			if len(f.groups) == 0 {
				return
			}
			g := &f.groups[len(f.groups)-1]
			if s, ok := parseRate(l.value); ok {
				g.delays = append(g.delays, delay{s, true, len(g.agents)})
			}
		case keyContentSignal:
			if len(f.groups) == 0 {
				return
			}
			g := &f.groups[len(f.groups)-1]
			g.signals = append(g.signals, newSignalLine(l.value, len(g.agents)))
		case keySitemap:
			if isAbsolute(l.value) {
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

// Sitemaps lists the absolute http and https URLs of Sitemap lines in their
// order, each once.
func (f *File) Sitemaps() []string { return slices.Clone(f.sitemaps) }

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
		for _, d := range gr.delays {
			switch {
			case named >= d.agents:
			case d.rate:
				rate = max(rate, d.seconds)
			default:
				seconds = max(seconds, d.seconds)
			}
		}
		for _, s := range gr.signals {
			if named < s.agents && len(g.signals) < maxSignalLines {
				g.signals = append(g.signals, s)
			}
		}
	}
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
	signals  []signalLine
	delay    time.Duration
	hasDelay bool
	rate     time.Duration // between two requests, by Request-rate
	hasRate  bool
}

// Verdict is the answer for one URL.
type Verdict struct {
	Allowed bool
	Rule    string // the line that decided, such as "Disallow: /a"; "" if none did
	Line    int    // its number in the file, from 1; 0 if none
}

// Verdict says whether the URL may be requested. The longest rule that matches
// decides, by octets of its normalised path; of two as long, Allow. The path and
// query are taken as they stand, so the URL has to be in its encoded form.
func (g *Group) Verdict(rawURL string) Verdict {
	path := pathOf(rawURL)
	if path == "/robots.txt" {
		return Verdict{Allowed: true}
	}
	var best *rule
	length := 0
	for i := range g.rules {
		r := &g.rules[i]
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

func isAbsolute(value string) bool {
	if strings.ContainsAny(value, " \t") {
		return false
	}
	u, err := url.Parse(value)
	return err == nil && u.Host != "" && (strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Scheme, "https"))
}

// readSitemaps has the library read Sitemap lines that were found sound.
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
	seen := make(map[string]bool, len(data.Sitemaps))
	return slices.DeleteFunc(data.Sitemaps, func(s string) bool {
		dup := seen[s]
		seen[s] = true
		return dup
	})
}
