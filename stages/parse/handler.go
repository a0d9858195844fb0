package parse

import (
	"fmt"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/stages/parse/sniff"
)

// handler reads documents of some media types into rows.
//
// A new format, PDF say, is a file of this package with a handler and its line in
// handlers: Parse hands it what Sniff finds to be of its types, and fetch, which asks
// through Parser.Wants, keeps such documents from then on. No other place knows which
// types there are; a Kind of its own is a constant more.
//
// A handler has no state: any number of goroutines may use it at a time.
type handler interface {
	// types are the media ranges that it reads (see package mediatype), of types as
	// Sniff gives them. Of all handlers' ranges the most specific counts; no two may
	// have the same.
	types() []string
	// wants reports whether a document of these types that begins with prefix, at
	// most document.SniffLen bytes, is worth to be fetched whole and stored where the config
	// says nothing of its type. A nil prefix asks whether any may be.
	wants(prefix []byte) bool
	// handle reads a document into its result. It never fails: what it cannot read it
	// records as Other, by readOther.
	handle(j *job)
}

// job is a document that is being read.
type job struct {
	p    *Parser
	s    *state             // memory, reused; what the response's header says is in it already
	d    *document.Document // as it came
	body []byte             // its body, bounded
	r    *Result            // what it says
}

// handlers lists all handlers; what none of the others reads is unread's.
func handlers() []handler {
	return []handler{htmlHandler{}, plainHandler{}, xmlHandler{}, gzipHandler{}, jsonFeedHandler{}, unreadHandler{}}
}

// registry finds the handler of a media type.
type registry struct {
	handlers mediatype.Ranges[handler]
	stored   mediatype.Ranges[bool] // what the config says
}

// newRegistry registers all handlers. store and skip are media ranges that the config
// has stored, or not, whatever the handlers want.
func newRegistry(all []handler, store, skip []string) (*registry, error) {
	r := &registry{}
	named := map[string]bool{}
	for _, h := range all {
		for _, t := range h.types() {
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

// of is the handler of a media type.
func (r *registry) of(mediaType string) handler {
	if h, ok := r.handlers.Of(mediaType); ok {
		return h
	}
	return unreadHandler{}
}

// Wants reports whether a document of a media type, as Sniff gives it, that begins
// with prefix is to be stored: what the config's most specific range says, else
// what its handler wants. A nil prefix asks whether any of its type may be.
func (p *Parser) Wants(mediaType string, prefix []byte) bool {
	if stored, ok := p.registry.stored.Of(mediaType); ok {
		return stored
	}
	return p.registry.of(mediaType).wants(prefix)
}

// IsSitemap reports whether a document of a media type, as Sniff gives it, that begins
// with prefix is a sitemap or an index of them, not compressed: it may be as long as
// sitemaps.org allows.
func (p *Parser) IsSitemap(mediaType string, prefix []byte) bool {
	return sniff.IsSitemap(mediaType, prefix)
}

// Refuses reports whether a Content-Type field alone tells that a document is not to
// be stored: it names a type that no sniffing changes, and no document of it is wanted.
func (p *Parser) Refuses(contentType string) bool {
	t := mediatype.Essence(contentType)
	return t != "" && !sniff.Sniffed(t) && !p.Wants(t, nil)
}

// unreadHandler is for what is recorded with its type and not read: every type without a
// handler, and text that is written for programs.
type unreadHandler struct{}

func (unreadHandler) types() []string {
	return []string{"*/*",
		"text/css", "text/javascript", "text/ecmascript", "text/x-javascript", "text/calendar", "text/vcard", "text/x-vcard",
		"text/event-stream", "text/rtf", "application/vnd.mozilla.xul+xml"}
}

// wants: such documents are stored only where the config says so.
func (unreadHandler) wants([]byte) bool { return false }

func (unreadHandler) handle(j *job) { readOther(j) }

// readOther takes what the header says; the body is not read.
func readOther(j *job) {
	j.r.Kind = Other
	j.finish()
}
