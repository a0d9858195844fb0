package scope

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// ErrConfig means that a value of the plan's config, or an entry of the opt-out list, is not allowed.
var ErrConfig = errors.New("invalid plan configuration")

// Scope says which URLs may be planned. It compares URLs with patterns. A Scope is immutable.
//
// In a pattern, * matches any number of characters, and any other character matches itself. A
// pattern with "://" is compared with the whole canonical URL. Any other pattern with a slash or a
// star is compared with the URL without its scheme and "://". A bare name, without slash and star,
// matches a host and its subdomains.
type Scope struct {
	include, exclude []pattern
	filters          []filter
	optOut           *OptOut // nil if there is none
}

// Filter is a rule with a regular expression in RE2's syntax. It refuses or accepts the canonical
// URLs in which the expression matches any part. The first filter that matches decides.
type Filter struct {
	Name   string // name of the rule for people; "filter N" if missing
	Match  string
	Accept bool
}

type filter struct {
	Filter
	expression *regexp.Regexp
}

type pattern struct {
	text  string
	whole bool     // the pattern is compared with the whole URL
	name  bool     // true: the pattern is a host name
	port  bool     // the host name has a port; if not, the pattern matches all ports
	parts []string // parts of the pattern between the stars
	entry string   // entry of an opt-out list from which the pattern was made
}

func newPattern(text string) pattern {
	whole := strings.Contains(text, "://")
	_, port := urlkey.SplitPort(text)
	return pattern{text: text, whole: whole, name: !whole && !strings.ContainsAny(text, "/*"), port: port != "", parts: strings.Split(text, "*")}
}

// New checks the patterns and the filters. If there are no include patterns, every URL is included.
// Exclude patterns override include patterns. A nil optOut refuses no URL. Errors wrap ErrConfig.
func New(include, exclude []string, filters []Filter, optOut *OptOut) (*Scope, error) {
	s := &Scope{optOut: optOut}
	for _, list := range []struct {
		name string
		in   []string
		out  *[]pattern
	}{{"include", include, &s.include}, {"exclude", exclude, &s.exclude}} {
		for _, text := range list.in {
			if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
				return nil, fmt.Errorf("%w: scope.%s: pattern %q: give a host such as example.org, or a URL with * for any characters such as example.org/docs/*", ErrConfig, list.name, text)
			}
			*list.out = append(*list.out, newPattern(text))
		}
	}
	for i, f := range filters {
		f.Name = cmp.Or(f.Name, fmt.Sprintf("filter %d", i+1))
		e, err := urlkey.Expression(f.Match)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, f.Name, err)
		}
		s.filters = append(s.filters, filter{f, e})
	}
	return s, nil
}

// Refusal returns the reason why a canonical URL must not be planned, and the pattern or rule that
// decides, or "" for a URL in scope.
func (s *Scope) Refusal(url string) (reason schema.SkipReason, detail string) {
	if entry, ok := s.optOut.Refuses(url); ok {
		return schema.SkipOptOut, entry
	}
	if ok, why := s.Allows(url); !ok {
		return schema.SkipOutOfScope, why
	}
	for i := range s.filters {
		if f := &s.filters[i]; f.expression.MatchString(url) {
			if f.Accept {
				break
			}
			return schema.SkipFiltered, f.Name
		}
	}
	return "", ""
}

// Allows reports whether the patterns of the scope allow a canonical URL. For a URL outside the
// scope, it also returns the exclude pattern that matches, or "include" if no include pattern matches.
func (s *Scope) Allows(url string) (ok bool, why string) {
	for i := range s.exclude {
		if s.exclude[i].match(url) {
			return false, s.exclude[i].text
		}
	}
	if len(s.include) == 0 {
		return true, ""
	}
	if slices.ContainsFunc(s.include, func(p pattern) bool { return p.match(url) }) {
		return true, ""
	}
	return false, "include"
}

func (p *pattern) match(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	switch {
	case p.name:
		host, _, _ := strings.Cut(rest, "/")
		if !p.port {
			host, _ = urlkey.SplitPort(host)
		}
		return host == p.text || strings.HasSuffix(host, p.text) && host[len(host)-len(p.text)-1] == '.'
	case p.whole:
		rest = url
	}
	rest, ok := strings.CutPrefix(rest, p.parts[0])
	if !ok || len(p.parts) == 1 {
		return ok && rest == ""
	}
	last := len(p.parts) - 1
	for _, part := range p.parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, p.parts[last])
}
