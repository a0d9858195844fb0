package parse

import (
	"strings"

	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// htmlHandler reads HTML and XHTML.
type htmlHandler struct{}

func (htmlHandler) types() []string { return []string{"text/html", "application/xhtml+xml"} }

func (htmlHandler) wants([]byte) bool { return true }

func (htmlHandler) handle(j *job) { readHTML(j.p, j.s, j.d, j.body, j.r) }

// readHTML reads HTML and XHTML.
func readHTML(p *Parser, s *state, d *Document, body []byte, r *Result) {
	r.Kind = HTML
	doc, charset := decode(body, d.ContentType)
	r.Charset, r.Page.Charset = charset, charset
	h := &s.html
	h.run(doc)
	if target, ok := parseRefresh(h.meta.refresh); ok {
		h.links.addRefresh(target, false)
	}
	all := h.out.All()
	r.Text.Full = h.out.Full(all)
	r.Text.Main = h.out.Main()
	if r.Text.Main == r.Text.Full {
		r.Text.Main = r.Text.Full // the same memory
	}
	r.Cut = r.Cut || h.out.Cut()
	s.finishText(p, r)
	s.finishMeta(p, r, all)
}

// finishText computes what follows from the text.
func (s *state) finishText(p *Parser, r *Result) {
	m := &s.html.meta
	declared := ""
	for _, tag := range [...]string{m.lang, m.headerLang, m.metaLang} {
		if declared = text.Declared(tag); declared != "" {
			break
		}
	}
	sample := r.Text.Main
	if len(sample) < 200 {
		sample = r.Text.Full
	}
	lang := text.Language(declared, sample)
	r.Text.Language, r.Page.Language, r.Page.Languages = lang, lang, lang

	s.lowered = text.Lower(s.lowered[:0], r.Text.Main)
	r.Page.TextDigest = text.Digest(s.lowered)
	r.Page.SimHash = int64(s.hasher.Of(r.Text.Main))
	r.Page.WordCount = s.terms.Count(s.lowered, lang)
	for _, t := range s.terms.Top(p.cfg.Topics) {
		r.Page.Topics = append(r.Page.Topics, t.Text)
	}
}

// finishMeta writes what the page says of itself, and its links. all is the outline's text.
func (s *state) finishMeta(p *Parser, r *Result, all string) {
	m, l := &s.html.meta, &s.html.links
	pg := &r.Page
	pg.Title, pg.Description, pg.Keywords, pg.Author = m.title, m.description, m.keywords, m.author
	pg.OGTitle, pg.OGDescription, pg.OGType = m.ogTitle, m.ogDescription, strings.ToLower(m.ogType)
	pg.PublishedAt, pg.ModifiedAt = m.published.ms, m.modified.ms
	pg.Robots, r.Nofollow, r.NoArchive = m.robots.String(), m.robots.NoFollow, m.robots.NoArchive
	if t := m.robots.UnavailableAfter; !t.IsZero() {
		pg.Unavailable = t.UnixMilli()
	}
	pg.ContentSignal, pg.TDMReserved, pg.TDMPolicy = m.signals.String(), m.tdm.Reserved, m.tdm.Policy
	if pg.Language == "" && m.lang != "" {
		pg.Language = text.Declared(m.lang)
		pg.Languages, r.Text.Language = pg.Language, pg.Language
	}

	base := l.baseURL(pg.URL)
	res := &resolver{canon: p.cfg.Canonicalizer, doc: pg.URL, base: base, seen: l.seen}
	r.Links, r.BadLinks = l.rows(res, pg.URL, pg.SURT, all, m.robots.NoFollow)
	r.OverLinks = l.over
	pg.Outlinks = int32(len(r.Links) + l.over)
	if m.ogImage != "" {
		pg.OGImage = res.target([]byte(m.ogImage), false)
	}
	pg.CanonicalURL, r.Refresh = l.canonical, l.refresh
}
