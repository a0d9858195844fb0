package urlkey

import (
	"fmt"
	"slices"
	"strings"
)

// paramPatterns is a set of patterns of parameter names, in lower case.
type paramPatterns struct {
	patterns []string
	first    [256]bool // set of the first octets of matching names
}

// newPatterns checks the patterns. In a pattern, * matches any run of octets, and ? matches any
// single octet.
func newPatterns(patterns []string) (paramPatterns, error) {
	var n paramPatterns
	for _, p := range patterns {
		if p == "" || strings.ContainsAny(p, "&=#%[]\\ ") || strings.ContainsFunc(p, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			return paramPatterns{}, fmt.Errorf("pattern %s: %w: give a name such as fbclid or utm_*, with * for any run of characters and ? for one", quoted(p), ErrPattern)
		}
		if strings.Trim(p, "*") == "" {
			return paramPatterns{}, fmt.Errorf("pattern %s: %w: it would strip every parameter", quoted(p), ErrPattern)
		}
		p = strings.ToLower(p)
		n.patterns = append(n.patterns, p)
		for c := range n.first {
			if p[0] == '*' || p[0] == '?' || lower(byte(c)) == p[0] {
				n.first[c] = true
			}
		}
	}
	return n, nil
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// match reports whether a pattern matches the name of a parameter, in any letter case.
func (n *paramPatterns) match(name string) bool {
	if name == "" || !n.first[name[0]] {
		return false
	}
	return slices.ContainsFunc(n.patterns, func(p string) bool { return glob(p, name) })
}

// glob reports whether a name, in any letter case, matches a pattern in lower case. The time is
// proportional to the product of both lengths.
func glob(pattern, name string) bool {
	p, s, star, mark := 0, 0, -1, 0
	for s < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, s
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == lower(name[s])):
			p, s = p+1, s+1
		case star >= 0:
			mark++
			p, s = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// param returns the name and the whole text of the first parameter of a query, and the rest of the
// query. more is false if this was the last parameter.
func param(q string) (name, whole, rest string, more bool) {
	whole, rest, more = strings.Cut(q, "&")
	name, _, _ = strings.Cut(whole, "=")
	return name, whole, rest, more
}

// canonicalQuery drops empty and tracking parameters and sorts the others by name. Parameters with
// the same name keep their order. A canonical query stays unchanged and costs no allocation.
func (c *Canonicalizer) canonicalQuery(q string) string {
	clean, last := true, ""
	for rest, more := q, q != ""; more && clean; {
		var name, whole string
		name, whole, rest, more = param(rest)
		clean = whole != "" && name >= last && !c.strip.match(name)
		last = name
	}
	if clean {
		return q
	}
	type pair struct{ name, whole string }
	var room [16]pair
	kept := room[:0]
	for rest, more := q, true; more; {
		var p pair
		p.name, p.whole, rest, more = param(rest)
		if p.whole != "" && !c.strip.match(p.name) {
			kept = append(kept, p)
		}
	}
	slices.SortStableFunc(kept, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	var out strings.Builder
	out.Grow(len(q))
	for i, p := range kept {
		if i > 0 {
			out.WriteByte('&')
		}
		out.WriteString(p.whole)
	}
	return out.String()
}
