package html

import (
	"bytes"

	"golang.org/x/net/html/atom"

	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// hintOfAttrs derives a hint from the attributes class, id, role, hidden and style.
func (h *Reader) hintOfAttrs(a atom.Atom) text.Hint {
	var hint text.Hint
	t := &h.lex.Attrs
	if t.Has(lexer.AttrClass) {
		hint |= text.OfName(t.Get(lexer.AttrClass))
	}
	if t.Has(lexer.AttrID) {
		hint |= text.OfName(t.Get(lexer.AttrID))
	}
	if t.Has(lexer.AttrRole) {
		hint |= text.OfRole(t.Get(lexer.AttrRole))
	}
	if t.Has(lexer.AttrHidden) || t.Has(lexer.AttrStyle) && hidesByStyle(t.Get(lexer.AttrStyle)) {
		hint |= text.Hidden
	}
	if a == atom.Body || a == atom.Html {
		hint &= text.InMain // classes of the elements html and body describe the page, not the content
	}
	return hint
}

// hidesByStyle reports whether a style has display:none or visibility:hidden.
func hidesByStyle(style []byte) bool {
	for rule := range bytes.SplitSeq(style, semicolon) {
		name, value, ok := bytes.Cut(rule, colon)
		if !ok {
			continue
		}
		name, value = bytes.TrimSpace(name), bytes.TrimSpace(value)
		if j := bytes.IndexAny(value, " !"); j >= 0 {
			value = value[:j]
		}
		if bytes.EqualFold(name, styleDisplay) && bytes.EqualFold(value, styleNone) ||
			bytes.EqualFold(name, styleVisibility) && bytes.EqualFold(value, styleHidden) {
			return true
		}
	}
	return false
}

var (
	colon                        = []byte{':'}
	styleDisplay, styleNone      = []byte("display"), []byte("none")
	styleVisibility, styleHidden = []byte("visibility"), []byte("hidden")
)
