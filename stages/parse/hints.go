package parse

import (
	"bytes"

	"crawlbatch.io/crawlbatch/stages/parse/text"
	"golang.org/x/net/html/atom"
)

// hintOfAttrs is what class, id, role and style say.
func (h *htmlPass) hintOfAttrs(a atom.Atom) text.Hint {
	var hint text.Hint
	t := &h.lex.attrs
	if t.set(attrClass) {
		hint |= text.OfName(t.val[attrClass])
	}
	if t.set(attrID) {
		hint |= text.OfName(t.val[attrID])
	}
	if t.set(attrRole) {
		hint |= text.OfRole(t.val[attrRole])
	}
	if t.set(attrHidden) || t.set(attrStyle) && hidesByStyle(t.val[attrStyle]) {
		hint |= text.Hidden
	}
	if a == atom.Body || a == atom.Html {
		hint &= text.InMain // their classes say what the page is, not what they hold
	}
	return hint
}

// hidesByStyle knows display:none and visibility:hidden.
func hidesByStyle(style []byte) bool {
	for len(style) > 0 {
		rule := style
		if i := bytes.IndexByte(style, ';'); i >= 0 {
			rule, style = style[:i], style[i+1:]
		} else {
			style = nil
		}
		i := bytes.IndexByte(rule, ':')
		if i < 0 {
			continue
		}
		name, value := bytes.TrimSpace(rule[:i]), bytes.TrimSpace(rule[i+1:])
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
	styleDisplay, styleNone      = []byte("display"), []byte("none")
	styleVisibility, styleHidden = []byte("visibility"), []byte("hidden")
)
