package parse

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// bounds holds the maximum length, in bytes, of each column with text from documents.
var bounds = map[string]int{
	"title": fold.MaxTitle, "description": fold.MaxDescription, "keywords": fold.MaxDescription, "author": fold.MaxShort, "generator": fold.MaxShort,
	"og_title": fold.MaxTitle, "og_description": fold.MaxDescription, "og_type": 64, "og_site_name": fold.MaxShort, "og_locale": 64,
	"twitter_card": 64, "twitter_title": fold.MaxTitle, "twitter_description": fold.MaxDescription, "twitter_site": 16, "twitter_creator": 16,
	"json_ld": 16 << 10,
}

// urls lists the columns with canonical URLs.
var urls = map[string]bool{"canonical_url": true, "refresh_url": true, "og_image": true, "og_url": true, "twitter_image": true, "favicon": true}

// checkMeta checks the rules that every row of pages must follow.
func checkMeta(t *testing.T, r *Result) {
	t.Helper()
	for name, v := range columnsOf(reflect.ValueOf(r.Page), map[string]any{}) {
		s, ok := v.(string)
		if !ok {
			continue
		}
		if !utf8.ValidString(s) {
			t.Errorf("%s is not UTF-8: %.80q", name, s)
		}
		if strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("%s holds control characters: %.80q", name, s)
		}
		if most, ok := bounds[name]; ok && (len(s) > most || strings.TrimSpace(s) != s) {
			t.Errorf("%s of %d bytes: %.80q", name, len(s), s)
		}
		if urls[name] && (!strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") || strings.ContainsAny(s, " \n")) {
			t.Errorf("%s is not a canonical URL: %.80q", name, s)
		}
	}
	if p := &r.Page; (p.PublishedAt != 0) != (p.PublishedSource != "") || (p.ModifiedAt != 0) != (p.ModifiedSource != "") || (p.Language != "") != (p.LanguageSource != "") {
		t.Errorf("published %d by %q, modified %d by %q, language %q by %q: a value and its source come together",
			p.PublishedAt, p.PublishedSource, p.ModifiedAt, p.ModifiedSource, p.Language, p.LanguageSource)
	}
	if r.Page.JSONLD != "" {
		parsetest.JSONLD(t, r.Page.JSONLD)
	}
}

// pageColumns returns the named columns of a page's row, with "" for null.
func pageColumns(r *Result, names ...string) map[string]any {
	all := columnsOf(reflect.ValueOf(r.Page), map[string]any{})
	out := map[string]any{}
	for _, n := range names {
		if v, ok := all[n]; ok {
			out[n] = v
		} else {
			out[n] = ""
		}
	}
	return out
}

func TestWhatPagesSayOfThemselves(t *testing.T) {
	long := strings.Repeat("ä ", 3000)
	for _, tt := range []struct {
		name, page string
		header     map[string][]string
		want       map[string]any
	}{
		{"Open Graph", `<meta property=og:title content=" A&amp;B "><meta property=og:url content="/u?utm_source=x&b=1"><meta name=og:image content=//i.example/p.png>
			<meta property=og:image content=/second.png><meta property=og:type content=Article><meta property=og:site_name content=Site><meta property=og:locale content=de_DE>`, nil,
			map[string]any{"og_title": "A&B", "og_url": "https://example.com/u?b=1", "og_image": "https://i.example/p.png", "og_type": "article", "og_site_name": "Site", "og_locale": "de_DE"}},
		{"an image that is none gives way to the secure one", `<meta property=og:image content="data:image/png;base64,AA"><meta property=og:image:secure_url content=https://s.example/a.png>`, nil,
			map[string]any{"og_image": "https://s.example/a.png"}},
		{"a Twitter card", `<meta name=twitter:card content=SUMMARY><meta property=twitter:title content=T><meta name=twitter:description content=D><meta name=twitter:image:src content=t.png>
			<meta name=twitter:site content=example><meta name=twitter:creator content="https://twitter.com/AnAuthor?lang=en">`, nil,
			map[string]any{"twitter_card": "summary", "twitter_title": "T", "twitter_description": "D", "twitter_image": "https://example.com/dir/t.png", "twitter_site": "@example", "twitter_creator": "@AnAuthor"}},
		{"accounts that are none", `<meta name=twitter:site content="Our site"><meta name=twitter:creator content="https://example.com/me">`, nil,
			map[string]any{"twitter_site": "", "twitter_creator": ""}},
		{"generator, and keywords of news", `<meta name=generator content="WordPress 6.1"><meta name=news_keywords content="a, b">`, nil,
			map[string]any{"generator": "WordPress 6.1", "keywords": "a, b"}},
		{"keywords go before those of news", `<meta name=news_keywords content="a, b"><meta name=Keywords content="c">`, nil, map[string]any{"keywords": "c"}},
		{"control characters and odd white space", "<title>a\x01b\x7fc\u0085d\u200be&#x9;f</title><meta name=description content='a\x00b\n\n c'>", nil,
			map[string]any{"title": "a b c d e f", "description": "a\ufffdb c"}},
		{"what is too long is cut between runes", "<title>" + long + "</title><meta property=og:site_name content='" + strings.ReplaceAll(long, " ", "") + "'>", nil,
			map[string]any{"title": strings.TrimSpace(strings.Repeat("ä ", 341)), "og_site_name": strings.Repeat("ä", 256)}},
		{"an empty value is none", `<meta property=og:title content=" "><meta property=og:title content=second><meta name=author content>`, nil, map[string]any{"og_title": "second", "author": ""}},
		{"refresh: the field goes before the element", `<meta http-equiv=refresh content="1; url=/b">`, map[string][]string{"Refresh": {"0; url=/a"}}, map[string]any{"refresh_url": "https://example.com/a"}},
		{"refresh of the page itself", `<meta http-equiv=refresh content="60">`, nil, map[string]any{"refresh_url": ""}},
		{"canonical: the element goes before the field", `<link rel=canonical href=/b>`, map[string][]string{"Link": {`</a>; rel=canonical`}}, map[string]any{"canonical_url": "https://example.com/b"}},
		{"a canonical that is no URL gives way to the next", `<link rel=canonical href="mailto:a@b"><link rel=canonical href=/b>`, nil, map[string]any{"canonical_url": "https://example.com/b"}},
		{"a canonical of another resource", "", map[string][]string{"Link": {`</a>; rel=canonical; anchor="/other"`}}, map[string]any{"canonical_url": ""}},
		{"a canonical of a part of this one", "", map[string][]string{"Link": {`</a>; rel=canonical; anchor="#part"`}}, map[string]any{"canonical_url": "https://example.com/a"}},
		{"icon", `<link rel=apple-touch-icon href=/apple.png><link rel=mask-icon href=/mask.svg><link rel="Shortcut Icon" href=/favicon.ico><link rel=icon sizes=32x32 href=/32.png>`, nil,
			map[string]any{"favicon": "https://example.com/favicon.ico"}},
		{"icon: what is data has no URL", `<link rel=icon href="data:image/png;base64,AA"><link rel=apple-touch-icon-precomposed href=/p.png><link rel=apple-touch-icon href=/a.png>`, nil,
			map[string]any{"favicon": "https://example.com/a.png"}},
		{"no icon", `<link rel=mask-icon href=/mask.svg><link rel=iconic href=/x>`, nil, map[string]any{"favicon": ""}},
		{"template content says nothing", `<template><meta name=author content=A><meta property=og:title content=T></template>`, nil, map[string]any{"author": "", "og_title": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parsePage(t, tt.page, tt.header)
			for name, want := range tt.want {
				if got := pageColumns(r, name)[name]; got != want {
					t.Errorf("%s %.200q, want %.200q", name, got, want)
				}
			}
		})
	}
}

func TestATemplatesTitleIsNotThePages(t *testing.T) {
	r := parsePage(t, "<template><title>Tpl</title></template><title>Real</title>", nil)
	if r.Page.Title != "Real" {
		t.Errorf("title %q", r.Page.Title)
	}
}

func TestLanguageAndWhatSaysIt(t *testing.T) {
	german := strings.Repeat("Der Leuchtturm steht seit hundert Jahren auf dem Felsen vor der Küste und warnt die Schiffe. ", 5)
	russian := strings.Repeat("Это страница о том, как был построен маяк и что с ним стало потом: его историю сейчас мало кто знает, но она ещё жива. ", 5)
	for _, tt := range []struct {
		name, page string
		header     map[string][]string
		lang, from string
	}{
		{"html, then the field, then meta", "<html lang=fr><meta http-equiv=content-language content=it>", map[string][]string{"Content-Language": {"es"}}, "fra", "html"},
		{"the field", "<html lang=''><meta http-equiv=content-language content=it>", map[string][]string{"Content-Language": {"es, en"}}, "spa", "header"},
		{"a meta element", "<html lang=xx-klingon><meta http-equiv=content-language content=it>", nil, "ita", "meta"},
		{"Dublin Core", "<meta name=DC.Language content=pt-BR>", nil, "por", "meta"},
		{"the text", "<p>" + german, nil, "deu", "text"},
		{"the text, whose script refutes the declaration", "<html lang=en><p>" + russian, nil, "rus", "text"},
		{"nothing", "<p>1 2 3", nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if p := parsePage(t, tt.page, tt.header).Page; p.Language != tt.lang || p.LanguageSource != tt.from {
				t.Errorf("%q by %q, want %q by %q", p.Language, p.LanguageSource, tt.lang, tt.from)
			}
		})
	}
}

func TestAuthorsByTheOrderOfTheirSources(t *testing.T) {
	const (
		meta     = `<meta name=author content="Meta Author">`
		ld       = `<script type=application/ld+json>{"@type":"Article","author":{"name":"LD Author"}}</script>`
		other    = `<meta name=citation_author content="First Cited"><meta name=citation_author content="Second Cited"><meta name=dc.creator content="Not Me">`
		property = `<meta property=article:author content="https://facebook.com/x"><meta property=article:author content="Graph Author">`
		itemprop = `<p>by <span itemprop=author itemscope>Written by <b itemprop=name>nobody</b><span itemprop=name> Item  Author </span>, staff</span>`
		link     = `<a rel=author href=/me>Link <i>Author</i></a>`
	)
	for _, tt := range []struct{ name, page, want string }{
		{"meta author first", link + itemprop + property + ld + meta, "Meta Author"},
		{"several of them", meta + `<meta name=AUTHOR content="Second"><meta name=author content="Second">`, "Meta Author, Second"},
		{"names within names", `<meta name=citation_author content="Joanna Smith"><meta name=citation_author content="Anna Smith"><meta name=citation_author content="Ann"><meta name=citation_author content="Anna Smith">`, "Joanna Smith, Anna Smith, Ann"},
		{"names with commas", `<meta name=author content="Smith, Anna"><meta name=author content="Anna"><meta name=author content="Smith, Anna">`, "Smith, Anna, Anna"},
		{"then JSON-LD", link + itemprop + property + ld, "LD Author"},
		{"then other meta elements: those of the first name", link + itemprop + other + property, "First Cited, Second Cited"},
		{"an address is no name", link + itemprop + property, "Graph Author"},
		{"then microdata: the name within", link + itemprop, "Item Author"},
		{"microdata without a name within", `<span itemprop=author>By Jane Doe</span> and <span itemprop=author>others</span>`, "Jane Doe"},
		{"microdata of a meta element", `<meta itemprop=author content="M. D.">` + link, "M. D."},
		{"microdata that is not ended", `<div itemprop=author>Jane Doe`, "Jane Doe"},
		{"a portrait is no name", `<div itemprop=author>` + strings.Repeat("Jane writes. ", 20) + `</div>` + link, "Link Author"},
		{"then the link", link + `<a rel=author href=/b>Other</a>`, "Link Author"},
		{"what stands around a name", `<meta name=author content=" By: Jane Doe, ">`, "Jane Doe"},
		{"no name", `<meta name=author content="null"><meta name=author content="www.example.com"><a rel=author href=/me><img src=x></a>`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parsePage(t, tt.page, nil).Page.Author; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestDatesByTheOrderOfTheirSources(t *testing.T) {
	const (
		og       = `<meta property=article:published_time content=2024-01-01T12:00:00+02:00><meta property=og:updated_time content=2024-01-02>`
		ld       = `<script type=application/ld+json>{"@type":"NewsArticle","datePublished":"2024-02-01","dateModified":"2024-02-02"}</script>`
		itemprop = `<time itemprop=datePublished datetime=2024-03-01></time><meta itemprop=dateModified content=2024-03-02>`
		meta     = `<meta name=DC.date content=2024-04-01><meta http-equiv=Last-Modified content="Tue, 02 Apr 2024 00:00:00 GMT">`
		video    = `<script type=application/ld+json>{"@type":"VideoObject","uploadDate":"2024-05-01"}</script>`
		class    = `<time class="entry-date published" datetime=2024-06-01></time><time class=updated datetime=2024-06-02></time>`
		pubdate  = `<time datetime=2024-06-01 pubdate>today</time>`
	)
	for _, tt := range []struct {
		name, page, url     string
		published, modified string // expected time in RFC 3339, and its source
	}{
		{"Open Graph first", pubdate + class + video + meta + itemprop + ld + og, "", "2024-01-01T10:00:00Z open_graph", "2024-01-02T00:00:00Z open_graph"},
		{"then JSON-LD", pubdate + class + video + meta + itemprop + ld, "", "2024-02-01T00:00:00Z json_ld", "2024-02-02T00:00:00Z json_ld"},
		{"then microdata", pubdate + class + video + meta + itemprop, "", "2024-03-01T00:00:00Z microdata", "2024-03-02T00:00:00Z microdata"},
		{"then meta elements", pubdate + class + video + meta, "", "2024-04-01T00:00:00Z meta", "2024-04-02T00:00:00Z meta"},
		{"then what JSON-LD says of a video", pubdate + video, "", "2024-05-01T00:00:00Z json_ld", ""},
		{"then time elements that say so", class, "https://example.com/2024/07/01/x", "2024-06-01T00:00:00Z time", "2024-06-02T00:00:00Z time"},
		{"pubdate", pubdate, "", "2024-06-01T00:00:00Z time", ""},
		{"then the URL", "<time datetime=2024-06-01></time>", "https://example.com/2024/07/01/x", "2024-07-01T00:00:00Z url", ""},
		{"a value that is no date gives way", `<meta property=article:published_time content=yesterday><meta property=article:published_time content=0001-01-01T00:00:00Z>` + meta, "", "2024-04-01T00:00:00Z meta", "2024-04-02T00:00:00Z meta"},
		{"the epoch is a mistake", `<meta name=date content=1970-01-01>`, "", "", ""},
		{"none", "<p>2024-01-01", "https://example.com/2024/07/", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.url == "" {
				tt.url = "https://example.com/"
			}
			r := newParser(t).Parse(&document.Document{URL: tt.url, ContentType: "text/html", Body: []byte(tt.page),
				Header: func(name string) []string {
					return []string{map[string]string{"Last-Modified": "Wed, 01 May 2024 00:00:00 GMT"}[name]}
				}})
			checkMeta(t, r)
			if got := dateText(r.Page.PublishedAt, r.Page.PublishedSource); got != tt.published {
				t.Errorf("published %q, want %q", got, tt.published)
			}
			if got := dateText(r.Page.ModifiedAt, r.Page.ModifiedSource); got != tt.modified {
				t.Errorf("modified %q, want %q", got, tt.modified)
			}
		})
	}
}

func TestAccountsByTheirPages(t *testing.T) {
	for content, want := range map[string]string{
		"https://x.com/golang": "@golang", "https://twitter.com/golang/": "@golang", "//mobile.twitter.com/#!/golang": "@golang", "http://WWW.X.com/golang?s=20": "@golang",
		"x.com/golang": "@golang", "https://x.com/golang/status/123": "@golang", "@golang": "@golang", "https://netflix.com/golang": "", "https://x.com.example/golang": "",
		"https://x.com/": "", "https://x.com/intent/follow": "", "https://x.com/İİİ/": "", "//": "", "/": "",
	} {
		if got := parsePage(t, `<meta name=twitter:site content="`+content+`">`, nil).Page.TwitterSite; got != want {
			t.Errorf("%q: %q, want %q", content, got, want)
		}
	}
}

func TestALongRelIsCutBetweenWords(t *testing.T) {
	many := strings.Repeat("noopener ", 14) // text of 126 bytes
	for _, tt := range []struct {
		rel, want string
		nofollow  bool
	}{
		{many + "nofollow", strings.TrimSpace(many), true},
		{many + "no nofollower", strings.TrimSpace(many) + " no", false},
		{many + "nofollower", strings.TrimSpace(many), false},
		{strings.Repeat("x", fold.MaxRel+1) + " UGC", strings.Repeat("x", fold.MaxRel), true},
		{strings.Repeat("x", fold.MaxRel+1) + ",nofollow", strings.Repeat("x", fold.MaxRel), true},
		{strings.Repeat("é ", 1000) + "sponsored", strings.TrimSpace(strings.Repeat("é ", 43)), true},
	} {
		l := parsePage(t, `<a href=/x rel="`+tt.rel+`">x</a>`, nil).Links[0]
		if l.Rel != tt.want || l.Nofollow != tt.nofollow {
			t.Errorf("%.200q: %q, nofollow %t", tt.rel, l.Rel, l.Nofollow)
		}
	}
}

// dateText returns a date and its source as text, or "" if there is no date.
func dateText(at schema.Time, source string) string {
	if at == 0 {
		return source
	}
	return at.Time().Format(time.RFC3339) + " " + source
}
