package html

import (
	"bytes"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/directives"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/jsonld"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
)

// meta is the metadata in a page's head, and in a few places of its body.
type meta struct {
	agent string // see Config.Agent

	title, description, keywords, newsKeywords, generator string
	author                                                string // names in meta elements with the name "author", separated by nameBreak
	otherAuthor, otherAuthorBy                            string // authors in meta elements with another name, and this name
	itempropAuthor                                        string // content of the first meta element with itemprop=author
	og                                                    card   // card of Open Graph
	twitter                                               card   // card of Twitter
	lang                                                  string // attribute lang of the html element
	metaLang                                              string // language in http-equiv=content-language and similar meta elements
	headerLang                                            string // language in the Content-Language field
	refresh                                               string // content of a meta element with http-equiv=refresh
	published, modified                                   statedDate
	ld                                                    jsonld.Data
	robots                                                directives.Robots
	signals                                               directives.Signals
	tdm                                                   directives.TDM
}

// card is a summary of the page for display on other sites. Some fields belong to only one kind of
// card.
type card struct {
	kind, title, description, image, secureImage string
	url, siteName, locale                        string // only in Open Graph
	site, creator                                string // only in Twitter cards
}

func (m *meta) reset(agent string) {
	m.robots.Reset()
	m.ld.Reset()
	*m = meta{agent: agent, robots: m.robots, ld: m.ld}
}

func setFirst(s *string, value []byte, max int) {
	if *s == "" && len(value) > 0 {
		*s = fold.Bytes(value, max)
	}
}

// htmlLang reads the language of the html element.
func (m *meta) htmlLang(t *lexer.Attrs) {
	setFirst(&m.lang, t.Get(lexer.AttrLang), 64)
	setFirst(&m.lang, t.Get(lexer.AttrXMLLang), 64)
}

// readTag reads a meta element.
func (m *meta) readTag(t *lexer.Attrs) {
	content := t.Get(lexer.AttrContent)
	if len(content) == 0 {
		return
	}
	for _, a := range [...]lexer.Attr{lexer.AttrName, lexer.AttrProperty} {
		if name := t.Get(a); len(name) > 0 && len(name) <= 64 {
			m.readNamed(fold.Lower(name), content)
		}
	}
	if t.Has(lexer.AttrItemprop) {
		m.itemprop(t.Get(lexer.AttrItemprop), content)
		if string(t.Get(lexer.AttrItemprop)) == "author" {
			setFirst(&m.itempropAuthor, content, fold.MaxShort)
		}
	}
	if equiv := t.Get(lexer.AttrHTTPEquiv); len(equiv) > 0 {
		switch string(fold.Lower(equiv)) {
		case "content-language":
			setFirst(&m.metaLang, content, 64)
		case "refresh":
			setFirst(&m.refresh, content, maxHref)
		case "last-modified":
			m.modified.setBytes(content, byMeta)
		}
	}
}

// readNamed reads a meta element whose name or property is in lower case.
func (m *meta) readNamed(name, content []byte) {
	if take, ok := metaNames[string(name)]; ok {
		take(m, content)
	} else if m.agent != "" && string(name) == m.agent {
		m.robots.Meta(string(content))
	}
}

// metaNames maps the names and properties of meta elements to the functions that read such
// elements.
var metaNames = map[string]func(m *meta, content []byte){
	"description":         metaText(func(m *meta) *string { return &m.description }, fold.MaxDescription),
	"keywords":            metaText(func(m *meta) *string { return &m.keywords }, fold.MaxDescription),
	"news_keywords":       metaText(func(m *meta) *string { return &m.newsKeywords }, fold.MaxDescription),
	"generator":           metaText(func(m *meta) *string { return &m.generator }, fold.MaxShort),
	"author":              func(m *meta, content []byte) { appendName(&m.author, content) },
	"article:author":      otherAuthor("article:author"),
	"og:article:author":   otherAuthor("article:author"),
	"og:title":            metaText(func(m *meta) *string { return &m.og.title }, fold.MaxTitle),
	"og:description":      metaText(func(m *meta) *string { return &m.og.description }, fold.MaxDescription),
	"og:image":            metaText(func(m *meta) *string { return &m.og.image }, maxHref),
	"og:image:url":        metaText(func(m *meta) *string { return &m.og.image }, maxHref),
	"og:image:secure_url": metaText(func(m *meta) *string { return &m.og.secureImage }, maxHref),
	"og:type":             metaText(func(m *meta) *string { return &m.og.kind }, 64),
	"og:url":              metaText(func(m *meta) *string { return &m.og.url }, maxHref),
	"og:site_name":        metaText(func(m *meta) *string { return &m.og.siteName }, fold.MaxShort),
	"og:locale":           metaText(func(m *meta) *string { return &m.og.locale }, 64),
	"twitter:card":        metaText(func(m *meta) *string { return &m.twitter.kind }, 64),
	"twitter:title":       metaText(func(m *meta) *string { return &m.twitter.title }, fold.MaxTitle),
	"twitter:description": metaText(func(m *meta) *string { return &m.twitter.description }, fold.MaxDescription),
	"twitter:image":       metaText(func(m *meta) *string { return &m.twitter.image }, maxHref),
	"twitter:image:src":   metaText(func(m *meta) *string { return &m.twitter.image }, maxHref),
	"twitter:site":        func(m *meta, content []byte) { setAccount(&m.twitter.site, content) },
	"twitter:creator":     func(m *meta, content []byte) { setAccount(&m.twitter.creator, content) },
	"language":            metaLanguage,
	"dc.language":         metaLanguage,
	"dcterms.language":    metaLanguage,
	"robots":              func(m *meta, content []byte) { m.robots.Meta(string(content)) },
	"tdm-reservation": func(m *meta, content []byte) {
		m.tdm.Reservation(string(content[:min(len(content), fold.MaxShort)]))
	},
	"tdm-policy": func(m *meta, content []byte) { m.tdm.PolicyAt(string(content[:min(len(content), maxHref)])) },
}

var metaLanguage = metaText(func(m *meta) *string { return &m.metaLang }, 64)

func init() {
	for _, name := range strings.Fields(`article:author_name citation_author dc.creator dcterms.creator parsely-author
		sailthru.author byl article_author`) {
		metaNames[name] = otherAuthor(name)
	}
	published, modified := func(m *meta) *statedDate { return &m.published }, func(m *meta) *statedDate { return &m.modified }
	for _, dates := range []struct {
		of    func(*meta) *statedDate
		rank  uint8
		names string
	}{
		{published, byArticle, `article:published_time og:article:published_time`},
		{modified, byArticle, `article:modified_time og:article:modified_time og:updated_time`},
		{published, byMeta, `dc.date dc.date.issued dc.date.created dcterms.date dcterms.created dcterms.issued date pubdate
			pub_date publishdate publish-date publish_date datepublished publication_date parsely-pub-date
			sailthru.date article.published article_date_original cxenseparse:recs:publishtime
			citation_publication_date citation_date originalpublicationdate`},
		{modified, byMeta, `dc.date.modified dcterms.modified last-modified lastmod datemodified article.updated
			article_date_updated revised`},
	} {
		for name := range strings.FieldsSeq(dates.names) {
			metaNames[name] = func(m *meta, content []byte) { dates.of(m).setBytes(content, dates.rank) }
		}
	}
}

// metaText returns a function that sets a field to the first text, cut to max bytes, and ignores
// later texts.
func metaText(field func(*meta) *string, max int) func(*meta, []byte) {
	return func(m *meta, content []byte) { setFirst(field(m), content, max) }
}

// otherAuthor returns a function that reads an author from meta elements with the given name, such
// as article:author. If several elements have this name, the function collects all their authors.
// It does nothing if elements with another name have already given an author.
func otherAuthor(name string) func(*meta, []byte) {
	return func(m *meta, content []byte) {
		if m.otherAuthor == "" || m.otherAuthorBy == name {
			appendName(&m.otherAuthor, content)
			m.otherAuthorBy = name
		}
	}
}

// setAccount reads the name of a Twitter account, with or without @, or the URL of its page at
// twitter.com or x.com. It writes the name to s in the form @example. Names have at most 15
// letters, digits and underscores.
func setAccount(s *string, content []byte) {
	if *s != "" {
		return
	}
	name := strings.TrimRight(fold.Bytes(content, 128), "/")
	if i := strings.IndexByte(name, '/'); i >= 0 {
		if i = strings.Index(name, "//"); i >= 0 {
			name = name[i+2:]
		}
		host, path, _ := strings.Cut(name, "/")
		host = strings.ToLower(host)
		host = strings.TrimPrefix(strings.TrimPrefix(host, "www."), "mobile.")
		if host != "twitter.com" && host != "x.com" {
			return
		}
		name, _, _ = strings.Cut(strings.TrimPrefix(path, "#!/"), "/") // an old form of the URL
		switch strings.ToLower(name) {
		case "hashtag", "home", "i", "intent", "search", "share":
			return // not an account
		}
	}
	name, _, _ = strings.Cut(strings.TrimLeft(name, "@ "), "?")
	for i := range len(name) {
		if c := name[i]; !lexer.IsLetter(c) && (c < '0' || c > '9') && c != '_' || i >= 15 {
			return
		}
	}
	if name != "" {
		*s = "@" + name
	}
}

// nameBreak separates the names of a list under construction. Names may contain commas but no line
// breaks.
const nameBreak = "\n"

// appendName adds a name to a list. If the text is not a name or the list already has the name,
// appendName does nothing.
func appendName(list *string, content []byte) {
	name := cleanName(fold.Bytes(content, fold.MaxShort))
	switch {
	case name == "":
	case *list == "":
		*list = name
	case len(*list)+strings.Count(*list, nameBreak)+len(name)+len(", ") <= fold.MaxShort && !slices.Contains(strings.Split(*list, nameBreak), name):
		*list += nameBreak + name
	}
}

// itemprop reads a microdata property that has its value in an attribute.
func (m *meta) itemprop(prop, value []byte) {
	switch string(prop) {
	case "datePublished":
		m.published.setBytes(value, byItemprop)
	case "dateModified":
		m.modified.setBytes(value, byItemprop)
	}
}

// timeTag reads a time element. The element gives the page's date if it has microdata, the
// attribute pubdate, or a class that microformats or publishing systems use for this date.
func (m *meta) timeTag(t *lexer.Attrs) {
	when := t.Get(lexer.AttrDatetime)
	if len(when) == 0 {
		return
	}
	if t.Has(lexer.AttrItemprop) {
		m.itemprop(t.Get(lexer.AttrItemprop), when)
	}
	if t.Has(lexer.AttrPubdate) {
		m.published.setBytes(when, byTime)
	}
	if !t.Has(lexer.AttrClass) {
		return
	}
	var published, modified bool
	for w := range bytes.FieldsFuncSeq(t.Get(lexer.AttrClass)[:min(len(t.Get(lexer.AttrClass)), fold.MaxShort)], fold.IsSpace) {
		switch string(w) {
		case "published", "dt-published", "entry-date":
			published = true
		case "updated", "dt-updated":
			modified = true
		}
	}
	if published {
		m.published.setBytes(when, byTime)
	} else if modified {
		m.modified.setBytes(when, byTime)
	}
}

// parseRefresh returns the URL of a Refresh field or a meta refresh, such as "5; url=next.html"
// (HTML, 4.2.5.3). If the text has no URL, the page reloads itself, and the result is false.
func parseRefresh(s string) (target string, ok bool) {
	s = strings.TrimLeft(s, " \t\n\f\r")
	digits := strings.TrimLeft(s, "0123456789")
	if len(digits) == len(s) && !strings.HasPrefix(s, ".") {
		return "", false
	}
	digits = strings.TrimLeft(digits, "0123456789.")
	s = strings.TrimLeft(digits, " \t\n\f\r;,")
	if len(s) == len(digits) {
		return "", false // there is no separator after the seconds
	}
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
