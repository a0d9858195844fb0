package urlkey

import (
	"slices"
	"strings"
)

// Merged is a set of canonicalization steps. Each makes one URL of several that a server may tell apart.
type Merged uint16

// The steps of the canonical form and of Rules.
const (
	MergedEscapes  Merged = 1 << iota // percent-encoding
	MergedOrder                       // order of parameters
	MergedEmpty                       // empty parameters, empty query
	MergedTracking                    // parameters that New drops
	mergedRules                       // first of the switches of Rules, in their order
)

var mergedNames = func() []string {
	names := []string{"escapes", "order", "empty", "tracking"}
	for _, s := range switches {
		names = append(names, s.name)
	}
	return append(names, "rewrite")
}()

// Names returns the names of the steps.
func (m Merged) Names() (names []string) {
	for i, name := range mergedNames {
		if m&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// MergedBy returns the steps that make the canonical URL of a URL as it is sent (Canonicalizer.Sent), or none if sent is "".
func MergedBy(canonical, sent string) (m Merged) {
	if sent == "" {
		return 0
	}
	path, query, _ := strings.Cut(canonical, "?")
	ownPath, own, has := strings.Cut(sent, "?")
	if path != ownPath {
		m |= MergedEscapes
	}
	if has && own == "" {
		m |= MergedEmpty
	}
	last, kept := "", strings.Split(query, "&")
	for more := has && own != ""; more; {
		var whole string
		_, whole, own, more = param(own)
		normal := normalizeEscapes(whole)
		name, _, _ := strings.Cut(normal, "=")
		switch i := slices.Index(kept, normal); {
		case whole == "":
			m |= MergedEmpty
			continue
		case i < 0:
			m |= MergedTracking
			continue
		default:
			kept = slices.Delete(kept, i, i+1)
		}
		if normal != whole {
			m |= MergedEscapes
		}
		if name < last {
			m |= MergedOrder
		}
		last = name
	}
	return m
}

// Merged returns all steps that make the canonical form of raw, with those of the rules. sent is what Sent says of raw.
func (c *Canonicalizer) Merged(raw, base, canonical, sent string) Merged {
	if c.rules == nil || raw == canonical { // most lists hold canonical URLs
		return MergedBy(canonical, sent)
	}
	l, g, err := c.canonical(raw, base)
	if err != nil {
		return 0
	}
	m := MergedBy(l.url, l.url[:l.portEnd]+g.path+g.query)
	note := func(rule, from, to string) {
		i := slices.Index(mergedNames[4:], rule)
		if i < 0 {
			i = len(switches)
		}
		if from != to {
			m |= mergedRules << i
		}
	}
	if _, err := c.apply(l, note); err != nil {
		return 0
	}
	return m
}
