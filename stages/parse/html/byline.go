package html

import (
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// maxByline is how long a text of the page may be that is taken for names, bytes:
// longer ones are a portrait of the author.
const maxByline = 128

// byline is what a page's visible part says of its author: the text of the first
// element with itemprop=author (of the itemprop=name within it, if there is one).
type byline struct {
	from, to uint32 // range of the outline's text
	depth    int    // open elements when the element began, and 1; 0: none is open
	inName   bool   // the open element is the name within
}

// begin takes an element that is about to be opened and that has an itemprop.
func (b *byline) begin(prop []byte, stack int, out *text.Outline) {
	switch {
	case b.depth == 0 && b.to == 0 && string(prop) == "author", b.depth > 0 && !b.inName && string(prop) == "name":
		b.from, b.depth, b.inName = uint32(out.Len()), stack+1, b.depth > 0
	}
}

// end takes the end of the stack's elements from the one with that number on.
func (b *byline) end(stack int, out *text.Outline) {
	if b.depth > stack {
		b.to, b.depth = uint32(out.Len()), 0
	}
}

// text is the byline in the outline's text, "" if it is none.
func (b *byline) text(all string) string {
	if b.to <= b.from || int(b.to) > len(all) || b.to-b.from > maxByline {
		return ""
	}
	return all[b.from:b.to]
}

// pickAuthor decides who wrote the page, best first: meta author, JSON-LD, other meta
// elements that name authors, itemprop=author, the text of the first link with
// rel=author. Of each, what is an address and no name is passed over.
func (m *meta) pickAuthor(itemprop, relAuthor string) string {
	for _, s := range [...]string{m.author, m.ldAuthor(), m.otherAuthor, m.itempropAuthor, itemprop, relAuthor} {
		if s = cleanName(strings.ReplaceAll(s, nameBreak, ", ")); s != "" {
			return s
		}
	}
	return ""
}

// ldAuthor is the names of the authors that JSON-LD states, "" if it names none.
func (m *meta) ldAuthor() string {
	for names := range m.ld.Authors {
		if s := joinNames(names); s != "" {
			return s
		}
	}
	return ""
}

// cleanName is a name without what often stands around it, "" if it is none.
func cleanName(s string) string {
	s = fold.String(s, fold.MaxShort)
	for _, prefix := range [...]string{"By ", "by ", "BY ", "By: ", "by: ", "@"} {
		s = strings.TrimPrefix(s, prefix)
	}
	s = strings.Trim(s, " ,;|")
	switch {
	case strings.Contains(s, "://"), strings.HasPrefix(s, "www."), strings.EqualFold(s, "null"), strings.EqualFold(s, "undefined"),
		strings.EqualFold(s, "none"), strings.EqualFold(s, "n/a"):
		return ""
	}
	return s
}

// joinNames writes names as the column author has them; those that are none are left out.
func joinNames(names []string) string {
	var kept []string
	for _, n := range names {
		if n = cleanName(n); n != "" && !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	return fold.Cut(strings.Join(kept, ", "), fold.MaxShort)
}
