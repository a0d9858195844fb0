package html

import "golang.org/x/net/html/atom"

// elementRule tells how the reader treats an HTML element.
type elementRule struct {
	id    uint8 // index in Reader.count; 0 if the reader does not put the element on the stack
	flags uint16
}

// Flags of elements.
const (
	block     uint16 = 1 << iota // the element breaks the text before and after it
	closesP                      // the start tag ends an open p
	void                         // the element has no end tag
	boundary                     // an end tag inside the element does not end an element outside (HTML, 13.2.4.2, "in scope")
	listEdge                     // a start tag inside the element does not end an li, dt or dd outside
	tabular                      // the element is part of a table
	opaque                       // the element's content is not text of the document
	heading                      // the element is one of h1 to h6
	tableEdge                    // a table tag inside the element (td, tr, tbody …) does not end an element outside
)

// maxIDs exceeds the largest id (see TestElementsFit).
const maxIDs = 96

// elements lists the void elements and the elements that are kept on the stack of open elements.
// Other elements (b, i, em, unknown names …) neither break text nor end an element.
var elements = func() map[atom.Atom]elementRule {
	m := make(map[atom.Atom]elementRule, 128)
	id := uint8(0)
	add := func(flags uint16, names ...atom.Atom) {
		for _, a := range names {
			e := elementRule{flags: flags}
			if flags&void == 0 {
				id++
				e.id = id
			}
			m[a] = e
		}
	}
	add(block|closesP|listEdge, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Dir, atom.Dl, atom.Fieldset,
		atom.Figure, atom.Hgroup, atom.Menu, atom.Ol, atom.Ul, atom.Section, atom.Summary, atom.Figcaption, atom.Form, atom.Listing,
		atom.Pre)
	add(block|closesP, atom.Div, atom.Address, atom.Li, atom.Dt, atom.Dd)
	add(block|closesP, atom.P)
	add(block|closesP|listEdge, atom.Article, atom.Main, atom.Nav, atom.Header, atom.Footer, atom.Aside)
	add(block|closesP|heading, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6)
	add(block|closesP|boundary|listEdge|tableEdge, atom.Table)
	add(block|tabular|boundary|listEdge, atom.Td, atom.Th, atom.Caption)
	add(block|tabular|listEdge, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot)
	add(block|boundary|listEdge, atom.Body, atom.Html, atom.Marquee)
	add(boundary|listEdge|opaque|tableEdge, atom.Template)
	add(boundary|listEdge|opaque, atom.Svg, atom.Math, atom.Object, atom.Video, atom.Audio, atom.Canvas)
	add(listEdge|opaque, atom.Foreignobject) // only in svg
	add(block|listEdge, atom.Noscript, atom.Head, atom.Frameset, atom.Optgroup, atom.Option, atom.Legend)
	add(listEdge, atom.Button, atom.Select)
	// The stack keeps these inline elements, because such elements may be hidden.
	add(0, atom.Span, atom.Label, atom.Font)
	add(void, atom.Area, atom.Base, atom.Col, atom.Embed, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param,
		atom.Source, atom.Track, atom.Wbr, atom.Frame, atom.Keygen, atom.Bgsound)
	add(void|block, atom.Br, atom.Hr)
	return m
}()
