// Package parse turns a captured document into rows: what the page says of itself,
// its text, its links.
//
// In: the canonical URL that answered, the response's header, and the decoded body,
// of any type and as hostile as the web is. Out: a schema.Page with the columns that
// the document decides (those of the fetch and of the reduce stages stay empty), a
// schema.Text and schema.Link rows in document order.
//
// It promises that Parse never fails: what cannot be read is left out, what is too
// long is cut, and a document of no known kind is a page with its detected type. Time
// and memory are linear in the body, whatever it holds: deep nesting, a million
// attributes, bytes that are no text. Equal documents give equal rows. Results share
// no memory with the body.
//
// It is a facade: package sniff tells the media type, the registry in handler.go has a
// reader for each, charset decodes, html reads pages (over lexer and jsonld), pagehint
// names pages without content, and text chooses the main content and counts words.
//
// With Config.MainText another program chooses the main content (package trafilatura);
// where that fails, package text does.
//
// It imports formats packages only. Stage fetch gets a Parser as a document.Parser.
package parse
