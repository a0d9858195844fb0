package html

import (
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// maxByline is the largest length, in bytes, of a text that is read as names. A longer text
// describes the author.
const maxByline = 128

// byline is the text of the first element with itemprop=author, or of the itemprop=name
// within it.
type byline struct {
	from, to uint32 // range of the outline's text
	depth    int    // 1 + the number of open elements when it began; 0 if it is not open
	inName   bool   // whether the open element is the itemprop=name
}

// begin reads the itemprop of an element that is about to be opened.
func (b *byline) begin(prop []byte, stack int, out *text.Outline) {
	switch {
	case b.depth == 0 && b.to == 0 && string(prop) == "author", b.depth > 0 && !b.inName && string(prop) == "name":
		b.from, b.depth, b.inName = uint32(out.Len()), stack+1, b.depth > 0
	}
}

// end handles the end of all elements from this index of the stack on.
func (b *byline) end(stack int, out *text.Outline) {
	if b.depth > stack {
		b.to, b.depth = uint32(out.Len()), 0
	}
}

// text returns the byline, or "" if there is none. all is the text of the outline.
func (b *byline) text(all string) string {
	if b.to <= b.from || int(b.to) > len(all) || b.to-b.from > maxByline {
		return ""
	}
	return all[b.from:b.to]
}

// pickAuthor returns the authors from the first source that has names. The order of sources is meta
// author, JSON-LD, other meta elements, a meta itemprop=author, the byline, the first link with
// rel=author.
func (m *meta) pickAuthor(itemprop, relAuthor string) string {
	for _, s := range [...]string{m.author, m.ldAuthor(), m.otherAuthor, m.itempropAuthor, itemprop, relAuthor} {
		if s = cleanName(strings.ReplaceAll(s, nameBreak, ", ")); s != "" {
			return s
		}
	}
	return ""
}

// ldAuthor returns the authors in JSON-LD, or "" if there are none.
func (m *meta) ldAuthor() string {
	for names := range m.ld.Authors {
		if s := joinNames(names); s != "" {
			return s
		}
	}
	return ""
}

// cleanName removes words and signs that often surround a name. It returns "" if the text is not a
// name.
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

// joinNames joins names for the column author, without duplicates.
func joinNames(names []string) string {
	var kept []string
	for _, n := range names {
		if n = cleanName(n); n != "" && !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	return fold.Cut(strings.Join(kept, ", "), fold.MaxShort)
}
