package urlkey

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Rules are the steps after those of the package comment. Each step merges URLs that usually, but not
// always, are one resource. The zero value has no step.
//
// The steps are applied in the order of the fields, and all of them again until they change nothing.
// The result is therefore its own canonical form.
type Rules struct {
	Sessions      bool      // drop session identifiers from paths and queries
	HTTPS         []string  // hosts whose URLs get the scheme https, with their subdomains; * means all hosts; a URL with a port keeps its scheme
	WWW           bool      // drop "www." from a host if the rest has the same registered domain
	IndexFiles    bool      // drop a last path segment such as index.html
	TrailingSlash bool      // drop slashes at the end of a path other than "/"
	Rewrite       []Rewrite // replacements, in order
}

// Rewrite replaces the matches of an expression in a URL.
type Rewrite struct {
	Name    string // name of the rewrite for people; if it is empty, "rewrite N" with the number from 1
	Match   string // regular expression, in RE2's syntax; it may match any part of the URL
	Replace string // replacement of every match, with $1 or ${name} for groups
	Last    bool   // if the expression matches a URL, the later rewrites do not apply to it
}

// The bounds of rules.
const (
	MaxRules      = 256  // largest number of rewrites
	MaxExpression = 1000 // length of the longest expression or replacement, in octets
	maxPasses     = 8    // largest number of times that all steps are applied
)

var (
	// ErrRule means that a rule passed to NewWithRules cannot be used.
	ErrRule = errors.New("bad rule for URLs")
	// ErrRewrite means that rules have no result for a URL: after maxPasses times they still change
	// it, or the result of a rewrite is not a URL.
	ErrRewrite = errors.New("the rules of the config make no URL of it")
)

// rules are Rules that NewWithRules has checked.
type rules struct {
	Rules
	rewrites []*regexp.Regexp // expression of each Rewrite
	https    map[string]bool  // hosts; "*" means all
}

// NewWithRules is like New, but the Canonicalizer also applies rules. Errors wrap ErrPattern or
// ErrRule, and quote the bad pattern or rule.
func NewWithRules(stripParams []string, r Rules) (*Canonicalizer, error) {
	c, err := New(stripParams)
	if err != nil {
		return nil, err
	}
	if !r.Sessions && !r.WWW && !r.IndexFiles && !r.TrailingSlash && len(r.HTTPS) == 0 && len(r.Rewrite) == 0 {
		return c, nil
	}
	if len(r.Rewrite) > MaxRules {
		return nil, fmt.Errorf("%d rewrites: %w: give at most %d", len(r.Rewrite), ErrRule, MaxRules)
	}
	checked := &rules{Rules: r, https: map[string]bool{}}
	for _, host := range r.HTTPS {
		name, err := HostName(host)
		if err != nil && host != "*" {
			return nil, fmt.Errorf("https host %s: %w: give a host name such as example.org, or * for all hosts", quoted(host), ErrRule)
		}
		if host == "*" {
			name = host
		}
		checked.https[name] = true
	}
	checked.Rewrite = slices.Clone(r.Rewrite)
	for i := range checked.Rewrite {
		w := &checked.Rewrite[i]
		w.Name = cmp.Or(w.Name, fmt.Sprintf("rewrite %d", i+1))
		if len(w.Replace) > MaxExpression {
			return nil, fmt.Errorf("rewrite %.120q: %w: its replacement is longer than %d octets", w.Match, ErrRule, MaxExpression)
		}
		e, err := Expression(w.Match)
		if err != nil {
			return nil, fmt.Errorf("rewrite %w", err)
		}
		checked.rewrites = append(checked.rewrites, e)
	}
	c.plain = &Canonicalizer{strip: c.strip}
	c.rules = checked
	return c, nil
}

// Expression compiles a regular expression for URLs, in RE2's syntax. Matching takes time linear in
// the length of the URL. The error wraps ErrRule.
func Expression(text string) (*regexp.Regexp, error) {
	if text == "" || len(text) > MaxExpression {
		return nil, fmt.Errorf("%.120q: %w: give an expression of 1 to %d octets", text, ErrRule, MaxExpression)
	}
	e, err := regexp.Compile(text)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("%.120q: %w: %s: %.120q: write it in RE2's syntax", text, ErrRule, wrong.Code, wrong.Expr)
	}
	return e, err
}

// HostName returns the canonical form of a host name or address without port.
func HostName(text string) (string, error) {
	if strings.ContainsAny(text, "/?#@\\ \t\r\n") {
		return "", fmt.Errorf("host %s: %w", quoted(text), ErrHost)
	}
	c := &Canonicalizer{}
	l, _, err := c.canonical("http://"+text+"/", "")
	if err != nil || l.hostEnd != l.portEnd {
		return "", fmt.Errorf("host %s: %w", quoted(text), ErrHost)
	}
	return l.url[l.host:l.hostEnd], nil
}

// Plain returns the same Canonicalizer without rules. The crawler uses it for the targets of redirects
// and for the URLs of documents, because the server decides where its documents are.
func (c *Canonicalizer) Plain() *Canonicalizer {
	if c.plain != nil {
		return c.plain
	}
	return c
}

// Standard is the name of the step that makes the form that the package comment defines.
const Standard = "standard"

// Step is a change of a URL on the way to its canonical form.
type Step struct {
	Rule string `json:"rule"` // Standard, the name of a switch such as https, or Rewrite.Name
	From string `json:"from"`
	To   string `json:"to"`
}

// Steps returns the changes that Canonical makes to a URL, in order. If the error wraps ErrRewrite,
// they are the changes before the error.
func (c *Canonicalizer) Steps(raw, base string) ([]Step, error) {
	l, _, err := c.canonical(raw, base)
	if err != nil {
		return nil, err
	}
	var steps []Step
	note := func(rule, from, to string) {
		if from != to {
			steps = append(steps, Step{rule, from, to})
		}
	}
	note(Standard, raw, l.url)
	if c.rules != nil {
		_, err = c.apply(l, note)
	}
	return steps, err
}

// apply applies the rules to l until they change nothing. It calls note, unless this is nil, after
// each step.
func (c *Canonicalizer) apply(l urlLayout, note func(rule, from, to string)) (urlLayout, error) {
	for range maxPasses {
		before := l.url
		for _, s := range switches {
			if !s.on(c.rules) {
				continue
			}
			next, ok := c.replaced(l, s.change(c.rules, l))
			if !ok {
				continue // the result is not a URL, for example because its escapes make it too long
			}
			if note != nil {
				note(s.name, l.url, next.url)
			}
			l = next
		}
		for i, e := range c.rules.rewrites {
			if !e.MatchString(l.url) {
				continue
			}
			w := &c.rules.Rewrite[i]
			next, ok := c.replaced(l, e.ReplaceAllString(l.url, w.Replace))
			if !ok {
				return urlLayout{}, fmt.Errorf("rewrite %q of %s: %w", w.Name, quoted(l.url), ErrRewrite)
			}
			if note != nil {
				note(w.Name, l.url, next.url)
			}
			l = next
			if w.Last {
				break
			}
		}
		if l.url == before {
			return l, nil
		}
	}
	return urlLayout{}, fmt.Errorf("after %d times, rules still change %s: %w", maxPasses, quoted(l.url), ErrRewrite)
}

// replaced returns the standard form of a text that replaces the URL l, or false if it is not a URL.
func (c *Canonicalizer) replaced(l urlLayout, text string) (urlLayout, bool) {
	if text == l.url {
		return l, true
	}
	next, _, err := c.plain.canonical(text, "")
	return next, err == nil
}

// switches are the steps before the rewrites, in order. Each can be switched on.
var switches = []struct {
	name   string
	on     func(*rules) bool
	change func(*rules, urlLayout) string
}{
	{"sessions", func(r *rules) bool { return r.Sessions }, func(_ *rules, l urlLayout) string { return withoutSessions(l) }},
	{"https", func(r *rules) bool { return len(r.https) > 0 }, (*rules).withHTTPS},
	{"www", func(r *rules) bool { return r.WWW }, func(_ *rules, l urlLayout) string { return withoutWWW(l) }},
	{"index_files", func(r *rules) bool { return r.IndexFiles }, func(_ *rules, l urlLayout) string { return withoutIndex(l) }},
	{"trailing_slash", func(r *rules) bool { return r.TrailingSlash }, func(_ *rules, l urlLayout) string { return withoutSlash(l) }},
}

// withHTTPS changes the scheme of a URL without port to https, if Rules.HTTPS names its host or a
// domain above it.
func (r *rules) withHTTPS(l urlLayout) string {
	if !strings.HasPrefix(l.url, "http:") || l.hostEnd != l.portEnd {
		return l.url
	}
	listed := r.https["*"]
	for name := l.url[l.host:l.hostEnd]; name != "" && !listed; _, name, _ = strings.Cut(name, ".") {
		listed = r.https[name]
	}
	if !listed {
		return l.url
	}
	return "https" + l.url[len("http"):]
}

// withoutWWW drops "www." from a host, unless the rest of the host has another registered domain.
func withoutWWW(l urlLayout) string {
	host := l.url[l.host:l.hostEnd]
	rest := host
	for strings.HasPrefix(rest, "www.") && Domain(rest) == Domain(rest[len("www."):]) {
		rest = rest[len("www."):]
	}
	if rest == host {
		return l.url
	}
	return l.url[:l.host] + rest + l.url[l.hostEnd:]
}

// indexFiles holds names of the documents that servers return for a directory.
var indexFiles = map[string]bool{
	"index.html": true, "index.htm": true, "index.shtml": true, "index.php": true, "index.asp": true, "index.aspx": true, "index.jsp": true,
	"default.html": true, "default.htm": true, "default.asp": true, "default.aspx": true,
}

func withoutIndex(l urlLayout) string {
	path := l.url[l.portEnd:l.pathEnd]
	slash := strings.LastIndexByte(path, '/')
	if len(path)-slash > len("default.aspx")+1 || !indexFiles[strings.ToLower(path[slash+1:])] {
		return l.url
	}
	return l.url[:l.portEnd+slash+1] + l.url[l.pathEnd:]
}

func withoutSlash(l urlLayout) string {
	path := l.url[l.portEnd:l.pathEnd]
	rest := strings.TrimRight(path, "/")
	if rest == path || rest == "" && path == "/" {
		return l.url
	}
	if rest == "" {
		rest = "/"
	}
	return l.url[:l.portEnd] + rest + l.url[l.pathEnd:]
}

// withoutSessions drops session identifiers: path parameters with the name jsessionid, and query
// parameters for which isSession returns true.
func withoutSessions(l urlLayout) string {
	path, query := l.url[l.portEnd:l.pathEnd], l.url[l.pathEnd:]
	newPath := withoutPathSessions(path)
	newQuery := query
	if strings.HasPrefix(query, "?") {
		var kept []string
		all := strings.Split(query[1:], "&")
		for _, p := range all {
			if !isSession(p) {
				kept = append(kept, p)
			}
		}
		if len(kept) < len(all) {
			newQuery = "?" + strings.Join(kept, "&")
		}
	}
	if len(newPath) == len(path) && len(newQuery) == len(query) {
		return l.url
	}
	return l.url[:l.portEnd] + newPath + newQuery
}

// pathSession is the beginning of a path parameter (RFC 3986, 3.3) with a session identifier.
const pathSession = ";jsessionid="

func withoutPathSessions(path string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(path, ';')
		for i >= 0 && (len(path)-i < len(pathSession) || !strings.EqualFold(path[i:i+len(pathSession)], pathSession)) {
			next := strings.IndexByte(path[i+1:], ';')
			if next < 0 {
				i = -1
				break
			}
			i += 1 + next
		}
		if i < 0 {
			out.WriteString(path)
			return out.String()
		}
		out.WriteString(path[:i])
		path = path[i+len(pathSession):]
		end := strings.IndexAny(path, ";/")
		if end < 0 {
			return out.String()
		}
		path = path[end:]
	}
}

// leastSID is the length of the shortest value of a parameter sid that counts as a session
// identifier. A shorter value is often the number of a story or a section.
const leastSID = 16

// isSession reports whether a query parameter holds a session identifier.
func isSession(param string) bool {
	name, value, _ := strings.Cut(param, "=")
	switch name = strings.ToLower(normalizeEscapes(name)); name {
	case "phpsessid", "jsessionid", "cfid", "cftoken":
		return true
	case "sid":
		return len(value) >= leastSID && strings.ContainsAny(value, "0123456789") && !strings.ContainsFunc(value, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != ','
		})
	}
	return strings.HasPrefix(name, "aspsessionid")
}
