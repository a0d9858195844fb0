package jsonld

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// These are the bounds of the column json_ld.
const (
	maxRow     = 16 << 10 // bytes of the column
	maxObjects = 16
)

// object is a node in the form of the column.
type object struct {
	Type       []string `json:"type,omitempty"`
	Headline   string   `json:"headline,omitempty"`
	Name       string   `json:"name,omitempty"`
	Published  string   `json:"datePublished,omitempty"`
	Modified   string   `json:"dateModified,omitempty"`
	Author     []string `json:"author,omitempty"`
	Breadcrumb []step   `json:"breadcrumb,omitempty"`
}

// step is a step of a breadcrumb in the form of the column.
type step struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Column returns a JSON list of the nodes that have a statement about the page, or "" if there are
// none. Of equal objects, only the first is written. target makes a reference absolute, and returns ""
// for a malformed reference.
func (l *Data) Column(target func(ref string) string) string {
	var one bytes.Buffer
	encoder := json.NewEncoder(&one)
	encoder.SetEscapeHTML(false)
	var objects [][]byte
	size := 0
	for i := range l.nodes {
		n := &l.nodes[i]
		if !n.hasStatement() || len(objects) >= maxObjects {
			continue
		}
		o := object{Type: n.types, Headline: n.headline, Name: n.name, Published: n.published, Modified: n.changed, Author: l.authorsOf(n)}
		for _, c := range n.crumbs {
			if c.url != "" {
				c.url = target(c.url)
			}
			o.Breadcrumb = append(o.Breadcrumb, step{c.name, c.url})
		}
		one.Reset()
		_ = encoder.Encode(&o) // it cannot fail, because the object has only strings
		text := bytes.TrimSpace(one.Bytes())
		length := len(text) + 1 // size of the text, and of the bracket or comma before it
		if size+length >= maxRow || slices.ContainsFunc(objects, func(o []byte) bool { return bytes.Equal(o, text) }) {
			continue
		}
		size += length
		objects = append(objects, bytes.Clone(text))
	}
	if len(objects) == 0 {
		return ""
	}
	return "[" + string(bytes.Join(objects, []byte(","))) + "]"
}

// hasStatement reports whether a node states something about the page. A question, answer or comment
// states nothing, because a page may list many. A node with only a type states something if it is not
// nested and is not an image, an organization or a person.
func (n *node) hasStatement() bool {
	if n.is("Question", "Answer", "Comment") {
		return false
	}
	more := n.headline != "" || n.name != "" || n.published != "" || n.changed != "" || n.authors != nil || n.crumbs != nil
	return more || n.types != nil && !n.nested && !n.is("ImageObject", "Organization", "Person")
}

func (n *node) is(types ...string) bool {
	return slices.ContainsFunc(n.types, func(t string) bool { return slices.Contains(types, t) })
}

// authorsOf returns the names of a node's authors, without duplicates.
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

// aboutness is the likelihood, as a rank, that a node's dates and authors belong to the page.
type aboutness uint8

const (
	ofArticle aboutness = iota // an article: Article, NewsArticle, BlogPosting, Report …
	ofWebPage                  // a web page: WebPage, ItemPage, CollectionPage …
	ofUntyped                  // no type, or a work that usually has a page of its own: CreativeWork, Recipe …
	ofOther                    // any other thing, such as a film, which may be older than its page
)

// bestAboutness returns the best rank of the node's types (schema.org).
func (n *node) bestAboutness() aboutness {
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
		case t == "CreativeWork", t == "Recipe", t == "HowTo", t == "ClaimReview": // authors write works of these types on the page that publishes them
			best = min(best, ofUntyped)
		}
	}
	return best
}

// ofPage yields the nodes that may give the page's dates and authors: first articles, then pages,
// then nodes without a type.
func (l *Data) ofPage(yield func(*node) bool) {
	for about := ofArticle; about < ofOther; about++ {
		for i := range l.nodes {
			if n := &l.nodes[i]; n.bestAboutness() == about && !yield(n) {
				return
			}
		}
	}
}

// Dates holds the dates of a node as the page spells them. A missing date is "".
type Dates struct{ Published, Modified, Created string }

// Dates yields the dates of the page's nodes, the best first. Creation dates of videos and sounds
// come last; they are close to the date of the page, which is usually published with its video.
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

// Authors yields the author names of each node, the best node first.
func (l *Data) Authors(yield func(names []string) bool) {
	for n := range l.ofPage {
		if names := l.authorsOf(n); names != nil && !yield(names) {
			return
		}
	}
}
