// Package html reads an HTML document and its response header. One pass gives the columns, the
// links and the text outline of a page.
package html

import (
	"bytes"
	"slices"

	"golang.org/x/net/html/atom"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// maxOpen bounds the stack of open elements. The reader ignores deeper elements but keeps their
// content. Browsers have the same limit.
const maxOpen = 512

// openElement is an entry of the stack of open elements, which have begun and not ended yet.
type openElement struct {
	atom   atom.Atom
	flags  uint16
	id     uint8
	elem   bool // whether the outline has this element too
	breaks bool // whether the element is inline but has a hint (hidden, control or caption) that its parent lacks
	hides  bool // whether this hint is hidden, so that the line continues after the element
	part   part // part of the page to which the element's content belongs
	skip   bool // whether the element's content is not text of the document
	inert  bool // whether the element is in a template whose content is not part of the document
}

// part is a part of a page, such as its footer. The column links.position holds the part's name.
type part uint8

const (
	partNone part = iota
	partMain
	partNav
	partHeader
	partFooter
	partAside
)

var partNames = [...]string{"", "main", "nav", "header", "footer", "aside"}

// Reader reads an HTML document in one pass over its tokens.
//
// The reader builds no tree. The tree builder of x/net/html refuses more than 512 open elements,
// and a page can make it clone formatting elements without bound. The reader's stack holds only
// structural elements and follows the rules for implied end tags (HTML, 13.2.6). Formatting
// elements never break text, so the reader does not need the adoption agency algorithm. Time and
// memory grow linearly with the document.
type Reader struct {
	out       text.Outline
	links     linkList
	meta      meta
	byline    byline
	lex       lexer.Lexer
	unescaped []byte // buffer for text whose references are resolved
	all       string // text of the outline; empty until Read sets it
	charset   string // see SetCharset
	stack     []openElement
	count     [maxIDs]int32 // number of open elements with each elementRule.id
	top       openElement   // innermost open element; zero if the stack is empty

	pushed    bool        // whether the element of the last start tag is on the stack
	size      int         // length of the document that Read has read, in bytes
	nuls      bool        // whether the document has NULs
	xml       bool        // whether the document is XHTML, in which "/>" ends any element
	collect   rawTextSink // destination of the text of the open raw text element
	linkDepth int         // number of open elements when the current <a> element began
}

// rawTextSink is the destination of the text of a raw text element, such as a script.
type rawTextSink uint8

const (
	toText rawTextSink = iota
	toNowhere
	toTitle
	toJSON
)

// Config configures a Reader.
type Config struct {
	Agent    string // product token of the crawler in lower case; directives may name it
	MaxText  int    // largest length of the kept text, in bytes
	MaxLinks int    // largest number of kept links
}

// Reset makes the reader ready for the next document.
func (h *Reader) Reset(cfg Config) {
	h.out.Reset(cfg.MaxText)
	h.byline = byline{}
	h.links.reset(cfg.MaxLinks)
	h.size = 0
	h.meta.reset(cfg.Agent)
	h.stack = h.stack[:0]
	h.count = [maxIDs]int32{}
	h.top = openElement{}
	h.collect = toText
	h.xml = false
	h.all, h.charset = "", ""
}

// SetCharset sets the name of the document's character set before it was decoded (see
// charset.Decode). The queries of links are in this character set. Without it they are in UTF-8.
func (h *Reader) SetCharset(name string) { h.charset = name }

// Small reports whether each of the reader's buffers has at most max bytes. The parser reuses a
// small reader for the next document and drops any other.
func (h *Reader) Small(max int) bool {
	return h.out.Len() <= max && cap(h.links.raw) <= 1<<16 && cap(h.links.bytes) <= max && cap(h.unescaped) <= max
}

// Outline returns the document's text, structured by its elements.
func (h *Reader) Outline() *text.Outline { return &h.out }

// Read reads an HTML document in UTF-8 and returns all its text. xml is true for an XHTML document.
func (h *Reader) Read(doc []byte, xml bool) (all string) {
	h.xml, h.size = xml, len(doc)
	h.readDocument(doc)
	if target, ok := parseRefresh(h.meta.refresh); ok {
		h.links.addRefresh(target, false)
	}
	h.all = h.out.All()
	return h.all
}

// readDocument reads the document.
func (h *Reader) readDocument(doc []byte) {
	h.lex = lexer.Lexer{Src: doc}
	h.nuls = bytes.IndexByte(doc, 0) >= 0
	z := &h.lex
	for {
		switch z.Next() {
		case lexer.EndOfFile:
			h.links.closeAnchor(&h.out)
			h.byline.endElements(0, &h.out)
			h.out.Break(text.TagNone)
			h.lex = lexer.Lexer{}
			return
		case lexer.Text:
			h.text(z)
			continue
		case lexer.StartTag:
			foreign := z.CDATA || z.Name == atom.Svg || z.Name == atom.Math
			h.startTag(z.Name)
			if z.Name == atom.Noscript || z.CDATA {
				z.Raw = 0 // scripts do not run here, so the content of noscript is markup; svg and math have no raw text
			}
			if z.Empty && (h.xml || foreign) {
				h.endEmpty(z.Name)
			}
		case lexer.EndTag:
			h.endTag(z.Name)
		}
		z.CDATA = h.top.atom == atom.Svg || h.top.atom == atom.Math
	}
}

// endEmpty is called after a start tag that ends in "/>". Such an element has no content, so
// endEmpty ends it.
func (h *Reader) endEmpty(a atom.Atom) {
	if a == atom.Br || !h.xml && elements[a].flags&block != 0 {
		return // a br, or an HTML block within svg, for which the slash has no meaning
	}
	h.lex.Raw, h.collect = 0, toText
	switch {
	case a == atom.A:
		h.links.closeAnchor(&h.out)
	case h.pushed:
		h.pop()
	}
}

func (h *Reader) text(z *lexer.Lexer) {
	if h.collect == toNowhere || h.top.skip && h.collect == toText {
		return
	}
	p := z.Text
	if h.nuls {
		p = withoutNULs(p, h.collect != toText)
	}
	if z.Refs && bytes.IndexByte(p, '&') >= 0 {
		h.unescaped = lexer.Unescape(slices.Grow(h.unescaped[:0], len(p)), p, false)
		p = h.unescaped
	}
	if h.top.atom == atom.Head && h.collect == toText && len(bytes.TrimLeft(p, htmlSpace)) > 0 {
		h.pop() // text in a head belongs to the body (HTML, 13.2.6.4.4)
	}
	switch {
	case h.collect == toTitle:
		if h.meta.title == "" {
			h.meta.title = fold.Bytes(p, fold.MaxTitle)
		}
	case h.collect == toJSON:
		h.meta.ld.Read(p)
	case h.count[idPre] > 0 || h.count[idListing] > 0:
		h.out.Lines(p)
	default:
		h.out.Text(p)
	}
}

var (
	nul         = []byte{0}
	replacement = []byte("\uFFFD")
)

// withoutNULs removes the NULs of a text. In a raw text element it replaces them (HTML, 13.2.5.1 to 4 and
// 13.2.6.4.7).
func withoutNULs(p []byte, raw bool) []byte {
	if raw {
		return bytes.ReplaceAll(p, nul, replacement)
	}
	return bytes.ReplaceAll(p, nul, nil)
}

// htmlSpace holds the white space of the HTML Standard, which may stand in a head.
const htmlSpace = " \t\n\f\r"

var idPre, idListing, idP = elements[atom.Pre].id, elements[atom.Listing].id, elements[atom.P].id

func (h *Reader) startTag(a atom.Atom) {
	h.collect, h.pushed = toText, false
	if h.count[idTemplate] > 0 {
		if h.top.inert {
			h.lex.Attrs.Clear()
		}
		switch a {
		case atom.Html, atom.Head, atom.Body, atom.Frameset:
			return // a template has no such elements
		}
	} else if h.count[idHead] > 0 && !h.beginInHead(a) {
		return
	}
	if h.lex.CDATA && htmlOnly(a) {
		return
	}
	switch a {
	case atom.Script:
		h.collect = toNowhere
		if isJSONLD(h.lex.Attrs.Get(lexer.AttrType)) {
			h.collect = toJSON
		}
		h.links.addEmbedded(schema.KindScript, h.lex.Attrs.Get(lexer.AttrSrc), h.top.part)
		return
	case atom.Style, atom.Noembed, atom.Noframes, atom.Textarea:
		h.collect = toNowhere
		return
	case atom.Iframe:
		h.collect = toNowhere
		h.addElementFile(schema.KindIframe)
		return
	case atom.Title:
		h.collect = toNowhere
		if h.count[idSVG] == 0 && h.count[idTemplate] == 0 {
			h.collect = toTitle
		}
		return
	case atom.A:
		h.links.closeAnchor(&h.out)
		h.links.openAnchor(&h.lex.Attrs, &h.out, h.top.part)
		h.linkDepth = len(h.stack)
		return
	case atom.Image: // an image in SVG; outside SVG, image is another name for img (HTML, 13.2.6.4.7)
		if h.count[idSVG] == 0 {
			h.links.addImage(&h.lex.Attrs, h.top.part)
		} else if h.links.addEmbedded(schema.KindImg, h.lex.Attrs.Get(lexer.AttrHref), h.top.part) == nil {
			h.links.addEmbedded(schema.KindImg, h.lex.Attrs.Get(lexer.AttrXlinkHref), h.top.part)
		}
		return
	case atom.Meta:
		h.meta.readTag(&h.lex.Attrs)
		return
	case atom.Time:
		h.meta.timeTag(&h.lex.Attrs)
		return
	case atom.Foreignobject:
		if h.count[idSVG] == 0 {
			return
		}
	}
	e, known := elements[a]
	if !known {
		return
	}
	if e.flags&void != 0 {
		h.voidTag(a, e)
		return
	}
	h.implyEnds(a, e)
	h.pushed = h.pushElement(a, e)
}

// htmlOnly reports whether an element has its meaning only outside of svg and math, and its start tag does
// not end them (HTML, 13.2.6.5). Elements in foreignObject are outside.
func htmlOnly(a atom.Atom) bool {
	switch a {
	case atom.Base, atom.Iframe, atom.Link, atom.Noembed, atom.Noframes, atom.Script, atom.Style, atom.Textarea, atom.Title:
		return true
	}
	return false
}

// isShadowRoot reports whether the template that begins is a declarative shadow root: its content is part of
// the document (HTML, 13.2.6.4.4). XHTML has none, and neither has a head.
func (h *Reader) isShadowRoot() bool {
	mode := h.lex.Attrs.Get(lexer.AttrShadowRootMode)
	return (bytes.EqualFold(mode, modeOpen) || bytes.EqualFold(mode, modeClosed)) && !h.xml && !h.lex.CDATA && h.count[idHead] == 0
}

var (
	modeOpen   = []byte("open")
	modeClosed = []byte("closed")
)

var (
	idTemplate = elements[atom.Template].id
	idSVG      = elements[atom.Svg].id
	jsonLDType = []byte("application/ld+json")
)

// isJSONLD reports whether a script's type is JSON-LD, with any parameters.
func isJSONLD(t []byte) bool {
	t, _, _ = bytes.Cut(t, semicolon)
	return bytes.EqualFold(bytes.TrimSpace(t), jsonLDType)
}

// addElementFile adds a link to the file that an element shows, and to the file that a script shows
// there later.
func (h *Reader) addElementFile(kind schema.LinkKind) {
	src, later := h.lex.Attrs.Get(lexer.AttrSrc), h.lex.Attrs.Get(lexer.AttrDataSrc)
	h.links.addEmbedded(kind, src, h.top.part)
	if !bytes.Equal(src, later) {
		h.links.addEmbedded(kind, later, h.top.part)
	}
}

var (
	semicolon  = []byte{';'}
	dataScheme = []byte("data:")
	inputImage = []byte("image")
)

// voidTag reads an element that has no content.
func (h *Reader) voidTag(a atom.Atom, e elementRule) {
	if e.flags&block != 0 {
		h.out.Break(h.tagNow())
		return
	}
	switch a {
	case atom.Area:
		h.links.addTag(schema.KindArea, lexer.AttrHref, &h.lex.Attrs, h.top.part)
	case atom.Base:
		if h.count[idTemplate] == 0 { // a base in a shadow root is not in the document's own tree
			h.links.setBase(&h.lex.Attrs)
		}
	case atom.Img:
		h.links.addImage(&h.lex.Attrs, h.top.part)
	case atom.Input:
		if h.lex.Attrs.Has(lexer.AttrSrc) && bytes.EqualFold(h.lex.Attrs.Get(lexer.AttrType), inputImage) {
			h.links.addImage(&h.lex.Attrs, h.top.part)
		}
	case atom.Link:
		h.links.addLink(&h.lex.Attrs, h.top.part, h.outermost())
	case atom.Source:
		if h.lex.Attrs.Has(lexer.AttrSrcset) || h.lex.Attrs.Has(lexer.AttrDataSrcset) {
			h.links.addVariants(&h.lex.Attrs, h.top.part)
		} else {
			h.addElementFile(schema.KindMedia)
		}
	case atom.Embed, atom.Track:
		h.links.addEmbedded(schema.KindMedia, h.lex.Attrs.Get(lexer.AttrSrc), h.top.part)
	case atom.Frame:
		h.links.addEmbedded(schema.KindFrame, h.lex.Attrs.Get(lexer.AttrSrc), h.top.part)
	}
}

// outermost reports whether the tag is in the head or directly in the body. HTML allows canonical
// links only in heads (4.6.7). But on 3 % of pages, an image or the text of a plugin ends the head
// early, and the rest of the head is then in the body. Canonical links deeper in the body do not
// count, because users of the site may have written such links.
func (h *Reader) outermost() bool {
	for i := range h.stack {
		switch h.stack[i].atom {
		case atom.Html, atom.Head, atom.Body, atom.Noscript:
		default:
			return false
		}
	}
	return true
}

// partOf returns the part of the page to which an element's content belongs.
func (h *Reader) partOf(a atom.Atom) part {
	in := h.top.part
	switch {
	case a == atom.Nav:
		return partNav
	case a == atom.Aside:
		return partAside
	case in != partNone:
		return in
	case a == atom.Main, a == atom.Article:
		return partMain
	case a == atom.Header:
		return partHeader
	case a == atom.Footer:
		return partFooter
	case !h.lex.Attrs.Has(lexer.AttrRole):
		return in
	}
	return partOfRole[string(h.lex.Attrs.Get(lexer.AttrRole))]
}

var partOfRole = map[string]part{"navigation": partNav, "main": partMain, "banner": partHeader, "contentinfo": partFooter, "complementary": partAside}

func (h *Reader) endTag(a atom.Atom) {
	h.collect = toText
	switch a {
	case atom.A:
		h.links.closeAnchor(&h.out)
		return
	case atom.Br, atom.P:
		h.out.Break(h.tagNow())
	}
	e, known := elements[a]
	if !known || e.flags&void != 0 {
		return
	}
	switch {
	case e.flags&tabular != 0:
		h.endWithinTable(a)
	case e.flags&heading != 0:
		h.endHeading()
	case a == atom.Body || a == atom.Html:
		// Content after the end tags of html and body belongs to the body too.
	case a == atom.Template || a == atom.Noscript: // where scripts run, the content of a noscript is one text
		h.endWithin(a, 0)
	default:
		h.endWithin(a, boundary)
	}
}

// tagNow returns the Tag for text in the innermost element.
func (h *Reader) tagNow() text.Tag { return tagOf(h.top.atom) }

func tagOf(a atom.Atom) text.Tag {
	switch a {
	case atom.P:
		return text.TagParagraph
	case atom.Li, atom.Dt, atom.Dd:
		return text.TagItem
	case atom.H1:
		return text.TagHeading1
	case atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return text.TagHeading
	case atom.Figcaption, atom.Caption:
		return text.TagCaption
	case atom.Td, atom.Th:
		return text.TagCell
	case atom.Pre, atom.Listing:
		return text.TagPre
	case atom.Blockquote:
		return text.TagQuote
	}
	return text.TagNone
}
