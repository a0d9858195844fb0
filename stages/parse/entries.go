package parse

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/sniff"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// xmlHandler reads sitemaps and feeds; other XML is recorded only.
type xmlHandler struct{}

func (xmlHandler) types() []string {
	return []string{"text/xml", "application/xml", "application/*+xml", "text/*+xml"}
}

func (xmlHandler) wants([]byte) bool { return true }

func (xmlHandler) handle(j *job) { readEntries(j) }

// gzipHandler reads gzipped sitemaps; what else is compressed is recorded only.
type gzipHandler struct{}

func (gzipHandler) types() []string {
	return []string{"application/gzip", "application/x-gzip", "application/x-gunzip", "application/gzipped"}
}

// wants looks into the file: an archive or a log is not worth fetching.
func (gzipHandler) wants(prefix []byte) bool {
	if prefix == nil {
		return true
	}
	for range 2 {
		z, err := gzip.NewReader(bytes.NewReader(prefix))
		if err != nil {
			break
		}
		inner := make([]byte, document.SniffLen)
		n, _ := io.ReadFull(z, inner) // what was fetched of it is cut short
		prefix = inner[:n]
	}
	switch t := sniff.Type("", prefix); t {
	case "text/xml", "application/xml", "application/rss+xml", "application/atom+xml":
		return true
	case "text/plain":
		return sniff.IsURLList(prefix)
	}
	return false
}

func (gzipHandler) handle(j *job) { readEntries(j) }

// jsonFeedHandler reads JSON Feeds, which Sniff tells from other JSON.
type jsonFeedHandler struct{}

func (jsonFeedHandler) types() []string { return []string{"application/feed+json"} }

func (jsonFeedHandler) wants([]byte) bool { return true }

func (jsonFeedHandler) handle(j *job) { readEntries(j) }

// readEntries reads a sitemap or a feed. Each entry is a link, with what the entry
// says of its target; what else an entry names follows it: other languages' versions,
// images, files. A feed's links to its site, to itself, to its next page come last.
//
// sitemaps.org allows a sitemap to list URLs of its own host and folder only, unless
// robots.txt vouches for it. The rows are what the file says: frontier.follow, and the
// scope, decide which of them are ever planned.
//
// A feed's titles and summaries are its full text. It has no main content, so that no
// fingerprint, word or topic is counted for it: what it holds is its entries'.
func readEntries(j *job) {
	r := j.r
	rows := newEntryRows(j)
	var lines strings.Builder
	full := false
	sum, err := sitemap.Read(bytes.NewReader(j.body), sitemap.Limits{Charset: mediatype.Charset(j.d.ContentType)}, func(e *sitemap.Entry) bool {
		rows.entry(e)
		for _, line := range [...]string{e.Title, e.Summary} {
			if line == "" || full {
				continue
			}
			room := j.p.cfg.MaxText - lines.Len() - 1
			if full = len(line) > room; room > 0 {
				lines.WriteString(fold.Cut(line, room))
				lines.WriteByte('\n')
			}
		}
		return true
	})
	if errors.Is(err, sitemap.ErrUnknown) || err != nil && sum.Entries == 0 {
		readOther(j)
		return
	}
	r.Cut = r.Cut || sum.Cut
	r.Kind = Sitemap
	if sum.Charset != "" {
		r.Page.Charset = charset.Name(sum.Charset)
	}
	switch sum.Kind {
	case sitemap.RSS, sitemap.Atom, sitemap.JSON:
		r.Kind = Feed
		j.s.html.Feed(sum.Title, sum.Description, sum.Author, sum.Updated)
		r.Text.Full = strings.TrimSuffix(lines.String(), "\n")
		declared, source := text.Declared(sum.Lang), "feed"
		if declared == "" {
			declared, source = j.s.html.DeclaredLanguage()
		}
		r.inLanguage(text.Language(declared, r.Text.Full), declared, source)
		for _, l := range sum.Links {
			rows.feedLink(&l)
		}
	}
	j.finish()
	rows.addTo(r)
}

// entryRows makes the links of a sitemap or a feed. Unlike a page's, its references do
// not repeat, and the elements around them say nothing.
type entryRows struct {
	canon              *urlkey.Canonicalizer
	doc, surt          string
	entries, extras    int // rows that there may still be
	rows               []schema.Link
	bad, over          int
	weights            []float64 // what Weight points into, so that a row costs no allocation
	feedBase, feedBURL string    // an xml:base and what it comes to: entries share theirs
}

// entryLen is about how long an entry of a sitemap is, bytes: a first guess of how many
// rows there will be.
const entryLen = 150

func newEntryRows(j *job) *entryRows {
	n := max(j.p.cfg.MaxLinks, sitemap.MaxEntries)
	return &entryRows{
		rows: make([]schema.Link, 0, min(n, len(j.body)/entryLen)), canon: j.p.cfg.Canonicalizer, doc: j.r.Page.URL, surt: j.r.Page.SURT, entries: n, extras: n,
	}
}

// base is what an entry's references are relative to.
func (t *entryRows) base(xmlBase string) string {
	if xmlBase == "" {
		return t.doc
	}
	if t.feedBase != xmlBase {
		t.feedBase, t.feedBURL = xmlBase, t.doc
		if b, err := urlkey.WHATWG(xmlBase, t.doc); err == nil && (strings.HasPrefix(b, "http:") || strings.HasPrefix(b, "https:")) {
			t.feedBURL = b
		}
	}
	return t.feedBURL
}

// add adds a row, and returns nil where there is no room for it, or no canonical target.
func (t *entryRows) add(kind schema.LinkKind, ref, base string, room *int) *schema.Link {
	if *room == 0 {
		t.over++
		return nil
	}
	target, spelling, err := t.canon.SpelledURL(ref, base)
	if err != nil {
		t.bad++
		return nil
	}
	*room--
	t.rows = append(t.rows, schema.Link{SourceSURT: t.surt, Source: t.doc, Target: target, Kind: kind, Spelling: spelling})
	return &t.rows[len(t.rows)-1]
}

// entry adds what an entry names.
func (t *entryRows) entry(e *sitemap.Entry) {
	base := t.base(e.Base)
	kind := schema.KindSitemap
	if e.Sitemap {
		kind = schema.KindSitemapIndex
	}
	if l := t.add(kind, e.Loc, base, &t.entries); l != nil {
		l.Anchor = fold.String(e.Title, fold.MaxAnchor)
		l.LastMod, l.ChangeFreq = e.LastMod, e.ChangeFreq
		if e.Priority >= 0 {
			if len(t.weights) == cap(t.weights) {
				t.weights = make([]float64, 0, 1024)
			}
			t.weights = append(t.weights, e.Priority)
			l.Weight = &t.weights[len(t.weights)-1]
		}
	}
	for _, a := range e.Alternates {
		if l := t.add(schema.KindHreflang, a.Href, base, &t.extras); l != nil {
			l.Rel, l.Hreflang = "alternate", text.LanguageTag([]byte(a.Lang))
		}
	}
	t.refs(schema.KindImg, "", e.Images, base)
	t.refs(schema.KindMedia, "", e.Videos, base)
	t.refs(schema.KindMedia, "enclosure", e.Enclosures, base)
	if e.Comments != "" {
		if l := t.add(schema.KindLink, e.Comments, base, &t.extras); l != nil {
			l.Rel = "replies"
		}
	}
}

func (t *entryRows) refs(kind schema.LinkKind, rel string, refs []sitemap.Ref, base string) {
	for i := range refs {
		if l := t.add(kind, refs[i].Loc, base, &t.extras); l != nil {
			l.Rel, l.Anchor = rel, fold.String(refs[i].Text, fold.MaxAnchor)
		}
	}
}

// feedLink adds a link that a feed has of its own.
func (t *entryRows) feedLink(f *sitemap.FeedLink) {
	kind := schema.KindLink
	switch f.Rel {
	case "self", "next", "first", "last", "previous", "prev", "current", "prev-archive", "next-archive": // RFC 5005
		kind = schema.KindFeed
	}
	if l := t.add(kind, f.Href, t.base(f.Base), &t.extras); l != nil {
		l.Rel = fold.Cut(strings.ToLower(fold.String(f.Rel, fold.MaxRel)), fold.MaxRel)
	}
}

// addTo puts the rows behind those of the response's header.
func (t *entryRows) addTo(r *Result) {
	for i := range t.rows {
		t.rows[i].Ordinal, t.rows[i].Nofollow = int32(len(r.Links)+i), r.Nofollow
	}
	if r.Links = append(r.Links, t.rows...); len(r.Links) == len(t.rows) {
		r.Links = t.rows
	}
	r.BadLinks += t.bad
	r.OverLinks += t.over
	r.Page.Outlinks = int32(len(r.Links) + r.OverLinks)
}
