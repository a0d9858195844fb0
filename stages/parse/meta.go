package parse

import (
	"bytes"
	"strings"

	"crawlbatch.io/crawlbatch/formats/directives"
	"crawlbatch.io/crawlbatch/formats/sitemap"
)

// meta is what a page says of itself in its head, and in a few places of its body.
type meta struct {
	agent string // our product token, lower case: directives may be for us alone

	title, description, keywords, author    string
	ogTitle, ogDescription, ogImage, ogType string
	lang                                    string // html lang
	metaLang                                string // http-equiv content-language and the like
	headerLang                              string // Content-Language field
	refresh                                 string // content of a meta refresh
	published, modified                     dated
	robots                                  directives.Robots
	signals                                 directives.Signals
	tdm                                     directives.TDM
}

func (m *meta) reset() {
	m.robots.Reset()
	*m = meta{agent: m.agent, robots: m.robots}
}

// dated is a date and how far its source is to be trusted: less is better.
type dated struct {
	ms   int64
	rank uint8
}

// Ranks of the sources of dates.
const (
	byArticle uint8 = iota + 1 // article:published_time
	byJSONLD
	byItemprop
	byMeta // dc.date, pubdate …
	byTime // <time pubdate>
)

// set keeps the date of the best source, the first of equals.
func (d *dated) set(value []byte, rank uint8) {
	if len(value) == 0 || d.rank != 0 && d.rank <= rank {
		return
	}
	if t, ok := sitemap.ParseTime(string(value[:min(len(value), 64)])); ok {
		*d = dated{t.UnixMilli(), rank}
	}
}

func first(s *string, value []byte, max int) {
	if *s == "" && len(value) > 0 {
		*s = fold(value, max)
	}
}

// htmlLang takes the language of the html element.
func (m *meta) htmlLang(t *tagAttrs) {
	first(&m.lang, t.get(attrLang), 64)
	first(&m.lang, t.get(attrXMLLang), 64)
}

// tag takes a meta element.
func (m *meta) tag(t *tagAttrs) {
	content := t.get(attrContent)
	if len(content) == 0 {
		return
	}
	for _, a := range [...]attr{attrName, attrProperty} {
		if name := t.get(a); len(name) > 0 && len(name) <= 64 {
			m.named(lower(name), content)
		}
	}
	if t.set(attrItemprop) {
		m.itemprop(t.val[attrItemprop], content)
	}
	if equiv := t.get(attrHTTPEquiv); len(equiv) > 0 {
		switch string(lower(equiv)) {
		case "content-language":
			first(&m.metaLang, content, 64)
		case "refresh":
			first(&m.refresh, content, maxHref)
		}
	}
}

func (m *meta) named(name, content []byte) {
	switch string(name) {
	case "description":
		first(&m.description, content, maxDescription)
	case "keywords":
		first(&m.keywords, content, maxDescription)
	case "author", "article:author_name":
		first(&m.author, content, maxShort)
	case "og:title":
		first(&m.ogTitle, content, maxTitle)
	case "og:description":
		first(&m.ogDescription, content, maxDescription)
	case "og:image", "og:image:url":
		first(&m.ogImage, content, maxHref)
	case "og:type":
		first(&m.ogType, content, 64)
	case "language", "dc.language", "dcterms.language":
		first(&m.metaLang, content, 64)
	case "article:published_time", "og:article:published_time":
		m.published.set(content, byArticle)
	case "article:modified_time", "og:article:modified_time", "og:updated_time":
		m.modified.set(content, byArticle)
	case "dc.date", "dc.date.issued", "dcterms.date", "dcterms.created", "dcterms.issued", "date", "pubdate", "publishdate",
		"publish-date", "publish_date", "datepublished", "publication_date", "parsely-pub-date", "sailthru.date",
		"article.published", "cxenseparse:recs:publishtime", "citation_publication_date", "originalpublicationdate":
		m.published.set(content, byMeta)
	case "dc.date.modified", "dcterms.modified", "last-modified", "lastmod", "datemodified", "article.updated", "revised":
		m.modified.set(content, byMeta)
	case "robots":
		m.robots.Meta(string(content))
	case "tdm-reservation":
		m.tdm.Reservation(string(content[:min(len(content), maxShort)]))
	case "tdm-policy":
		m.tdm.PolicyAt(string(content[:min(len(content), maxHref)]))
	default:
		if m.agent != "" && string(name) == m.agent {
			m.robots.Meta(string(content))
		}
	}
}

func (m *meta) itemprop(prop, value []byte) {
	switch string(prop) {
	case "datePublished":
		m.published.set(value, byItemprop)
	case "dateModified":
		m.modified.set(value, byItemprop)
	}
}

// timeTag takes a time element.
func (m *meta) timeTag(t *tagAttrs) {
	when := t.get(attrDatetime)
	if len(when) == 0 {
		return
	}
	if t.set(attrItemprop) {
		m.itemprop(t.val[attrItemprop], when)
	}
	if t.set(attrPubdate) {
		m.published.set(when, byTime)
	}
}

// jsonLD takes the dates of a JSON-LD script: the first of each key, wherever it
// stands, since what pages write there is often no JSON.
func (m *meta) jsonLD(script []byte) {
	if len(script) > 1<<20 {
		script = script[:1<<20]
	}
	m.published.set(jsonString(script, `"datePublished"`), byJSONLD)
	m.modified.set(jsonString(script, `"dateModified"`), byJSONLD)
}

// jsonString is the string that follows a key, nil if none does.
func jsonString(script []byte, key string) []byte {
	i := bytes.Index(script, []byte(key))
	if i < 0 {
		return nil
	}
	p := bytes.TrimLeft(script[i+len(key):], " \t\r\n")
	if len(p) == 0 || p[0] != ':' {
		return nil
	}
	p = bytes.TrimLeft(p[1:], " \t\r\n[")
	if len(p) == 0 || p[0] != '"' {
		return nil
	}
	p = p[1:]
	if i = bytes.IndexByte(p[:min(len(p), 64)], '"'); i < 0 {
		return nil
	}
	return p[:i]
}

// parseRefresh takes a Refresh field, or a meta refresh, apart (HTML, 4.2.5.3):
// "5; url=next.html". A refresh without a URL names the page itself.
func parseRefresh(s string) (target string, ok bool) {
	s = strings.TrimLeft(s, " \t\n\f\r")
	digits := strings.TrimLeft(s, "0123456789")
	if len(digits) == len(s) && !strings.HasPrefix(s, ".") {
		return "", false
	}
	s = strings.TrimLeft(digits, "0123456789.")
	s = strings.TrimLeft(s, " \t\n\f\r;,")
	if len(s) >= 3 && strings.EqualFold(s[:3], "url") {
		if rest := strings.TrimLeft(s[3:], " \t\n\f\r"); strings.HasPrefix(rest, "=") {
			s = strings.TrimLeft(rest[1:], " \t\n\f\r")
		}
	}
	if s == "" {
		return "", false
	}
	if q := s[0]; q == '"' || q == '\'' {
		s = s[1:]
		if i := strings.IndexByte(s, q); i >= 0 {
			s = s[:i]
		}
	}
	return s, s != ""
}
