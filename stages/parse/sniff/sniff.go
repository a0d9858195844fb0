// Package sniff finds the media type of a document from its Content-Type field and its
// first bytes (WHATWG MIME Sniffing).
package sniff

import (
	"bytes"
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
)

// Type returns the media type of a document, without parameters. The inputs are the Content-Type
// field ("" if missing) and the first bytes, as in WHATWG MIME Sniffing (section 7). The declared
// type counts unless it is missing, unknown, or a server default.
//
// Unlike the standard, Type distinguishes feeds, sitemaps and XHTML by their root element, feeds and
// sitemaps even if they are declared as text. Other markup that is declared as text stays text. Type
// recognises binary formats even if they are declared as text, and pages even if they are declared
// as pictures. It knows more formats than the standard, and treats application/octet-stream as
// unknown.
//
// Type ignores the field X-Content-Type-Options: nosniff. The field protects browsers against
// scripts, but crawlbatch runs no scripts and stores the declared type as well. Besides, many
// servers send the field with every response.
func Type(contentType string, prefix []byte) string {
	if len(prefix) > document.SniffLen {
		prefix = prefix[:document.SniffLen]
	}
	essence := mediatype.Essence(contentType)
	if unknownTypes[essence] {
		return sniffUnknown(prefix)
	}
	switch essence {
	case "text/plain":
		switch t, root := firstRoot(prefix); t {
		case "application/xml", "application/rss+xml", "application/atom+xml":
			if beginsMarkup(root) {
				return t // servers without an entry for .xml, .rss or .atom in their table of types declare it so
			}
		}
		return plainOrNot(contentType, prefix)
	case "text/html":
		switch t := rootType(prefix); t {
		case "", "text/html", "application/xhtml+xml":
		case "text/xml": // XHTML whose root element is not in prefix, or is not html: the declared type stays
		default:
			return t
		}
		if t := typeByMagic(prefix); t != "" {
			return t
		}
		return essence
	case "text/xml", "application/xml":
		if t := rootType(prefix); t != "" {
			return t
		}
		return essence
	case "application/json", "text/json":
		if isJSONFeed(prefix) {
			return "application/feed+json"
		}
		return essence
	}
	if isMedia(essence) {
		if t := typeByMagic(prefix); t != "" {
			return t
		}
		if looksLikeHTML(afterComments(prefix)) { // SVG may begin with a comment, too
			return "text/html" // this is an error page that is declared as a picture
		}
	}
	return essence
}

// unknownTypes holds the declared types that are treated like a missing declaration.
var unknownTypes = map[string]bool{"": true, "unknown/unknown": true, "application/unknown": true, "*/*": true,
	"application/octet-stream": true, "binary/octet-stream": true, "application/x-unknown": true}

func isMedia(essence string) bool {
	return strings.HasPrefix(essence, "image/") || strings.HasPrefix(essence, "audio/") || strings.HasPrefix(essence, "video/")
}

// Sniffed reports whether Type looks at the bytes of a document with this declared type.
func Sniffed(essence string) bool {
	switch essence {
	case "text/plain", "text/html", "text/xml", "application/xml", "application/json", "text/json":
		return true
	}
	return unknownTypes[essence] || isMedia(essence)
}

// isJSONFeed reports whether a JSON text begins with the member that gives the version of JSON Feed.
func isJSONFeed(prefix []byte) bool {
	head := bytes.TrimLeft(bytes.TrimPrefix(prefix, fold.BOM), " \t\r\n")
	return len(head) > 0 && head[0] == '{' &&
		(bytes.Contains(head, []byte("jsonfeed.org/version/")) || bytes.Contains(head, []byte(`jsonfeed.org\/version\/`)))
}

// plainOrNot distinguishes text from binary data in a document that is declared as text/plain (7.2).
// Older servers declare unknown files as text/plain.
func plainOrNot(contentType string, prefix []byte) string {
	if hasBOM(prefix) || !binaryData(prefix) && !bytes.HasPrefix(prefix, pdfMark) {
		return "text/plain"
	}
	if t := typeBySignature(prefix); t != "" {
		return t
	}
	if strings.HasPrefix(strings.ToLower(mediatype.Charset(contentType)), "utf-16") {
		return "text/plain"
	}
	return "application/octet-stream"
}

var pdfMark = []byte("%PDF-")

// sniffUnknown returns the type of a document that declares no type (7.1).
func sniffUnknown(prefix []byte) string {
	if t := rootType(prefix); t != "" {
		return t
	}
	switch {
	case looksLikeHTML(prefix):
		return "text/html"
	case hasBOM(prefix):
		return "text/plain"
	}
	if t := typeBySignature(prefix); t != "" {
		return t
	}
	if binaryData(prefix) {
		return "application/octet-stream"
	}
	return "text/plain"
}

// typeByMagic returns the type of the format whose signature the document has, or "" if the
// document has no signature.
func typeByMagic(prefix []byte) string {
	if hasBOM(prefix) {
		return ""
	}
	return typeBySignature(prefix)
}

func hasBOM(p []byte) bool {
	return bytes.HasPrefix(p, fold.BOM) || bytes.HasPrefix(p, []byte{0xFE, 0xFF}) || bytes.HasPrefix(p, []byte{0xFF, 0xFE})
}

// binaryData reports whether p has a byte that never occurs in text (3, "binary data byte").
func binaryData(p []byte) bool {
	for _, c := range p {
		if c <= 8 || c == 0x0B || c >= 0x0E && c <= 0x1A || c >= 0x1C && c <= 0x1F {
			return true
		}
	}
	return false
}

// scriptable lists the tags, in lower case, with which HTML without a declared type may begin
// (7.1). HTML without a declared type may also begin with a comment.
var scriptable = []string{"!doctype html", "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p"}

// looksLikeHTML reports whether a document begins as HTML does (7.1).
func looksLikeHTML(p []byte) bool {
	p = bytes.TrimLeft(p, " \t\r\n\f")
	if len(p) < 2 || p[0] != '<' {
		return false
	}
	p = p[1:]
	if bytes.HasPrefix(p, []byte("!--")) {
		return true
	}
	for _, tag := range scriptable {
		if n := len(tag); len(p) > n && (p[n] == ' ' || p[n] == '>') && strings.EqualFold(string(p[:n]), tag) {
			return true
		}
	}
	return false
}

// afterComments returns the rest of p after the comments with which p begins, or nil if p ends in one of them.
func afterComments(p []byte) []byte {
	for {
		p = bytes.TrimLeft(p, " \t\r\n\f")
		if !bytes.HasPrefix(p, []byte("<!--")) {
			return p
		}
		_, p, _ = bytes.Cut(p, []byte("-->"))
	}
}

// rootType returns the type that the root element of a document implies, or "" if it implies none.
// A sitemap may begin with a warning of the program that makes the sitemap.
func rootType(p []byte) string {
	if t, _ := firstRoot(p); t != "" {
		return t
	}
	if lateSitemap(p) {
		return "application/xml"
	}
	return ""
}

// lateSitemap reports whether a sitemap begins after a warning. A warning consists of text and the
// few elements with which programs format warnings. A page about sitemaps may have an example of a
// sitemap. lateSitemap excludes such pages: the sitemap must have a declaration, a namespace or an
// entry, and no other element or Markdown fence before it.
func lateSitemap(p []byte) bool {
	at := rootAt(p, "<urlset")
	if i := rootAt(p, "<sitemapindex"); at < 0 || i >= 0 && i < at {
		at = i
	}
	if at < 0 {
		return false
	}
	junk, rest := p[:at], p[at:]
	if bytes.Contains(junk, []byte("```")) {
		return false
	}
	declared := bytes.Contains(junk, []byte("<?xml"))
	for {
		i := bytes.IndexByte(junk, '<')
		if i < 0 {
			break
		}
		junk = bytes.TrimPrefix(junk[i+1:], []byte("/"))
		if len(junk) == 0 || !lexer.IsLetter(junk[0]) {
			continue
		}
		n := bytes.IndexAny(junk, " \t\r\n\f/>")
		if n < 0 {
			return false
		}
		switch string(bytes.ToLower(junk[:min(n, 8)])) {
		case "br", "b", "a", "font":
		default:
			return false
		}
	}
	return declared || bytes.Contains(rest, []byte("sitemaps.org/")) || bytes.Contains(rest, []byte("google.com/schemas/sitemap")) ||
		bytes.Contains(rest, []byte("<loc"))
}

// rootAt returns the index of the first tag that begins with open, or -1 if there is no such tag.
func rootAt(p []byte, open string) int {
	for from := 0; ; {
		i := bytes.Index(p[from:], []byte(open))
		if i < 0 {
			return -1
		}
		from += i + len(open)
		if from < len(p) && lexer.EndsName(p[from]) {
			return from - len(open)
		}
	}
}

// beginsMarkup distinguishes a document from a text that begins with a tag because it is about the tag. root
// begins with the tag, without its <. In a document, the tag has an attribute, or no text follows the tag.
func beginsMarkup(root []byte) bool {
	tag, rest, closed := bytes.Cut(root, []byte(">"))
	rest = bytes.TrimLeft(rest, " \t\r\n\f")
	return bytes.IndexByte(tag, '=') >= 0 || closed && (len(rest) == 0 || rest[0] == '<')
}

// firstRoot returns the type that the first element implies, or "", and the document from this element's
// name on.
func firstRoot(p []byte) (t string, root []byte) {
	p = bytes.TrimPrefix(p, fold.BOM)
	xml, html := false, false
	for {
		p = bytes.TrimLeft(p, " \t\r\n\f")
		end := ""
		switch {
		case bytes.HasPrefix(p, []byte("<?")):
			xml = xml || bytes.HasPrefix(p, []byte("<?xml"))
			end = "?>"
		case bytes.HasPrefix(p, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(p, []byte("<!")):
			html = html || bytes.EqualFold(p[:min(len(p), len(htmlDoctype))], htmlDoctype)
			end = ">"
		case bytes.HasPrefix(p, []byte("<")):
			t, root = byRoot(p[1:], xml), p[1:]
			if html && (t == "" || t == "text/xml") {
				t = "text/html" // HTML allows a document without its root element
			}
			return t, root
		default:
			return "", nil
		}
		i := bytes.Index(p, []byte(end))
		switch {
		case i >= 0:
		case html && end == "-->":
			return "text/html", nil
		case xml:
			return "text/xml", nil
		default:
			return "", nil
		}
		p = p[i+len(end):]
	}
}

var htmlDoctype = []byte("<!doctype html")

func byRoot(tag []byte, xml bool) string {
	i := bytes.IndexAny(tag, " \t\r\n\f/>")
	if i < 0 {
		i = len(tag)
	}
	name := strings.ToLower(string(tag[:min(i, 64)]))
	if j := strings.LastIndexByte(name, ':'); j >= 0 {
		name = name[j+1:]
	}
	switch name {
	case "rss", "rdf":
		if name == "rdf" && !bytes.Contains(tag, []byte("purl.org/rss")) && !bytes.Contains(tag, []byte("channel")) {
			return "application/rdf+xml"
		}
		return "application/rss+xml"
	case "feed":
		return "application/atom+xml"
	case "urlset", "sitemapindex":
		return "application/xml"
	case "html":
		if xml && bytes.Contains(tag, []byte("http://www.w3.org/1999/xhtml")) {
			return "application/xhtml+xml"
		}
		return "text/html"
	case "svg":
		if !xml {
			return ""
		}
		return "image/svg+xml"
	}
	if xml {
		return "text/xml"
	}
	return ""
}

// IsSitemap reports whether a document is an uncompressed sitemap or sitemap index. mediaType is the
// result of Type for the prefix. The document may continue after the prefix.
func IsSitemap(mediaType string, prefix []byte) bool {
	switch mediaType {
	case "application/xml", "text/xml":
		head := bytes.ToLower(prefix[:min(len(prefix), document.SniffLen)])
		return bytes.Contains(head, []byte("urlset")) || bytes.Contains(head, []byte("sitemapindex"))
	case "text/plain":
		return IsURLList(prefix, true)
	}
	return false
}

// listHead is the number of bytes in which IsURLList looks for lines that are not URLs.
const listHead = 2048

// IsURLList reports whether all of the first lines of a text are URLs or comments (#). cut means that
// the text continues after head, so that its last line may be incomplete.
func IsURLList(head []byte, cut bool) bool {
	if len(head) > listHead {
		head, cut = head[:listHead], true
	}
	head = bytes.TrimPrefix(head, fold.BOM)
	n := 0
	for line := range bytes.Lines(head) {
		incomplete := cut && line[len(line)-1] != '\n'
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if incomplete && (bytes.HasPrefix(httpScheme, line) || bytes.HasPrefix(httpsScheme, line)) {
			continue // the beginning of a URL
		}
		if !bytes.HasPrefix(line, httpScheme) && !bytes.HasPrefix(line, httpsScheme) || bytes.IndexByte(line, ' ') >= 0 {
			return false
		}
		n++
	}
	return n > 0
}

var httpScheme, httpsScheme = []byte("http://"), []byte("https://")
