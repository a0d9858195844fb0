package scope

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// The bounds of an opt-out list.
const (
	maxOptOut      = 200_000 // number of entries
	maxOptOutEntry = 2000    // length of an entry, octets
	maxWild        = 200     // number of patterns with a star in the host; each of them is compared with every URL
)

// OptOut is a list of hosts, domains and patterns whose URLs a crawl must not request. It is
// immutable.
//
// An entry is a pattern as in Scope. The entries http://example.com and example.com both mean the
// whole host. A line that begins with # is a comment. Letter case and the form of host names do not
// matter. With the rule that drops "www.", the entry www.example.org also covers example.org,
// because both are then one host. Parameters that the config strips do not matter.
type OptOut struct {
	entries []string
	hosts   map[string]string // the entry of each host whose subdomains count too
	paths   index             // patterns that begin with a host without a star
	wild    index             // all other patterns

	wildEntries int // number of entries in wild, each of which may have several forms
}

// ReadOptOut reads an opt-out list. The lines come from a source. An empty list is allowed. The
// error of a malformed list wraps ErrConfig and names the line. Other errors come from the source.
func ReadOptOut(ctx context.Context, from source.Source, stripParams []string, rules urlkey.Rules) (*OptOut, error) {
	o, forms, err := newOptOut(stripParams, rules)
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
			err = o.add(text, forms)
		}
		if err != nil {
			return nil, fmt.Errorf("opt-out list %q, line %d: %w", from.Name(), e.Line, err)
		}
	}
	return o, nil
}

// LoadOptOut reads the opt-out list that a plan stores. It returns nil if the plan has none. The
// bucket b must check what it reads.
func LoadOptOut(ctx context.Context, b store.Bucket, p *manifest.Plan, stripParams []string, rules urlkey.Rules) (*OptOut, error) {
	if p.OptOutFile == nil {
		return nil, nil
	}
	o, forms, err := newOptOut(stripParams, rules)
	if err != nil {
		return nil, err
	}
	for r, err := range table.Concat[schema.OptOut](ctx, b, []string{p.OptOutFile.Key}) {
		if err == nil {
			err = o.add(strings.Clone(r.Entry), forms)
		}
		if err != nil {
			return nil, fmt.Errorf("opt-out list of plan %s: %w", p.ID, err)
		}
	}
	return o, nil
}

// optOutForms are Canonicalizers that make the forms of an entry for the comparison with URLs: the
// canonical form, the form without stripped parameters, and the form by the rules.
type optOutForms struct {
	steps   []*urlkey.Canonicalizer
	noSlash bool // the rules drop slashes at the end
}

func newOptOut(stripParams []string, rules urlkey.Rules) (*OptOut, *optOutForms, error) {
	rules.Rewrite = nil // a rewrite may lead to another site, and that site did not opt out
	full, err := urlkey.NewWithRules(stripParams, rules)
	if err != nil {
		return nil, nil, err
	}
	standard, err := urlkey.New(nil)
	forms := &optOutForms{[]*urlkey.Canonicalizer{standard, full.Plain(), full}, rules.TrailingSlash}
	return &OptOut{hosts: map[string]string{}}, forms, err
}

// add adds an entry in its forms.
func (o *OptOut) add(text string, forms *optOutForms) error {
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
		if !slash {
			return o.addWild(text, text, text+"/*") // *.example.org means these hosts, and *.pdf these files
		}
		return o.addWild(text, forms.wild(text, strings.TrimSuffix(text, "/"+path), "/"+path)...)
	case path == "":
		return o.addHost(host, text, forms)
	}
	urls := []string{scheme + "://" + rest}
	if _, port := urlkey.SplitPort(host); (port == ":80" || port == ":443") && !whole {
		urls = append(urls, "https://"+rest)
	}
	for i, url := range urls {
		keys, err := forms.of(url)
		if err != nil {
			return fmt.Errorf("%w: %.80q has no host: %w", ErrConfig, text, err)
		}
		for _, k := range keys {
			form := k.URL
			if !whole && i == 0 {
				_, form, _ = strings.Cut(k.URL, "://")
			}
			p := newPattern(form)
			p.entry = text
			o.paths.add(p)
		}
	}
	return nil
}

// of returns the forms of a pattern with a host and a path. A form counts only if every star stays
// between the same characters. Otherwise a pattern could cover more URLs than its author wants. For
// example, /*;jsessionid=* without its session covers every URL.
func (f *optOutForms) of(url string) (keys []urlkey.Key, err error) {
	add := func(k urlkey.Key) {
		if !slices.ContainsFunc(keys, func(other urlkey.Key) bool { return other.URL == k.URL }) {
			keys = append(keys, k)
		}
	}
	for i, c := range f.steps {
		k, err := c.Canonical(url, "")
		if err != nil {
			return nil, err
		}
		if i > 0 && starNeighbours(k.URL) != starNeighbours(keys[0].URL) {
			continue
		}
		add(k)
		if rest, ok := strings.CutSuffix(k.URL, "/*"); ok && f.noSlash && !strings.HasSuffix(rest, "*") {
			if k, err := c.Canonical(rest, ""); err == nil && k.URL == rest { // the directory itself has lost its slash
				add(k)
			}
		}
	}
	return keys, nil
}

// starNeighbours returns the stars of a pattern, each with the characters before and after it.
func starNeighbours(text string) string {
	var all []byte
	text = " " + text + " "
	for i := range len(text) {
		if text[i] == '*' {
			all = append(all, text[i-1:i+2]...)
		}
	}
	return string(all)
}

// wild returns the forms of a pattern whose host has a star. Only its path can have other forms.
func (f *optOutForms) wild(text, host, path string) []string {
	forms := []string{text}
	const other = "http://host.invalid"
	if keys, err := f.of(other + path); err == nil && !strings.Contains(path, "#") {
		for _, k := range keys {
			if form, ok := strings.CutPrefix(k.URL, other); ok && !slices.Contains(forms, host+form) {
				forms = append(forms, host+form)
			}
		}
	}
	return forms
}

// addHost adds a host, perhaps with a port.
func (o *OptOut) addHost(host, text string, forms *optOutForms) error {
	for _, c := range forms.steps {
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

func (o *OptOut) addWild(text string, forms ...string) error {
	if o.wildEntries++; o.wildEntries > maxWild {
		return fmt.Errorf("%w: more than %d patterns have a * before the first slash: name their hosts", ErrConfig, maxWild)
	}
	for _, form := range forms {
		p := newPattern(strings.ToLower(form))
		p.entry = text
		o.wild.add(p)
	}
	return nil
}

// Rows yields the entries for the plan, without those that name what was taken down.
func (o *OptOut) Rows(gone *takedown.Guard) iter.Seq2[schema.OptOut, error] {
	return func(yield func(schema.OptOut, error) bool) {
		for _, e := range o.entries {
			if !gone.Mentions(e) && !yield(schema.OptOut{Entry: e}, nil) {
				return
			}
		}
	}
}

// Refuses reports whether an entry covers a canonical URL or, unless it is "", the URL that is sent for it, and returns
// the entry. A nil list covers no URL.
func (o *OptOut) Refuses(url, sent string) (entry string, ok bool) {
	if o == nil || len(o.entries) == 0 {
		return "", false
	}
	if p := o.paths.firstOf(url, sent); p != nil {
		return p.entry, true
	}
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	name, _ := urlkey.SplitPort(host)
	for _, above := range []string{host, name} {
		for above != "" {
			if entry, ok := o.hosts[above]; ok {
				return entry, true
			}
			_, above, _ = strings.Cut(above, ".")
		}
	}
	if len(o.wild.patterns) > 0 {
		if p := o.wild.firstOf(strings.ToLower(url), strings.ToLower(sent)); p != nil {
			return p.entry, true
		}
	}
	return "", false
}
