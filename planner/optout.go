package planner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// The bounds of an opt-out list.
const (
	maxOptOut      = 200_000 // number of entries
	maxOptOutEntry = 2000    // length of an entry, octets
	maxWild        = 200     // number of patterns whose host is not literal, each of which is compared with every URL
)

// OptOut is a list of hosts, domains and patterns whose URLs a crawl must not request. It is
// immutable.
//
// An entry is a pattern as in Scope; a URL or host without a path means the host, as a bare name does.
// A line that begins with # is a comment. Letter case and the spelling of host names do not matter. With the rule that drops "www.", the entry www.example.org
// also covers example.org, because both are then one host.
type OptOut struct {
	entries []string
	hosts   map[string]string     // the entry of each host whose subdomains count too
	paths   map[string][]*pattern // patterns by their literal host
	wild    []*pattern            // all other patterns
}

// ReadOptOut reads an opt-out list. The source gives its lines. A list that holds no entry is allowed.
// The errors of a malformed list wrap ErrConfig and name the line; others are those of the source.
func ReadOptOut(ctx context.Context, from source.Source, rules urlkey.Rules) (*OptOut, error) {
	o, canonical, err := newOptOut(rules)
	if err != nil {
		return nil, err
	}
	for e, err := range from.Entries(ctx) {
		switch {
		case errors.Is(err, source.ErrEmpty):
			return o, nil
		case err != nil:
			return nil, fmt.Errorf("opt-out list: %w", err)
		}
		text := strings.Trim(e.URL, " \t\r\v\f")
		if e.Broken != "" {
			err = fmt.Errorf("%w: %s", ErrConfig, e.Broken)
		} else if text != "" && text[0] != '#' {
			err = o.add(text, canonical)
		}
		if err != nil {
			return nil, fmt.Errorf("opt-out list %q, line %d: %w", from.Name(), e.Line, err)
		}
	}
	return o, nil
}

// LoadOptOut reads the opt-out list that a plan stores. It returns nil if the plan has none. The
// bucket b must check what it reads.
func LoadOptOut(ctx context.Context, b store.Bucket, p *manifest.Plan, rules urlkey.Rules) (*OptOut, error) {
	if p.OptOutFile == nil {
		return nil, nil
	}
	o, canonical, err := newOptOut(rules)
	if err != nil {
		return nil, err
	}
	for r, err := range table.Concat[schema.OptOut](ctx, b, []string{p.OptOutFile.Key}) {
		if err == nil {
			err = o.add(strings.Clone(r.Entry), canonical)
		}
		if err != nil {
			return nil, fmt.Errorf("opt-out list of plan %s: %w", p.ID, err)
		}
	}
	return o, nil
}

func newOptOut(rules urlkey.Rules) (*OptOut, *urlkey.Canonicalizer, error) {
	rules.Rewrite = nil // a rewrite may lead to another site, which did not opt out
	canonical, err := urlkey.NewWithRules(nil, rules)
	return &OptOut{hosts: map[string]string{}, paths: map[string][]*pattern{}}, canonical, err
}

// add adds an entry in its plain form, and in the form that the rules give it.
func (o *OptOut) add(text string, canonical *urlkey.Canonicalizer) error {
	if len(o.entries) == maxOptOut {
		return fmt.Errorf("%w: the list has more than %d entries", ErrConfig, maxOptOut)
	}
	if len(text) > maxOptOutEntry || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: %.80q is no entry: give a host such as example.org, or a URL with * for any characters such as example.org/private/*", ErrConfig, text)
	}
	o.entries = append(o.entries, text)
	scheme, rest, whole := strings.Cut(text, "://")
	if !whole {
		scheme, rest = "http", text
	}
	host, path, slash := strings.Cut(rest, "/")
	switch {
	case host == "":
		return fmt.Errorf("%w: %.80q names no host: write */ for any host", ErrConfig, text)
	case strings.Contains(host, "*") || strings.Contains(scheme, "*"):
		if !slash { // *.example.org means these hosts, and *.pdf these files
			err := o.addWild(text, text+"/*")
			if err != nil {
				return err
			}
		}
		return o.addWild(text, text)
	case path == "":
		return o.addHost(host, text, canonical)
	}
	for _, c := range []*urlkey.Canonicalizer{canonical.Plain(), canonical} {
		k, err := c.Canonical(scheme+"://"+rest, "")
		if err != nil {
			return fmt.Errorf("%w: %.80q has no host: %w", ErrConfig, text, err)
		}
		form := k.URL
		if !whole {
			_, form, _ = strings.Cut(k.URL, "://")
		}
		p := newPattern(form)
		p.entry = text
		o.paths[k.Host] = append(o.paths[k.Host], &p)
	}
	return nil
}

// addHost adds a host, perhaps with a port.
func (o *OptOut) addHost(host, text string, canonical *urlkey.Canonicalizer) error {
	for _, c := range []*urlkey.Canonicalizer{canonical.Plain(), canonical} {
		k, err := c.Canonical("http://"+host+"/", "")
		if err == nil && strings.ContainsAny(host, "?#@\\") {
			err = urlkey.ErrHost
		}
		if err != nil {
			return fmt.Errorf("%w: %.80q is no host: %w", ErrConfig, text, err)
		}
		if _, known := o.hosts[k.Host]; !known {
			o.hosts[k.Host] = text
		}
	}
	return nil
}

func (o *OptOut) addWild(text, form string) error {
	if len(o.wild) == maxWild {
		return fmt.Errorf("%w: more than %d patterns have a * before the first slash: name their hosts", ErrConfig, maxWild)
	}
	p := newPattern(strings.ToLower(form))
	p.entry = text
	o.wild = append(o.wild, &p)
	return nil
}

// optOutRows yields the entries for the plan.
func optOutRows(o *OptOut) iter.Seq2[schema.OptOut, error] {
	return func(yield func(schema.OptOut, error) bool) {
		for _, e := range o.entries {
			if !yield(schema.OptOut{Entry: e}, nil) {
				return
			}
		}
	}
}

// Refuses reports whether an entry covers a canonical URL, and returns the entry. A nil list covers no
// URL.
func (o *OptOut) Refuses(url string) (entry string, ok bool) {
	if o == nil || len(o.entries) == 0 {
		return "", false
	}
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	for _, p := range o.paths[host] {
		if p.match(url) {
			return p.entry, true
		}
	}
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:i]
	}
	for _, above := range []string{host, name} {
		for above != "" {
			if entry, ok := o.hosts[above]; ok {
				return entry, true
			}
			_, above, _ = strings.Cut(above, ".")
		}
	}
	if len(o.wild) > 0 {
		lower := strings.ToLower(url)
		for _, p := range o.wild {
			if p.match(lower) {
				return p.entry, true
			}
		}
	}
	return "", false
}
