package parse

import (
	"fmt"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/stages/parse/sniff"
)

// handler reads documents of some media types into rows.
//
// A new format, PDF say, is a function that reads it and a line in handlers: then Parse
// hands it the documents that package sniff finds to be of its types, and fetch, which
// asks Parser.Wants, stores them. A Kind of its own is one more constant.
type handler struct {
	// types are the media ranges that it reads (see package mediatype). The most specific
	// range of all handlers counts; no two may have the same.
	types []string
	// wants reports whether a document that begins with prefix, at most document.SniffLen
	// bytes, is worth storing if the config does not say. A nil prefix asks whether any
	// document of these types may be.
	wants func(prefix []byte) bool
	// read reads a document into its result. It never fails: what it cannot read it
	// passes to readOther. Any number of goroutines may call it at a time.
	read func(*job)
}

// handlers returns all handlers.
func handlers() []handler {
	return []handler{
		{[]string{"text/html", "application/xhtml+xml"}, always, readHTML},
		{[]string{"text/*"}, always, readPlain},
		{[]string{"text/xml", "application/xml", "application/*+xml", "text/*+xml", "application/feed+json"}, always, readEntries},
		{[]string{"application/gzip", "application/x-gzip", "application/x-gunzip", "application/gzipped"}, wantsGzip, readEntries},
		// Documents that are recorded with their type and not read: other types, and texts
		// that are written for programs.
		{[]string{"*/*", "text/css", "text/javascript", "text/ecmascript", "text/x-javascript", "text/calendar", "text/vcard", "text/x-vcard",
			"text/event-stream", "text/rtf", "application/vnd.mozilla.xul+xml"}, never, readOther},
	}
}

func always([]byte) bool { return true }

func never([]byte) bool { return false }

// job is a document that is being read.
type job struct {
	p    *Parser
	s    *state // reused memory; it has the response's header already
	d    *document.Document
	body []byte // of the document, bounded
	r    *Result
}

// registry finds the handler of a media type.
type registry struct {
	handlers mediatype.Ranges[handler]
	stored   mediatype.Ranges[bool] // by the config
}

// newRegistry registers handlers, and the media ranges that the config wants stored or
// skipped, whatever the handlers want.
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

// of returns the handler of a media type.
func (r *registry) of(mediaType string) handler {
	h, _ := r.handlers.Of(mediaType) // some handler reads */*
	return h
}

// Wants reports whether a document of a media type, as Sniff gives it, that begins with
// prefix is to be stored: by the config's most specific range, else by its handler. A nil
// prefix asks whether any document of the type may be.
func (p *Parser) Wants(mediaType string, prefix []byte) bool {
	if stored, ok := p.registry.stored.Of(mediaType); ok {
		return stored
	}
	return p.registry.of(mediaType).wants(prefix)
}

// IsSitemap reports whether a document of a media type, as Sniff gives it, that begins with
// prefix is an uncompressed sitemap or sitemap index, which may be as long as sitemaps.org
// allows.
func (p *Parser) IsSitemap(mediaType string, prefix []byte) bool {
	return sniff.IsSitemap(mediaType, prefix)
}

// Refuses reports whether a Content-Type field alone decides that a document is not to be
// stored: sniffing does not change its type, and no document of that type is wanted.
func (p *Parser) Refuses(contentType string) bool {
	t := mediatype.Essence(contentType)
	return t != "" && !sniff.Sniffed(t) && !p.Wants(t, nil)
}

// readOther records what the header says; it does not read the body.
func readOther(j *job) {
	j.r.Kind = Other
	j.finish()
}
