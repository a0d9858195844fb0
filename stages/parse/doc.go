// Package parse turns a captured document into rows: what the page says of itself, its text
// and its links.
//
// In: the canonical URL that answered, the response's header, and the decoded body, of any
// type and as hostile as the web is. Out: a schema.Page with the columns that the document
// decides (those of the fetch and of the reduce stages stay empty), a schema.Text, and
// schema.Link rows in document order.
//
// Parse never fails: it leaves out what it cannot read and cuts what is too long; an
// unknown document is a page with its detected type. Time and memory are linear in the
// body, whatever it holds: deep nesting, a million attributes, binary data. Equal documents
// give equal rows. Results share no memory with the body.
//
// It is a facade over the packages below it: sniff detects the media type, the registry in
// handler.go has a reader for each, charset decodes, html reads pages (with lexer and
// jsonld), pagehint names pages without content, and text chooses the main content and
// counts words.
//
// With Config.MainText another algorithm chooses the main content (package trafilatura);
// package text does if that fails.
//
// It imports formats packages only. The fetch stage gets a Parser as a document.Parser.
package parse
