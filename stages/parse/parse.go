package parse

import (
	"fmt"
	"strings"
	"sync"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/html"
	"crawlbatch.io/crawlbatch/stages/parse/sniff"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// Version numbers the rules by which the parser makes rows. Different versions may give different
// rows for the same document.
//
//	1: the first version.
//	2: cards, JSON-LD, refresh_url, favicon, generator, sources of dates and languages, hreflang.
//	   Authors come from more places. Links include lazily loaded and more embedded files.
//	   Embedded files are dropped before other links.
//	   Sitemaps and feeds: metadata of entries, images, videos, files, links of the feed,
//	   summaries as text, kind sitemapindex. Every text type is read as plain text;
//	   document_kind.
//	   The parser itself detects charsets (undeclared, or contradicted by the bytes),
//	   undeclared languages, and types.
//	   Texts: the normal form is composed and has no soft hyphens, which changes text_digest
//	   and simhash. Main content handles captions, quoted posts and footers better. Words are
//	   those of package text, which changes word_count and topics. New: scripts, signals of
//	   quality, page_hint, term counts. A declared language is doubted if the text has none
//	   of its function words.
//	   A hidden inline element does not break its line. A cut text is a prefix.
//	   "/>" ends an element in XHTML. A canonical link within an element of the body is an
//	   ordinary link. Links without a target do not count against the limit.
//	3: format 16. A head without an end tag ends where the body begins, and a template or
//	   noscript whatever it holds. nofollow counts between commas and semicolons, too.
//	   Preloads of images may name only variants. The first base with a reference counts, even
//	   an empty one. Queries of links are in the charset of the page.
//	   Directives with spaces between them count, even if some are for search engines only.
//	4: UTF-8 with a wrong declared charset is recognized even if it is cut within a character.
//	   A picture in SVG may begin with a comment. A plain text may begin with the tag of a feed
//	   or sitemap. A document without rows of links has no outlinks.
//	   References of sitemaps and feeds with line ends, tabs or invisible characters inside are
//	   dropped, and notes after the URLs of a text sitemap.
//	5: Of a document that says noarchive, no words but the title are kept (Config.Withhold).
//	   Declarative shadow roots are content. NULs do not part words. Elements of svg and math do not
//	   count as those of HTML, such as base, link and title. Names of authors have no markup.
//	   page_hint scripts.
//
// If the definition of the fingerprint changes (simhash.Version, now 1), this Version must change
// too.
const Version = 5

// Config configures a parser. A zero value means the default.
type Config struct {
	// Canonicalizer makes the targets of links. It is required.
	Canonicalizer *urlkey.Canonicalizer
	// Agent is the crawler's product token. Directives that name this token, in meta elements or
	// X-Robots-Tag fields, count like directives for all robots. Default: none.
	Agent string
	// MaxLinks bounds the number of kept links of a page. The parser counts the links beyond
	// MaxLinks but does not keep them. Default 10,000. The lengths of their URLs have another bound
	// (html.MinURLs).
	MaxLinks int
	// MaxText bounds the kept text of a page, in bytes. Default 1 MiB.
	MaxText int
	// MaxBody bounds the part of a body that is read, in bytes. Default 50 MiB.
	MaxBody int
	// MaxSitemap bounds the part of a sitemap that is read, in bytes. A value below MaxBody means
	// MaxBody. Default 50 MiB.
	MaxSitemap int
	// Store and Skip list media ranges (see package mediatype). Wants accepts types in Store and
	// rejects types in Skip, whatever their handlers decide. The most specific media range decides.
	// Store and Skip do not affect Parse.
	Store, Skip []string
	// Withhold removes the words of documents that say noarchive (document.Withhold).
	Withhold bool
	// Terms bounds the number of kept terms of a page, with their counts. Default 128.
	Terms int
	// Topics bounds the number of topics of a page. The topics are the most frequent terms of the
	// page. Default 15.
	Topics int
}

func (c *Config) setDefaults() {
	for _, d := range [...]struct {
		v   *int
		def int
	}{{&c.MaxLinks, 10_000}, {&c.MaxText, 1 << 20}, {&c.MaxBody, 50 << 20}, {&c.MaxSitemap, sitemap.MaxBytes}, {&c.Terms, 128}, {&c.Topics, 15}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
}

// Kind is the kind of document that the parser found.
type Kind string

// The kinds of documents.
const (
	HTML    Kind = "html"
	Plain   Kind = "text"
	Sitemap Kind = "sitemap"
	Feed    Kind = "feed"
	Other   Kind = "other" // not read; only the detected type is recorded
)

// Result holds the rows of a document. It shares no memory with the document's body.
type Result struct {
	document.Parsed
	html.Notes
	Kind Kind
}

// Parser parses documents. It is safe for concurrent use.
type Parser struct {
	cfg      Config
	registry *registry
	pool     sync.Pool // holds *state
}

// New returns a Parser.
func New(cfg Config) (*Parser, error) {
	if cfg.Canonicalizer == nil {
		return nil, fmt.Errorf("parse: config has no canonicalizer")
	}
	cfg.Agent = strings.ToLower(cfg.Agent)
	cfg.setDefaults()
	r, err := newRegistry(allHandlers(), cfg.Store, cfg.Skip)
	if err != nil {
		return nil, fmt.Errorf("parse: media types: %w", err)
	}
	p := &Parser{cfg: cfg, registry: r}
	p.pool.New = func() any { return new(state) }
	return p, nil
}

// Sniff returns the media type that package sniff detects.
func (p *Parser) Sniff(contentType string, prefix []byte) string {
	return sniff.Type(contentType, prefix)
}

// state is the reusable memory of one parse.
type state struct {
	html   html.Reader
	hasher simhash.Hasher
	terms  text.Terms
	normal text.Normal
}

// maxKept bounds the memory that a state keeps for the next document, in bytes of text.
const maxKept = 4 << 20

// Parse reads a document. It never fails.
func (p *Parser) Parse(d *document.Document) *Result {
	r := &Result{Kind: Other}
	key, err := p.cfg.Canonicalizer.Plain().Canonical(d.URL, "") // without the rules for links, because this URL has answered
	if err != nil {
		key = urlkey.Key{URL: d.URL}
	}
	r.Page.URLColumns, _ = document.URLColumns(key) // a key that is not a URL has no host
	r.Page.Sent = d.Sent
	r.Page.Depth, r.Page.ParserVersion = d.Depth, Version
	r.Page.ContentBytes = int64(len(d.Body))
	r.Page.MimeType = mediatype.Essence(d.ContentType)
	r.Text.SURT, r.Text.URL = key.SURT, key.URL

	body := d.Body
	detected := sniff.Type(d.ContentType, body[:min(len(body), p.cfg.MaxBody)])
	most := p.cfg.MaxBody
	if p.IsSitemap(detected, body[:min(len(body), document.SniffLen)]) {
		most = max(most, p.cfg.MaxSitemap)
	}
	if len(body) > most {
		body, r.Cut = body[:most], true
	}
	r.Page.MimeDetected = detected

	s := p.pool.Get().(*state)
	s.html.Reset(html.Config{Agent: p.cfg.Agent, MaxText: p.cfg.MaxText, MaxLinks: p.cfg.MaxLinks})
	s.html.Header(d.Header)
	p.registry.handlerFor(detected).read(&job{p: p, s: s, d: d, body: body, r: r})
	r.Page.DocumentKind = string(r.Kind)
	if len(r.Links) == 0 && r.OverLinks > 0 { // outlinks promise rows, and Cut keeps the document from stating that it has no links
		r.BadLinks, r.OverLinks, r.Page.Outlinks, r.Cut = r.BadLinks+r.OverLinks, 0, 0, true
	}
	if r.Text.NoArchive && p.cfg.Withhold {
		document.Withhold(&r.Page, &r.Terms, &r.Text, r.Links)
	}
	if len(s.normal.Bytes) <= maxKept && s.html.Small(maxKept) {
		p.pool.Put(s)
	}
	return r
}
