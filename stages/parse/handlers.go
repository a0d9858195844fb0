package parse

import (
	"bytes"
	"errors"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// handler reads a document of its kind into r. body is the document's, bounded.
type handler func(p *Parser, s *state, d *Document, body []byte, r *Result)

// handlers is the registry: the one place that knows which media type is read by what.
var handlers = map[string]handler{
	"text/html":             readHTML,
	"application/xhtml+xml": readHTML,
	"text/plain":            readPlain,
	"text/markdown":         readPlain,
	"text/xml":              readXML,
	"application/xml":       readXML,
	"application/rss+xml":   readXML,
	"application/atom+xml":  readXML,
	"application/rdf+xml":   readXML,
	"application/x-rss+xml": readXML,
	"application/gzip":      readXML,
	"application/x-gzip":    readXML,
	"application/x-gunzip":  readXML,
}

// handlerOf is what reads a media type; other types are recorded only.
func handlerOf(mediaType string) handler {
	if h, ok := handlers[mediaType]; ok {
		return h
	}
	return readOther
}

// readOther takes what the header says; the body is not read.
func readOther(p *Parser, s *state, _ *Document, _ []byte, r *Result) {
	s.finishMeta(p, r, "")
}

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
	r.Text.Main = p.mainText(h, doc)
	if r.Text.Main == r.Text.Full {
		r.Text.Main = r.Text.Full // the same memory
	}
	r.Cut = r.Cut || h.out.Cut()
	s.finishText(p, r)
	s.signals(r, doc)
	s.finishMeta(p, r, all)
}

// mainText chooses the main content of a document that has been read.
func (p *Parser) mainText(h *htmlPass, doc []byte) string {
	if p.cfg.MainText != nil {
		if lines, err := p.cfg.MainText(doc); err == nil {
			return cut(lines, p.cfg.MaxText)
		}
	}
	return h.out.Main()
}

// readPlain reads plain text: every line is a block. A list of URLs is a sitemap.
func readPlain(p *Parser, s *state, d *Document, body []byte, r *Result) {
	if urlList(body) {
		readXML(p, s, d, body, r)
		return
	}
	r.Kind = Plain
	doc, charset := decode(body, d.ContentType)
	r.Charset, r.Page.Charset = charset, charset
	out := &s.html.out
	out.Lines(bytes.ReplaceAll(doc, []byte{0}, nil))
	out.Break(text.TagNone)
	r.Text.Full = out.Full(out.All())
	r.Text.Main = r.Text.Full
	r.Cut = r.Cut || out.Cut()
	s.finishText(p, r)
	s.finishMeta(p, r, "")
}

// urlList reports whether a text begins with lines that are URLs, and only those.
func urlList(body []byte) bool {
	head := bytes.TrimPrefix(body[:min(len(body), 2048)], utf8BOM)
	n := 0
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if !bytes.HasPrefix(line, []byte("http://")) && !bytes.HasPrefix(line, []byte("https://")) || bytes.IndexByte(line, ' ') >= 0 {
			return false
		}
		n++
	}
	return n > 0
}

// readXML reads sitemaps and feeds; other XML is recorded only.
func readXML(p *Parser, s *state, _ *Document, body []byte, r *Result) {
	l := &s.html.links
	l.max = max(l.max, 2*sitemap.MaxEntries)
	var titles []string
	room := p.cfg.MaxText
	sum, err := sitemap.Read(bytes.NewReader(body), sitemap.Limits{}, func(e *sitemap.Entry) bool {
		if raw := l.add(schema.KindSitemap, []byte(e.Loc), partNone); raw != nil && e.Title != "" {
			title := foldString(e.Title, maxTitle)
			raw.alt = l.keep([]byte(cut(title, maxAnchor)))
			if room -= len(title) + 1; room > 0 {
				titles = append(titles, title)
			}
		}
		for _, a := range e.Alternates {
			l.add(schema.KindHreflang, []byte(a.Href), partNone)
		}
		return true
	})
	if errors.Is(err, sitemap.ErrUnknown) || err != nil && sum.Entries == 0 {
		readOther(p, s, nil, nil, r)
		return
	}
	r.Cut = r.Cut || sum.Cut
	r.Kind = Sitemap
	if sum.Kind == sitemap.RSS || sum.Kind == sitemap.Atom {
		r.Kind = Feed
		s.html.meta.title = foldString(sum.Title, maxTitle)
		s.html.meta.lang = cut(sum.Lang, 64)
		s.html.meta.modified.ms = sum.Updated
		r.Text.Full = strings.Join(titles, "\n")
	}
	s.finishMeta(p, r, "")
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
	s.normal.Of(r.Text.Main)
	lang := s.language(declared, sample)
	r.Text.Language, r.Page.Language, r.Page.Languages = lang, lang, lang
	r.Page.TextDigest = text.Digest(s.normal.Bytes)
	r.Page.SimHash = int64(s.hasher.Of(string(s.normal.Bytes)))
	s.counts(p, r)
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
