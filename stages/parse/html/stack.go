package html

import (
	"golang.org/x/net/html/atom"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

var idHead, idNoscript = elements[atom.Head].id, elements[atom.Noscript].id

// beginInHead is called for a start tag outside templates while a head is open. If the element may not be in a head, the
// head ends, even without an end tag (HTML, 13.2.6.4.4). beginInHead returns false if the tag has no
// element. The content of a noscript in the head stays in it, as in browsers that run scripts, but a
// body has no other place than after the head.
func (h *Reader) beginInHead(a atom.Atom) bool {
	switch a {
	case atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta, atom.Title, atom.Noscript, atom.Noframes, atom.Style, atom.Script,
		atom.Template:
		return true
	case atom.Html:
		h.meta.htmlLang(&h.lex.Attrs) // the tag only adds attributes to the open html element
		return false
	case atom.Head:
		return false
	case atom.Body, atom.Frameset:
	default:
		if h.count[idNoscript] > 0 {
			return true
		}
	}
	i := len(h.stack) - 1
	for i > 0 && h.stack[i].atom != atom.Head {
		i--
	}
	h.popTo(i)
	return true
}

// implyEnds ends the open elements that a start tag closes without an end tag (HTML, 13.2.6.4.7 and
// the table modes).
func (h *Reader) implyEnds(a atom.Atom, e elementRule) {
	if e.flags&closesP != 0 && h.count[idP] > 0 {
		h.endWithin(atom.P, boundary)
	}
	switch a {
	case atom.Li:
		h.endWithin(atom.Li, listEdge)
	case atom.Dt, atom.Dd:
		h.endWithin(atom.Dt, listEdge)
		h.endWithin(atom.Dd, listEdge)
	case atom.Option, atom.Optgroup:
		h.endWithin(atom.Option, listEdge)
	case atom.Td, atom.Th:
		h.endCells()
	case atom.Tr:
		h.endCells()
		h.endWithinTable(atom.Tr)
	case atom.Tbody, atom.Thead, atom.Tfoot:
		h.endCells()
		h.endWithinTable(atom.Tr)
		h.endWithinTable(atom.Tbody)
		h.endWithinTable(atom.Thead)
		h.endWithinTable(atom.Tfoot)
	}
	if e.flags&heading != 0 && h.top.flags&heading != 0 {
		h.pop()
	}
}

func (h *Reader) endCells() {
	h.endWithinTable(atom.Td)
	h.endWithinTable(atom.Th)
	h.endWithinTable(atom.Caption)
}

// pushElement opens an element and puts it on the stack. It returns false if the stack is full.
func (h *Reader) pushElement(a atom.Atom, e elementRule) bool {
	switch a {
	case atom.Form:
		h.links.addForm(&h.lex.Attrs, h.top.part)
	case atom.Object:
		h.links.addEmbedded(schema.KindMedia, h.lex.Attrs.Get(lexer.AttrData), h.top.part)
	case atom.Video, atom.Audio:
		h.addElementFile(schema.KindMedia)
		h.links.addEmbedded(schema.KindImg, h.lex.Attrs.Get(lexer.AttrPoster), h.top.part)
	case atom.Body, atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		h.links.addEmbedded(schema.KindImg, h.lex.Attrs.Get(lexer.AttrBackground), h.top.part) // the attribute is obsolete, but browsers show the image (HTML, 15.3)
	case atom.Html:
		h.meta.htmlLang(&h.lex.Attrs)
	}
	if e.flags&block != 0 {
		h.out.Break(tagOf(a))
	}
	if len(h.stack) >= maxOpen {
		return false
	}
	if h.lex.Attrs.Has(lexer.AttrItemprop) {
		h.byline.beginElement(h.lex.Attrs.Get(lexer.AttrItemprop), len(h.stack), &h.out)
	}
	hint := text.OfElement(a)
	if h.lex.Attrs.Any() {
		hint |= h.hintOfAttrs(a)
	}
	o := openElement{atom: a, flags: e.flags, id: e.id, part: h.partOf(a), skip: h.top.skip, inert: h.top.inert}
	if e.flags&opaque != 0 && (a != atom.Template || !h.isShadowRoot()) {
		o.skip, o.inert = true, o.inert || a == atom.Template
	}
	if a == atom.Noscript || a == atom.Head {
		hint |= text.Hidden
	}
	if e.flags&block != 0 {
		o.elem = true
	} else if e.flags&opaque == 0 {
		// The outline has an inline element only if the element is hidden, a control or a caption,
		// and its parent is none of these.
		hint &= text.Hidden | text.Control | text.Caption
		o.elem = hint&^h.out.Hint() != 0
		o.hides = o.elem && hint&text.Hidden != 0
		if o.breaks = o.elem; o.breaks {
			if o.hides {
				h.out.Suspend() // the line continues after the hidden element
			} else {
				h.out.Break(h.tagNow())
			}
		}
	}
	if o.elem {
		h.out.Open(a, hint)
	}
	h.stack = append(h.stack, o)
	h.count[e.id]++
	h.top = o
	return true
}

// endWithin ends the innermost open element of the kind a, and all elements inside it. If one of the
// elements inside it has a flag of edge, endWithin does nothing.
func (h *Reader) endWithin(a atom.Atom, edge uint16) {
	if h.count[elements[a].id] == 0 {
		return
	}
	for i := len(h.stack) - 1; i >= 0; i-- {
		o := &h.stack[i]
		if o.atom == a {
			h.popTo(i)
			return
		}
		if o.flags&edge != 0 || a == atom.Span && o.flags&block != 0 {
			return
		}
	}
}

func (h *Reader) endWithinTable(a atom.Atom) { h.endWithin(a, tableEdge) }

func (h *Reader) endHeading() {
	for i := len(h.stack) - 1; i >= 0; i-- {
		if h.stack[i].flags&heading != 0 {
			h.popTo(i)
			return
		}
		if h.stack[i].flags&boundary != 0 {
			return
		}
	}
}

func (h *Reader) popTo(n int) {
	for len(h.stack) > n {
		h.pop()
	}
}

func (h *Reader) pop() {
	n := len(h.stack) - 1
	o := h.stack[n]
	h.stack = h.stack[:n]
	h.count[o.id]--
	h.byline.endElements(n, &h.out)
	if n > 0 {
		h.top = h.stack[n-1]
	} else {
		h.top = openElement{}
	}
	if o.flags&boundary != 0 && h.linkDepth > n && o.atom != atom.Table {
		h.links.closeAnchor(&h.out) // the end of a table cell, an object or a similar element also ends an <a> element inside it (13.2.4.3, markers)
	}
	if o.flags&block != 0 {
		h.out.Break(text.TagNone)
	}
	if o.elem {
		if o.flags&block == 0 && o.breaks {
			h.out.Break(text.TagNone)
		}
		h.out.Close()
	}
	switch {
	case o.hides:
		h.out.Resume(h.tagNow())
	case o.flags&block != 0 || o.breaks:
		h.out.Break(h.tagNow())
	}
}
