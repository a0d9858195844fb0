// Package forget removes from the records of fetch tasks what names a URL that was taken down.
//
// The input is records and captures, and the guard of the store's list of takedowns. The output is the
// same records without links to such URLs, without sitemaps at such URLs, and with null in columns that
// refer to such a URL: redirect targets, canonical URLs, images, details of errors. Texts, titles and
// anchors are content of the page that has them, and stay.
//
// Package forget imports formats packages and stages/fetch/segments.
package forget

import (
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// Sink returns a sink that cleans what it passes to the given sink. Without a guard, it is that sink.
func Sink(to segments.Sink, gone *takedown.Guard) segments.Sink {
	if gone == nil {
		return to
	}
	return &sink{to, gone}
}

type sink struct {
	to   segments.Sink
	gone *takedown.Guard
}

// Archive implements segments.Sink. The index does not name the target of a redirect that was taken
// down. The response keeps its bytes.
func (s *sink) Archive(members []byte, records int, cp *warc.Capture) error {
	if s.gone.URL(cp.Redirect) {
		cp.Redirect = ""
	}
	return s.to.Archive(members, records, cp)
}

// Emit implements segments.Sink.
func (s *sink) Emit(r *segments.Record) error {
	Clean(r, s.gone)
	return s.to.Emit(r)
}

// Clean removes from a record what names a URL that the guard recognizes.
func Clean(r *segments.Record, gone *takedown.Guard) {
	if gone == nil {
		return
	}
	url := func(columns ...*string) {
		for _, c := range columns {
			if gone.URL(*c) {
				*c = ""
			}
		}
	}
	text := func(columns ...*string) {
		for _, c := range columns {
			if *c != "" && gone.Mentions(*c) {
				*c = ""
			}
		}
	}
	r.Links = slices.DeleteFunc(r.Links, func(l schema.Link) bool { return gone.URL(l.Target) || gone.URL(l.Source) })
	r.Sitemaps = slices.DeleteFunc(r.Sitemaps, func(s schema.Sitemap) bool { return gone.URL(s.URL) || gone.URL(s.Named) })
	if f := r.Fetch; f != nil {
		if gone.URL(f.RedirectTarget) || gone.URL(f.RedirectSent) {
			f.RedirectTarget, f.RedirectSent = "", ""
		}
		url(&f.FinalURL)
		text(&f.ErrorDetail)
	}
	for i := range r.Requests {
		text(&r.Requests[i].ErrorDetail, &r.Requests[i].Warnings)
	}
	for i := range r.Captures {
		url(&r.Captures[i].FetchRedirect)
	}
	if r.Robots != nil {
		text(&r.Robots.Detail)
	}
	if p := r.Page; p != nil {
		url(&p.CanonicalURL, &p.RefreshURL, &p.OGImage, &p.OGURL, &p.TwitterImage, &p.Favicon)
		text(&p.TDMPolicy, &p.JSONLD)
	}
}
