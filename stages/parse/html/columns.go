package html

import (
	"cmp"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// Header reads the response header fields that describe the document.
func (h *Reader) Header(get func(name string) []string) {
	if get == nil {
		return
	}
	each := func(name string, take func(value string)) {
		for _, v := range get(name) {
			take(v)
		}
	}
	each("X-Robots-Tag", func(v string) { h.meta.robots.Field(v, h.meta.agent) })
	each("Content-Signal", h.meta.signals.Add)
	each("TDM-Reservation", h.meta.tdm.Reservation)
	each("TDM-Policy", h.meta.tdm.PolicyAt)
	each("Link", h.links.addHeader)
	for _, v := range get("Refresh") {
		if target, ok := parseRefresh(v); ok {
			h.links.addRefresh(target, true)
			break
		}
	}
	for _, v := range get("Content-Language") {
		if h.meta.headerLang == "" {
			h.meta.headerLang = fold.Cut(v, 64)
		}
	}
}

// Feed records the statements of a feed about itself. If updated is zero, the time is not known.
func (h *Reader) Feed(title, description, author string, updated time.Time) {
	m := &h.meta
	m.title, m.description, m.author = fold.String(title, fold.MaxTitle), fold.String(description, fold.MaxDescription), fold.String(author, fold.MaxShort)
	m.modified.at = schema.TimeOf(updated)
}

// Notes holds results of the reader that have no column.
type Notes struct {
	Refresh   string // canonical target of a Refresh field or meta refresh; "" if there is none
	Nofollow  bool   // whether the page asks robots to follow none of its links
	BadLinks  int    // number of links whose reference has another scheme or is not a URL
	OverLinks int    // number of links beyond Config.MaxLinks, or beyond the bound of their URLs (see MinURLs)
}

// Fill writes the columns and links that the document states. p already has the columns that depend
// on the URL. list is true for a document that lists pages, such as a sitemap or a feed. In such a
// document, a date in the URL is not the date of the document.
func (h *Reader) Fill(p *document.Parsed, canon *urlkey.Canonicalizer, fetched time.Time, list bool) (n Notes) {
	m, l, pg := &h.meta, &h.links, &p.Page
	pg.Title, pg.Description, pg.Keywords, pg.Generator = m.title, m.description, cmp.Or(m.keywords, m.newsKeywords), m.generator
	pg.Robots, n.Nofollow, p.Text.NoArchive = m.robots.String(), m.robots.NoFollow, m.robots.NoArchive
	pg.Indexable = m.robots.Indexable(fetched)
	if t := m.robots.UnavailableAfter; !t.IsZero() {
		pg.Unavailable = schema.TimeOf(t)
	}
	pg.ContentSignal, pg.TDMReserved, pg.TDMPolicy = m.signals.String(), m.tdm.Reserved, m.tdm.Policy
	queries := charset.NewQueryEncoder(h.charset)
	asked := cmp.Or(pg.Sent, pg.URL)
	res := &resolver{canon: canon, doc: asked, base: l.baseURL(asked, queries), queries: queries, room: MinURLs + URLsPerByte*h.size, seen: l.seen}
	p.Links, n.BadLinks = l.makeRows(res, pg.URL, pg.SURT, h.all, m.robots.NoFollow)
	n.OverLinks = l.over
	pg.Outlinks = int32(len(p.Links) + l.over)
	pg.CanonicalURL, pg.RefreshURL, n.Refresh = l.canonical, l.refresh, l.refresh
	if own, err := canon.URL(pg.URL, ""); err == nil && own == pg.CanonicalURL {
		pg.CanonicalURL = pg.URL // the page names itself, but the rules for links have changed its URL
	}
	pg.Favicon = l.favicon(res)

	m.writeCards(pg, res)
	m.ldDates()
	if !list {
		m.published.keepBest(dateOfPath(pg.Path), byURL)
	}
	pg.PublishedAt, pg.PublishedSource = m.published.at, m.published.source()
	pg.ModifiedAt, pg.ModifiedSource = m.modified.at, m.modified.source()
	pg.Author = m.pickAuthor(h.byline.bylineText(h.all), l.relAuthor)
	pg.JSONLD = m.ld.Column(func(ref string) string { return res.resolveTarget([]byte(ref), false).url })
	h.all = ""
	return n
}

// writeCards writes the columns of Open Graph and Twitter cards.
func (m *meta) writeCards(pg *schema.Page, res *resolver) {
	og, tw := &m.og, &m.twitter
	pg.OGTitle, pg.OGDescription, pg.OGType = og.title, og.description, strings.ToLower(og.kind)
	pg.OGSiteName, pg.OGLocale = og.siteName, og.locale
	pg.OGImage, pg.OGURL = res.firstCanonical(og.image, og.secureImage), res.firstCanonical(og.url)
	pg.TwitterCard, pg.TwitterTitle, pg.TwitterDescription = strings.ToLower(tw.kind), tw.title, tw.description
	pg.TwitterSite, pg.TwitterCreator, pg.TwitterImage = tw.site, tw.creator, res.firstCanonical(tw.image)
}

// firstCanonical returns the canonical URL of the first reference that has one.
func (r *resolver) firstCanonical(refs ...string) string {
	for _, ref := range refs {
		if ref != "" {
			if t := r.resolveTarget([]byte(ref), false).url; t != "" {
				return t
			}
		}
	}
	return ""
}

// DeclaredLanguage returns the language that the document declares (ISO-639-3), and the place of
// the declaration. The method looks in the html element, then in Content-Language, then in meta
// elements.
func (h *Reader) DeclaredLanguage() (code, source string) {
	m := &h.meta
	for _, d := range [...]struct{ tag, source string }{{m.lang, "html"}, {m.headerLang, "header"}, {m.metaLang, "meta"}} {
		if code = text.Declared(d.tag); code != "" {
			return code, d.source
		}
	}
	return "", ""
}
