// Package parse turns a captured document into rows: the page's statements about itself, its text
// and its links.
//
// The input is the canonical URL of the response, the response header, and the decoded body. The
// body may have any type and may be hostile. The output is a schema.Page, a schema.Text, and rows
// of schema.Link in document order. The Page has only the columns that depend on the document. The
// columns of the fetch and reduce stages stay empty.
//
// Parsing never fails. The parser omits unreadable parts and shortens texts that are too long. A
// document of another type becomes a page without text, with its detected type. Time and memory grow
// linearly with the body, even for deep nesting, a million attributes or binary data. The URLs of the
// links, canonical and as they are linked, have a bound of their own (html.MinURLs and html.URLsPerByte), because a
// base of some kilobytes makes every reference longer; links beyond the bound are only counted. A
// compressed sitemap or feed counts with its decompressed length. Equal documents give equal rows.
// Results share no memory with the body.
//
// Package parse combines the packages below it. Package sniff detects the media type. The registry
// in handler.go has a handler for each type. Package charset decodes the body. Package html reads
// pages, with packages lexer and jsonld. Package pagehint labels pages without content. Package
// text chooses the main content and counts words.
//
// Package parse imports only formats packages. The fetch stage uses a Parser through the interface
// document.Parser.
package parse
