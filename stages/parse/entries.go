package parse

import (
	"bytes"
	"cmp"
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
	"crawlbatch.io/crawlbatch/stages/parse/html"
	"crawlbatch.io/crawlbatch/stages/parse/sniff"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// wantsGzip reports whether to store a gzipped file that begins with prefix. It stores sitemaps and
// feeds, also if they are compressed twice. It does not store archives and logs.
func wantsGzip(prefix []byte) bool {
	if prefix == nil {
		return true
	}
	for range 2 {
		z, err := gzip.NewReader(bytes.NewReader(prefix))
		if err != nil {
			break
		}
		inner := make([]byte, document.SniffLen)
		n, _ := io.ReadFull(z, inner) // prefix is only the start of the stream, so an error is normal
		prefix = inner[:n]
	}
	switch t := sniff.Type("", prefix); t {
	case "text/xml", "application/xml", "application/rss+xml", "application/atom+xml":
		return true
	case "text/plain":
		return sniff.IsURLList(prefix, true)
	}
	return false
}

// readEntries reads a sitemap or a feed. Each entry becomes a link. The entry's references to other
// languages, images and files follow the entry's link. The links of a feed to its site, to itself
// and to its next page come last.
//
// readEntries makes rows of all entries. The stage frontier decides later which of them are planned.
//
// The full text of a feed consists of its titles and summaries. The main content of a feed is
// empty. A feed has no words, topics or fingerprint of its own, because these belong to the pages
// to which the entries link.
func readEntries(j *job) {
	r := j.r
	rows := newEntryRows(j)
	var lines strings.Builder
	full := false
	sum, err := sitemap.Read(bytes.NewReader(j.body), sitemap.Limits{Charset: mediatype.Charset(j.d.ContentType)}, func(e *sitemap.Entry) bool {
		rows.addEntry(e)
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

// entryRows makes the links of a sitemap or a feed. It is simpler than linkList in package html: the
// references of a sitemap or feed do not repeat, and it does not matter which elements are around them.
type entryRows struct {
	canon            *urlkey.Canonicalizer
	doc, surt, asked string // canonical URL of the document, its SURT, and the URL that was sent
	entries, extras  int    // number of rows that still fit
	urls             int    // number of bytes of URLs that still fit; see html.MinURLs
	rows             []schema.Link
	bad, over        int
	weights          []float64 // the Weight of each row points into this slice, so that no row needs an allocation of its own
	xmlBase, baseURL string    // last xml:base of an entry with its URL, because most entries have the same xml:base
}

// entryLen is the typical length of a sitemap entry, in bytes, from which the parser estimates the
// number of rows.
const entryLen = 150

// refMarkup is the least number of bytes that the elements around a reference usually take. With the
// references themselves, these bytes stand for the size of the document in the bound of URLs, because
// the size of a compressed document says little.
const refMarkup = 24

func newEntryRows(j *job) *entryRows {
	n := max(j.p.cfg.MaxLinks, sitemap.MaxEntries)
	return &entryRows{
		rows: make([]schema.Link, 0, min(n, len(j.body)/entryLen)), canon: j.p.cfg.Canonicalizer, doc: j.r.Page.URL, asked: cmp.Or(j.r.Page.Sent, j.r.Page.URL), surt: j.r.Page.SURT,
		entries: n, extras: n, urls: html.MinURLs,
	}
}

// base returns the URL to which the references of an entry are relative.
func (t *entryRows) base(xmlBase string) string {
	if xmlBase == "" || t.urls <= 0 {
		return t.asked
	}
	if t.xmlBase != xmlBase {
		t.xmlBase, t.baseURL = xmlBase, t.asked
		t.urls -= len(xmlBase)
		if b, err := urlkey.WHATWG(xmlBase, t.asked); err == nil && (strings.HasPrefix(b, "http:") || strings.HasPrefix(b, "https:")) {
			t.baseURL = b
		}
	}
	return t.baseURL
}

// addLink adds a row and returns it. It returns nil if room is 0, if URLs have no room left, or if the
// reference has no canonical target.
func (t *entryRows) addLink(kind schema.LinkKind, ref, base string, room *int) *schema.Link {
	if *room == 0 || t.urls <= 0 {
		t.over++
		return nil
	}
	t.urls += html.URLsPerByte * (len(ref) + refMarkup)
	target, sent, err := t.canon.SentURL(ref, base)
	if err != nil {
		t.bad++
		t.urls -= len(base) // the attempt took as much time as a URL
		return nil
	}
	*room--
	t.urls -= len(target) + len(sent)
	t.rows = append(t.rows, schema.Link{SourceSURT: t.surt, Source: t.doc, Target: target, Kind: kind, Sent: sent})
	return &t.rows[len(t.rows)-1]
}

// addEntry adds the link of an entry, and the entry's other references.
func (t *entryRows) addEntry(e *sitemap.Entry) {
	base := t.base(e.Base)
	kind := schema.KindSitemap
	if e.Sitemap {
		kind = schema.KindSitemapIndex
	}
	if l := t.addLink(kind, e.Loc, base, &t.entries); l != nil {
		l.Anchor = fold.String(e.Title, fold.MaxAnchor)
		l.LastMod, l.ChangeFreq = schema.TimeOf(e.LastMod), e.ChangeFreq
		if e.Priority >= 0 {
			if len(t.weights) == cap(t.weights) {
				t.weights = make([]float64, 0, 1024)
			}
			t.weights = append(t.weights, e.Priority)
			l.Weight = &t.weights[len(t.weights)-1]
		}
	}
	for _, a := range e.Alternates {
		if l := t.addLink(schema.KindHreflang, a.Href, base, &t.extras); l != nil {
			l.Rel, l.Hreflang = "alternate", text.LanguageTag([]byte(a.Lang))
		}
	}
	t.refs(schema.KindImg, "", e.Images, base)
	t.refs(schema.KindMedia, "", e.Videos, base)
	t.refs(schema.KindMedia, "enclosure", e.Enclosures, base)
	if e.Comments != "" {
		if l := t.addLink(schema.KindLink, e.Comments, base, &t.extras); l != nil {
			l.Rel = "replies"
		}
	}
}

func (t *entryRows) refs(kind schema.LinkKind, rel string, refs []sitemap.Ref, base string) {
	for i := range refs {
		if l := t.addLink(kind, refs[i].Loc, base, &t.extras); l != nil {
			l.Rel, l.Anchor = rel, fold.String(refs[i].Text, fold.MaxAnchor)
		}
	}
}

// feedLink adds a link of the feed itself.
func (t *entryRows) feedLink(f *sitemap.FeedLink) {
	kind := schema.KindLink
	switch f.Rel {
	case "self", "next", "first", "last", "previous", "prev", "current", "prev-archive", "next-archive": // RFC 5005
		kind = schema.KindFeed
	}
	if l := t.addLink(kind, f.Href, t.base(f.Base), &t.extras); l != nil {
		l.Rel = fold.Cut(strings.ToLower(fold.String(f.Rel, fold.MaxRel)), fold.MaxRel)
	}
}

// addTo appends the rows to r.Links, which already has the links of the response header.
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
