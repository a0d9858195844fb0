package html

import (
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// maxByline bounds the length of a text in which the reader looks for names, in bytes. A longer
// text is probably a description of the author.
const maxByline = 128

// byline is the text of the first element with itemprop=author, or of an element with itemprop=name
// inside this element.
type byline struct {
	from, to uint32 // range of the text in the outline
	depth    int    // number of open elements when the byline began, plus 1; 0 if the reader is not inside the byline
	inName   bool   // whether the byline is the text of an element with itemprop=name
}

// beginElement reads the attribute itemprop of an element that the reader is about to open.
func (b *byline) beginElement(prop []byte, stack int, out *text.Outline) {
	switch {
	case b.depth == 0 && b.to == 0 && string(prop) == "author", b.depth > 0 && !b.inName && string(prop) == "name":
		b.from, b.depth, b.inName = uint32(out.Len()), stack+1, b.depth > 0
	}
}

// endElements handles the end of all open elements whose index is at least stack.
func (b *byline) endElements(stack int, out *text.Outline) {
	if b.depth > stack {
		b.to, b.depth = uint32(out.Len()), 0
	}
}

// bylineText returns the byline, or "" if there is no byline. all is the text of the outline.
func (b *byline) bylineText(all string) string {
	if b.to <= b.from || int(b.to) > len(all) || b.to-b.from > maxByline {
		return ""
	}
	return all[b.from:b.to]
}

// pickAuthor returns the authors from the first source that names an author. The sources are, in
// order: meta author, JSON-LD, other meta elements, a meta itemprop=author, the byline, the first
// link with rel=author.
func (m *meta) pickAuthor(itemprop, relAuthor string) string {
	for _, s := range [...]string{m.author, m.ldAuthor(), m.otherAuthor, m.itempropAuthor, itemprop, relAuthor} {
		if s = cleanName(strings.ReplaceAll(s, nameBreak, ", ")); s != "" {
			return s
		}
	}
	return ""
}

// ldAuthor returns the authors that JSON-LD names, or "" if there are none.
func (m *meta) ldAuthor() string {
	for names := range m.ld.Authors {
		if s := joinNames(names); s != "" {
			return s
		}
	}
	return ""
}

// cleanName removes words and signs that often surround a name. If the text is not a name,
// cleanName returns "".
func cleanName(s string) string {
	s = fold.String(lexer.WithoutTags(s), fold.MaxShort)
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
