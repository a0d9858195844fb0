package scope

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
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
	include, exclude index
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

// New checks the patterns and the filters. If there are no include patterns, every URL is included.
// Exclude patterns override include patterns. A nil optOut refuses no URL. Errors wrap ErrConfig.
func New(include, exclude []string, filters []Filter, optOut *OptOut) (*Scope, error) {
	s := &Scope{optOut: optOut}
	for _, list := range []struct {
		name string
		in   []string
		out  *index
	}{{"include", include, &s.include}, {"exclude", exclude, &s.exclude}} {
		for _, text := range list.in {
			if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
				return nil, fmt.Errorf("%w: scope.%s: pattern %q: give a host such as example.org, or a URL with * for any characters such as example.org/docs/*", ErrConfig, list.name, text)
			}
			list.out.add(newPattern(text))
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
// decides, or "" for a URL in scope. sent is the URL as it would be asked for (urlkey.Sent), or "" for the canonical
// URL. What matches one of both matches the URL.
func (s *Scope) Refusal(url, sent string) (reason schema.SkipReason, detail string) {
	if entry, ok := s.optOut.Refuses(url, sent); ok {
		return schema.SkipOptOut, entry
	}
	if ok, why := s.Allows(url, sent); !ok {
		return schema.SkipOutOfScope, why
	}
	for i := range s.filters {
		if f := &s.filters[i]; f.expression.MatchString(url) || sent != "" && f.expression.MatchString(sent) {
			if f.Accept {
				break
			}
			return schema.SkipFiltered, f.Name
		}
	}
	return "", ""
}

// Allows reports whether the patterns of the scope allow a canonical URL and, unless it is "", sent. For a URL outside the
// scope, it also returns the exclude pattern that matches, or "include" if no include pattern matches.
func (s *Scope) Allows(url, sent string) (ok bool, why string) {
	if p := s.exclude.firstOf(url, sent); p != nil {
		return false, p.text
	}
	if len(s.include.patterns) == 0 || s.include.firstOf(url, sent) != nil {
		return true, ""
	}
	return false, "include"
}
