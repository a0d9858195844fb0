package jsonld

import (
	"bytes"
	"slices"
	"strings"
)

// Bounds of the column json_ld.
const (
	maxRow     = 16 << 10 // bytes
	maxObjects = 16
)

// Column writes the nodes as a JSON list of objects, "" if they say nothing. What
// is not there is left out; equal objects are written once. target makes references
// absolute.
func (l *Data) Column(target func(ref string) string) string {
	var out []byte
	var seen [][2]int
	for i := range l.nodes {
		n := &l.nodes[i]
		if !n.says() || len(seen) >= maxObjects {
			continue
		}
		start := len(out) + 1 // behind "[" or ","
		out = append(out, ",["[btoi(len(out) == 0)])
		out = l.appendNode(out, n, target)
		twice := slices.ContainsFunc(seen, func(s [2]int) bool { return bytes.Equal(out[s[0]:s[1]], out[start:]) })
		if twice || len(out) >= maxRow {
			out = out[:start-1]
			continue
		}
		seen = append(seen, [2]int{start, len(out)})
	}
	if len(out) == 0 {
		return ""
	}
	return string(append(out, ']'))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// says reports whether a node says something of the page. The questions and answers
// of a page that lists some do not, nor do pictures without a name and references to
// what is said elsewhere.
func (n *node) says() bool {
	if n.is("Question", "Answer", "Comment") {
		return false
	}
	more := n.headline != "" || n.name != "" || n.published != "" || n.changed != "" || n.authors != nil || n.crumbs != nil
	return more || n.types != nil && !n.nested && !n.is("ImageObject", "Organization", "Person")
}

func (n *node) is(types ...string) bool {
	return slices.ContainsFunc(n.types, func(t string) bool { return slices.Contains(types, t) })
}

func (l *Data) appendNode(out []byte, n *node, target func(string) string) []byte {
	out = append(out, '{')
	if n.types != nil {
		out = appendList(append(out, `"type":`...), n.types)
	}
	for _, f := range [...]struct{ key, value string }{{"headline", n.headline}, {"name", n.name}, {"datePublished", n.published}, {"dateModified", n.changed}} {
		if f.value != "" {
			out = appendField(out, f.key, f.value)
		}
	}
	if names := l.authorsOf(n); names != nil {
		out = appendList(appendKey(out, "author"), names)
	}
	if n.crumbs != nil {
		out = append(appendKey(out, "breadcrumb"), '[')
		for i, c := range n.crumbs {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, '{')
			if c.name != "" {
				out = appendField(out, "name", c.name)
			}
			if c.url != "" {
				if u := target(c.url); u != "" {
					out = appendField(out, "url", u)
				}
			}
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

// appendKey writes a key, with a comma where something stands before it.
func appendKey(out []byte, key string) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	out = append(out, '"')
	out = append(out, key...)
	return append(out, `":`...)
}

func appendField(out []byte, key, value string) []byte {
	return appendQuoted(appendKey(out, key), value)
}

func appendList(out []byte, items []string) []byte {
	out = append(out, '[')
	for i, s := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendQuoted(out, s)
	}
	return append(out, ']')
}

// appendQuoted writes a JSON string. s is UTF-8 without control characters, as fold
// leaves it.
func appendQuoted(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return append(out, '"')
}

// authorsOf are the names of a node's authors, each once.
func (l *Data) authorsOf(n *node) (names []string) {
	for _, a := range n.authors {
		if a.name == "" && a.id != "" {
			if i := slices.IndexFunc(l.nodes, func(n node) bool { return n.id == a.id && n.name != "" }); i >= 0 {
				a.name = l.nodes[i].name
			}
		}
		if a.name != "" && !slices.Contains(names, a.name) {
			names = append(names, a.name)
		}
	}
	return names
}

// aboutness ranks how much the dates and the authors of a node are the page's.
type aboutness uint8

const (
	ofArticle aboutness = iota // a document of its own: Article, NewsArticle, BlogPosting, Report …
	ofWebPage                  // the page as such: WebPage, ItemPage, CollectionPage …
	ofUntyped                  // it does not say what it is, or no more than that it was created
	ofOther                    // what the page is about: a film is older than the page on it
)

// aboutness is the best of what the node's types give (schema.org).
func (n *node) aboutness() aboutness {
	if len(n.types) == 0 {
		return ofUntyped
	}
	best := ofOther
	for _, t := range n.types {
		switch {
		case strings.HasSuffix(t, "Article"), strings.HasSuffix(t, "Posting") && t != "JobPosting", t == "Report":
			return ofArticle
		case strings.HasSuffix(t, "Page"):
			best = ofWebPage
		case t == "CreativeWork", t == "Recipe", t == "HowTo", t == "ClaimReview": // which are written where they are published
			best = min(best, ofUntyped)
		}
	}
	return best
}

// ofPage gives the nodes whose dates and authors are the page's: articles first, then
// pages, then what has no type, whatever their order on the page.
func (l *Data) ofPage(yield func(*node) bool) {
	for about := ofArticle; about < ofOther; about++ {
		for i := range l.nodes {
			if n := &l.nodes[i]; n.aboutness() == about && !yield(n) {
				return
			}
		}
	}
}

// Dates are those that a node states, as given; "" for none.
type Dates struct{ Published, Modified, Created string }

// Dates gives the dates of the page's nodes, best first, then when its videos and sounds
// were created: those are put on the page when they are uploaded, or not long before.
func (l *Data) Dates(yield func(Dates) bool) {
	for n := range l.ofPage {
		if !yield(Dates{n.published, n.changed, n.created}) {
			return
		}
	}
	for i := range l.nodes {
		if n := &l.nodes[i]; n.is("VideoObject", "AudioObject") && !yield(Dates{Created: n.created}) {
			return
		}
	}
}

// Authors gives the names of the authors of each of the page's nodes, best first.
func (l *Data) Authors(yield func(names []string) bool) {
	for n := range l.ofPage {
		if names := l.authorsOf(n); names != nil && !yield(names) {
			return
		}
	}
}
