package parse

import (
	"fmt"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/stages/parse/sniff"
)

// handler reads documents of some media types into rows.
//
// To support a new format, such as PDF, write a handler for the format, and add it to allHandlers.
// Parse calls handler.read if package sniff detects one of the handler's types. The fetch stage asks
// Parser.Wants whether to store documents of these types. If no existing Kind fits the format, add a
// constant.
type handler struct {
	// types lists the media ranges that the handler reads (see package mediatype). The most
	// specific range of all handlers wins. No two handlers may have the same range.
	types []string
	// wants reports whether to store a document that begins with prefix. It is not called if the
	// config already accepts or skips the document's type. The prefix has at most document.SniffLen
	// bytes. With a nil prefix, wants reports whether any document of these types may be stored.
	wants func(prefix []byte) bool
	// read reads a document into its result and never fails. If the document is unreadable, read
	// calls readOther. read is safe for concurrent use.
	read func(*job)
}

// allHandlers returns all handlers.
func allHandlers() []handler {
	return []handler{
		{[]string{"text/html", "application/xhtml+xml"}, always, readHTML},
		{[]string{"text/*"}, always, readPlain},
		{[]string{"text/xml", "application/xml", "application/*+xml", "text/*+xml", "application/feed+json"}, always, readEntries},
		{[]string{"application/gzip", "application/x-gzip", "application/x-gunzip", "application/gzipped"}, wantsGzip, readEntries},
		// The parser does not read other types, or texts for programs. It only records their type.
		{[]string{"*/*", "text/css", "text/javascript", "text/ecmascript", "text/x-javascript", "text/calendar", "text/vcard", "text/x-vcard",
			"text/event-stream", "text/rtf", "application/vnd.mozilla.xul+xml"}, never, readOther},
	}
}

func always([]byte) bool { return true }

func never([]byte) bool { return false }

// job is a document that is being read.
type job struct {
	p    *Parser
	s    *state // reused memory, which already holds the data of the response header
	d    *document.Document
	body []byte // the document's body, cut at the bound
	r    *Result
}

// registry finds the handler of a media type.
type registry struct {
	handlers mediatype.Ranges[handler]
	stored   mediatype.Ranges[bool] // true for media ranges that the config stores, false for media ranges that the config skips
}

// newRegistry registers the handlers. It also registers the media ranges that the config stores or
// skips. The ranges of the config override the handlers.
func newRegistry(all []handler, store, skip []string) (*registry, error) {
	r := &registry{}
	named := map[string]bool{}
	for _, h := range all {
		for _, t := range h.types {
			if named[t] {
				return nil, fmt.Errorf("two handlers read %s", t)
			}
			named[t] = true
			if err := r.handlers.Set(t, h); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range store {
		if err := r.stored.Set(t, true); err != nil {
			return nil, err
		}
	}
	for _, t := range skip {
		if err := r.stored.Set(t, false); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// handlerFor returns the handler of a media type.
func (r *registry) handlerFor(mediaType string) handler {
	h, _ := r.handlers.Lookup(mediaType) // Lookup finds a handler for every type, because one handler reads */*
	return h
}

// Wants reports whether to store a document that begins with prefix and has the media type that
// Sniff returned. The most specific range of the config decides. If no range matches, the handler
// decides. With a nil prefix, Wants reports whether any document of the type may be stored.
func (p *Parser) Wants(mediaType string, prefix []byte) bool {
	if stored, ok := p.registry.stored.Lookup(mediaType); ok {
		return stored
	}
	return p.registry.handlerFor(mediaType).wants(prefix)
}

// IsSitemap reports whether a document is an uncompressed sitemap or sitemap index. The document
// begins with prefix and has the media type that Sniff returned. The caller may accept a longer
// body for a sitemap, up to the limit of sitemaps.org.
func (p *Parser) IsSitemap(mediaType string, prefix []byte) bool {
	return sniff.IsSitemap(mediaType, prefix)
}

// Refuses reports whether the Content-Type field alone is enough to reject the document. The field
// is enough if sniffing cannot change the type and the parser wants no document of the type.
func (p *Parser) Refuses(contentType string) bool {
	t := mediatype.Essence(contentType)
	return t != "" && !sniff.Sniffed(t) && !p.Wants(t, nil)
}

// readOther records the statements of the header, without reading the body.
func readOther(j *job) {
	j.r.Kind = Other
	j.finish()
}
