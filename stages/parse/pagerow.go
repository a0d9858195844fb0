package parse

import "strings"

// finishMeta writes what the page says of itself, and its links. all is the outline's text.
func (s *state) finishMeta(p *Parser, r *Result, all string) {
	m, l := &s.html.meta, &s.html.links
	pg := &r.Page
	pg.Title, pg.Description, pg.Keywords, pg.Generator = m.title, m.description, m.keywords, m.generator
	if pg.Keywords == "" {
		pg.Keywords = m.newsKeywords
	}
	pg.Robots, r.Nofollow, r.NoArchive = m.robots.String(), m.robots.NoFollow, m.robots.NoArchive
	if t := m.robots.UnavailableAfter; !t.IsZero() {
		pg.Unavailable = t.UnixMilli()
	}
	pg.ContentSignal, pg.TDMReserved, pg.TDMPolicy = m.signals.String(), m.tdm.Reserved, m.tdm.Policy
	res := &resolver{canon: p.cfg.Canonicalizer, doc: pg.URL, base: l.baseURL(pg.URL), seen: l.seen}
	r.Links, r.BadLinks = l.rows(res, pg.URL, pg.SURT, all, m.robots.NoFollow)
	r.OverLinks = l.over
	pg.Outlinks = int32(len(r.Links) + l.over)
	pg.CanonicalURL, pg.RefreshURL, r.Refresh = l.canonical, l.refresh, l.refresh
	pg.Favicon = l.favicon(res)

	s.cards(r, res)
	m.ld.dates(&m.published, &m.modified)
	if r.Kind != Sitemap && r.Kind != Feed { // what those list has dates of its own
		m.published.set(dateOfPath(pg.Path), byURL)
	}
	pg.PublishedAt, pg.PublishedSource = m.published.ms, m.published.source()
	pg.ModifiedAt, pg.ModifiedSource = m.modified.ms, m.modified.source()
	pg.Author = m.pickAuthor(s.html.byline.text(all), l.relAuthor)
	pg.JSONLD = m.ld.appendJSON(func(ref string) string { return res.target([]byte(ref), false).url })
}

// cards writes what the page asks others to show of it.
func (s *state) cards(r *Result, res *resolver) {
	og, tw, pg := &s.html.meta.og, &s.html.meta.twitter, &r.Page
	pg.OGTitle, pg.OGDescription, pg.OGType = og.title, og.description, strings.ToLower(og.kind)
	pg.OGSiteName, pg.OGLocale = og.siteName, og.locale
	pg.OGImage, pg.OGURL = res.first(og.image, og.secureImage), res.first(og.url)
	pg.TwitterCard, pg.TwitterTitle, pg.TwitterDescription = strings.ToLower(tw.kind), tw.title, tw.description
	pg.TwitterSite, pg.TwitterCreator, pg.TwitterImage = tw.site, tw.creator, res.first(tw.image)
}

// first is the canonical URL of the first reference that has one.
func (r *resolver) first(refs ...string) string {
	for _, ref := range refs {
		if ref != "" {
			if t := r.target([]byte(ref), false).url; t != "" {
				return t
			}
		}
	}
	return ""
}
