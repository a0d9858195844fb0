package parse

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// pdfHandler shows how to add a format.
var pdfHandler = handler{[]string{"application/pdf"}, always, func(j *job) {
	j.r.Kind = "pdf"
	j.r.Text.Full = string(j.body[:8])
	j.finish()
}}

func TestANewFormatIsAHandlerAndALine(t *testing.T) {
	p := newParser(t)
	doc := &document.Document{URL: "https://example.com/a.pdf", ContentType: "application/pdf", Body: []byte("%PDF-1.7 …"),
		Header: func(name string) []string { return map[string][]string{"Link": {"</next>; rel=next"}}[name] }}
	if r := p.Parse(doc); r.Kind != Other || r.Page.MimeDetected != "application/pdf" || len(r.Links) != 1 || p.Wants("application/pdf", nil) || !p.Refuses("application/pdf") {
		t.Errorf("without a handler: %+v", r)
	}
	var err error
	if p.registry, err = newRegistry(append(allHandlers(), pdfHandler), nil, nil); err != nil {
		t.Fatal(err)
	}
	if r := p.Parse(doc); r.Kind != "pdf" || r.Page.DocumentKind != "pdf" || r.Text.Full != "%PDF-1.7" || len(r.Links) != 1 || !p.Wants("application/pdf", nil) || p.Refuses("application/pdf") {
		t.Errorf("with a handler: %+v", r)
	}
	if _, err := newRegistry(append(allHandlers(), pdfHandler, pdfHandler), nil, nil); err == nil || !strings.Contains(err.Error(), "application/pdf") {
		t.Errorf("two handlers of a type: %v", err)
	}
	if _, err := New(Config{Canonicalizer: p.cfg.Canonicalizer, Store: []string{"pictures"}}); err == nil || !strings.Contains(err.Error(), "pictures") {
		t.Errorf("an invalid range: %v", err)
	}
}

func TestWhichKindADocumentIs(t *testing.T) {
	for _, tt := range []struct {
		contentType, body string
		kind              Kind
		mime              string
	}{
		{"text/html", "<p>x", HTML, "text/html"},
		{"application/xhtml+xml", "<html xmlns='http://www.w3.org/1999/xhtml'/>", HTML, "application/xhtml+xml"},
		{"text/xml", "<!doctype html><title>Not found</title>", HTML, "text/html"},
		{"text/plain", "User-agent: *\nDisallow: /", Plain, "text/plain"},
		{"text/plain", "google.com, pub-1, DIRECT, f08c47fec0942fa0", Plain, "text/plain"},
		{"text/markdown", "# T", Plain, "text/markdown"},
		{"text/csv", "a,b", Plain, "text/csv"},
		{"text/plain", "https://example.com/a\nhttps://example.com/b", Sitemap, "text/plain"},
		{"text/plain", "# pages\nhttps://example.com/a", Sitemap, "text/plain"},
		{"text/plain", "https://example.com/a is a page", Plain, "text/plain"},
		{"text/plain", "<?xml version='1.0'?>\n<urlset><url><loc>/a</loc></url></urlset>", Sitemap, "application/xml"},
		{"text/plain", "<?xml version='1.0'?>\n<rss><channel><item><link>/a</link></item></channel></rss>", Feed, "application/rss+xml"},
		{"text/plain", "<!doctype html><title>T</title><p>x", Plain, "text/plain"},
		{"text/css", "a{}", Other, "text/css"},
		{"text/html", "<?xml version='1.0'?><urlset><url><loc>/a</loc></url></urlset>", Sitemap, "application/xml"},
		{"text/html", "<br />\n<b>Notice</b>: x<br />\n<?xml version='1.0'?><urlset><url><loc>/a</loc></url></urlset>", Sitemap, "application/xml"},
		{"application/octet-stream", "<?xml version='1.0'?><sitemapindex/>", Sitemap, "application/xml"},
		{"application/xml", "<rss><channel><title>T</title></channel></rss>", Feed, "application/rss+xml"},
		{"", "<feed xmlns='http://www.w3.org/2005/Atom'/>", Feed, "application/atom+xml"},
		{"application/rdf+xml", "<rdf:RDF xmlns='http://purl.org/rss/1.0/'><item rdf:about='/a'/></rdf:RDF>", Feed, "application/rdf+xml"},
		{"application/json", `{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"/a"}]}`, Feed, "application/feed+json"},
		{"application/json", `{"a":1}`, Other, "application/json"},
		{"application/xml", "<note/>", Other, "application/xml"},
		{"application/gzip", zipped("<urlset><url><loc>/a</loc></url></urlset>"), Sitemap, "application/gzip"},
		{"text/plain", zipped("https://example.com/a\n"), Sitemap, "application/x-gzip"},
		{"application/gzip", zipped("a log"), Other, "application/gzip"},
		{"application/gzip", "\x1f\x8b no", Other, "application/gzip"},
		{"application/pdf", "%PDF-1.7", Other, "application/pdf"},
	} {
		r := newParser(t).Parse(&document.Document{URL: "https://example.com/x", ContentType: tt.contentType, Body: []byte(tt.body)})
		if r.Kind != tt.kind || r.Page.DocumentKind != string(tt.kind) || r.Page.MimeDetected != tt.mime {
			t.Errorf("%q %.40q: %s of %s, want %s of %s", tt.contentType, tt.body, r.Kind, r.Page.MimeDetected, tt.kind, tt.mime)
		}
	}
}

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

// linkText returns a link as one line of text.
func linkText(l *schema.Link) string {
	s := fmt.Sprintf("%s %s", l.Kind, l.Target)
	if l.Rel != "" {
		s += " rel=" + l.Rel
	}
	if l.Hreflang != "" {
		s += " hreflang=" + l.Hreflang
	}
	if l.LastMod != 0 {
		s += " lastmod=" + l.LastMod.Time().Format("2006-01-02T15:04")
	}
	if l.ChangeFreq != "" {
		s += " " + l.ChangeFreq
	}
	if l.Weight != nil {
		s += fmt.Sprintf(" priority=%g", *l.Weight)
	}
	if l.Nofollow {
		s += " nofollow"
	}
	if l.Anchor != "" {
		s += " | " + l.Anchor
	}
	return s
}

func TestLinksSayWhatEntriesSay(t *testing.T) {
	for _, tt := range []struct {
		name, contentType, body string
		header                  map[string][]string
		want                    []string
		title, full             string
		bad                     int
	}{
		{name: "a sitemap", contentType: "application/xml", body: `<urlset>
			<url><loc>/a?utm_source=x</loc><lastmod>2024-03-05T08:30+01:00</lastmod><changefreq>Hourly</changefreq><priority>0.0</priority>
			<xhtml:link rel="alternate" hreflang="DE_at" href="//example.de/a"/><image:image><image:loc>i.png</image:loc><image:caption>An image</image:caption></image:image>
			<video:video><video:content_loc>/v.mp4</video:content_loc></video:video></url>
			<url><loc>mailto:x@example.com</loc></url><url><loc>https://other.example.org/</loc><priority>1</priority><news:news><news:title>News</news:title><news:publication_date>2024-01-01</news:publication_date></news:news></url></urlset>`,
			header: map[string][]string{"Link": {`</s2.xml>; rel="next"`}},
			want: []string{
				"header https://example.com/s2.xml rel=next",
				"sitemap https://example.com/a lastmod=2024-03-05T07:30 hourly priority=0",
				"hreflang https://example.de/a rel=alternate hreflang=de-AT",
				"img https://example.com/dir/i.png | An image",
				"media https://example.com/v.mp4",
				"sitemap https://other.example.org/ lastmod=2024-01-01T00:00 priority=1 | News",
			}, bad: 1},
		{name: "an index", contentType: "text/xml", body: `<sitemapindex><sitemap><loc>/s1.xml.gz</loc><lastmod>2024-03-05</lastmod></sitemap></sitemapindex>`,
			header: map[string][]string{"X-Robots-Tag": {"noindex, nofollow"}},
			want:   []string{"sitemapindex https://example.com/s1.xml.gz lastmod=2024-03-05T00:00 nofollow"}},
		{name: "a feed", contentType: "application/rss+xml", body: `<rss xml:base="/blog/"><channel><title>The  blog</title><link>/</link><atom:link rel="self" href="feed.xml"/>
			<item><title>One</title><link>1</link><description>&lt;p&gt;Of many&lt;/p&gt;</description><enclosure url="/1.mp3"/><comments>1#c</comments></item><item><title>Two</title><guid>https://example.com/2</guid></item></channel></rss>`,
			want: []string{
				"sitemap https://example.com/blog/1 | One",
				"media https://example.com/1.mp3 rel=enclosure",
				"link https://example.com/blog/1 rel=replies",
				"sitemap https://example.com/2 | Two",
				"link https://example.com/ rel=alternate",
				"feed https://example.com/blog/feed.xml rel=self",
			}, title: "The blog", full: "One\nOf many\nTwo"},
		{name: "text", contentType: "text/plain; charset=windows-1252", body: "one\r\ntwo caf\xE9\nhttps://example.com/no-link", full: "one\ntwo café\nhttps://example.com/no-link"},
		{name: "a list", contentType: "text/plain", body: "https://example.com/b\nhttps://example.com/b\n", want: []string{"sitemap https://example.com/b", "sitemap https://example.com/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newParser(t).Parse(&document.Document{URL: "https://example.com/dir/x", ContentType: tt.contentType, Body: []byte(tt.body),
				Header: func(name string) []string { return tt.header[name] }})
			var got []string
			for i := range r.Links {
				got = append(got, linkText(&r.Links[i]))
				if int(r.Links[i].Ordinal) != i || r.Links[i].Source != r.Page.URL || r.Links[i].SourceSURT != r.Page.SURT {
					t.Errorf("link %d: %+v", i, r.Links[i])
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("links (-want +got):\n%s", d)
			}
			if r.Page.Title != tt.title || r.Text.Full != tt.full || r.BadLinks != tt.bad || int(r.Page.Outlinks) != len(tt.want) {
				t.Errorf("title %q, text %q, %d bad links, %d outlinks", r.Page.Title, r.Text.Full, r.BadLinks, r.Page.Outlinks)
			}
		})
	}
}

// A feed has full text but no main text, so that lists of titles never become near duplicates.
func TestAFeedIsSearchableAndHasNoFingerprint(t *testing.T) {
	r := newParser(t).Parse(&document.Document{URL: "https://example.com/feed", ContentType: "application/rss+xml", Body: []byte(
		"<rss><channel><language>de-DE</language><title>T</title><description>D</description>" + strings.Repeat("<item><title>Ein Titel von vielen</title><link>/a</link></item>", 50) + "</channel></rss>")})
	if r.Text.Main != "" || r.Page.SimHash != 0 || r.Page.TextDigest != "" || r.Page.WordCount != 0 || !strings.HasPrefix(r.Text.Full, "Ein Titel von vielen\n") {
		t.Errorf("main %q, %+v", r.Text.Main, r.Page)
	}
	if r.Page.Language != "deu" || r.Text.Language != "deu" || r.Page.Description != "D" {
		t.Errorf("language %q, description %q", r.Page.Language, r.Page.Description)
	}
}

// Links to pages come first. Images and other references of entries have a separate limit.
func TestASitemapKeepsAllItsPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	images := strings.Repeat("<image:image><image:loc>/i.png</image:loc></image:image>", 900)
	var b strings.Builder
	b.WriteString("<urlset>")
	for i := range 100 {
		fmt.Fprintf(&b, "<url><loc>/p%d</loc>%s</url>", i, images)
	}
	for i := range sitemap.MaxEntries {
		fmt.Fprintf(&b, "<url><loc>/q%d</loc></url>", i)
	}
	p := newParser(t)
	d := &document.Document{URL: "https://example.com/s.xml", ContentType: "application/xml", Body: []byte(b.String())}
	r := p.Parse(d)
	checkPromises(t, p, d, r)
	pages := 0
	for i := range r.Links {
		if r.Links[i].Kind == schema.KindSitemap {
			pages++
		}
	}
	if pages != sitemap.MaxEntries || len(r.Links) != 2*sitemap.MaxEntries || r.OverLinks != 40_000 || !r.Cut {
		t.Errorf("%d pages, %d links, %d beyond the bound, cut %t", pages, len(r.Links), r.OverLinks, r.Cut)
	}
}

func TestASitemapIsReadToItsOwnBound(t *testing.T) {
	p := newParser(t)
	p.cfg.MaxBody, p.cfg.MaxSitemap = 10<<10, 30<<10
	body := strings.Repeat("<url><loc>/a</loc></url>", 4000)
	for head, want := range map[string]int{"<urlset>": (30<<10 - 8) / 24, "<rss><item><link>/f</link></item>": 1} {
		r := p.Parse(&document.Document{URL: "https://example.com/s.xml", ContentType: "application/xml", Body: []byte(head + body)})
		if !r.Cut || len(r.Links) != want {
			t.Errorf("%s: %d links, cut %t; want %d", head, len(r.Links), r.Cut, want)
		}
	}
}

// TestAListOfURLsIsRecognizedWhereverItIsCut moves the bounds of the prefix and of the list's head over
// the lines of a list.
func TestAListOfURLsIsRecognizedWhereverItIsCut(t *testing.T) {
	p := newParser(t)
	const line = "https://example.com/0123456789\n"
	for n := range len(line) {
		body := "# " + strings.Repeat("x", n) + "\n" + strings.Repeat(line, 100)
		r := p.Parse(&document.Document{URL: "https://example.com/sitemap.txt", ContentType: "text/plain", Body: []byte(body)})
		if r.Kind != Sitemap || len(r.Links) != 100 {
			t.Errorf("after a comment of %d bytes: %s with %d links", n, r.Kind, len(r.Links))
		}
		if gz := []byte(zipped(body)); !p.Wants("application/x-gzip", gz[:min(len(gz), document.SniffLen)]) {
			t.Errorf("after a comment of %d bytes: the gzipped list is not wanted", n)
		}
	}
}

// TestSitemapFiles reads files of formats/sitemap/testdata as a server would send them.
func TestSitemapFiles(t *testing.T) {
	parseSitemaps(t, parsetest.Repository(t, "formats", "sitemap", "testdata", "files"), map[string]string{
		"index.xml":     "sitemap: 3 sitemapindex",
		"list.txt.gz":   "sitemap: 3 sitemap",
		"plain.xml.gz":  "sitemap: 4 sitemap",
		"languages.xml": "sitemap: 6 hreflang, 2 sitemap",
		"images.xml":    "sitemap: 3 img, 2 sitemap",
		"videos.xml":    "sitemap: 1 img, 2 media, 1 sitemap",
		"pagemap.xml":   "sitemap: 1 img, 1 sitemap",
		"cut.xml":       "sitemap: 4 sitemap",
		"rss.xml":       "feed: 1 feed, 1 img, 2 link, 1 media, 3 sitemap",
		"rdf.xml":       "feed: 1 link, 2 sitemap",
		"atom.xml":      "feed: 2 feed, 1 link, 2 sitemap",
	})
}

// TestRealSitemaps reads the files beside the repository, if there are any.
func TestRealSitemaps(t *testing.T) {
	dir, ok := parsetest.Shared(t, "sitemaps")
	if !ok {
		return
	}
	parseSitemaps(t, dir, map[string]string{
		"sitemap.index.xml":              "sitemap: 15 sitemapindex",
		"sitemap.txt.gz":                 "sitemap: 5 sitemap",
		"xmlSitemap.gz":                  "sitemap: 5 sitemap",
		"extension/sitemap-links.xml":    "sitemap: 9 hreflang, 3 sitemap",
		"extension/sitemap-images.xml":   "sitemap: 2 img, 1 sitemap",
		"extension/sitemap-videos.xml":   "sitemap: 3 img, 4 media, 3 sitemap",
		"extension/pagemaps-sitemap.xml": "sitemap: 1 img, 2 sitemap",
		"rss/feed.rss":                   "feed: 1 link, 4 sitemap",
		"atom.xml":                       "feed: 1 feed, 1 link, 1 sitemap",
	})
}

// parseSitemaps checks, for each file of a folder, the document_kind and the number of links of
// each kind.
func parseSitemaps(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	p := newParser(t)
	for name, want := range files {
		body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		d := &document.Document{URL: "https://www.example.com/" + name, ContentType: "application/octet-stream", Body: body}
		r := p.Parse(d)
		checkPromises(t, p, d, r)
		n := map[schema.LinkKind]int{}
		for i := range r.Links {
			n[r.Links[i].Kind]++
		}
		var parts []string
		for _, k := range []schema.LinkKind{schema.KindFeed, schema.KindHreflang, schema.KindImg, schema.KindLink, schema.KindMedia, schema.KindSitemap, schema.KindSitemapIndex} {
			if n[k] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n[k], k))
			}
		}
		if got := fmt.Sprintf("%s: %s", r.Kind, strings.Join(parts, ", ")); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if prefix := body[:min(len(body), document.SniffLen)]; !p.Wants(p.Sniff("application/octet-stream", prefix), prefix) {
			t.Errorf("%s is not wanted", name)
		}
	}
}

func FuzzHandlers(f *testing.F) {
	for _, s := range []struct{ contentType, body string }{
		{"application/xml", `<urlset><url><loc>/a</loc><lastmod>2024-01-01</lastmod><image:image><image:loc>/i</image:loc></image:image></url></urlset>`},
		{"application/xml", `<sitemapindex><sitemap><loc>/a</loc></sitemap></sitemapindex>`},
		{"application/rss+xml", `<rss xml:base="/x/"><channel><title>T</title><item><link>1</link><description>&lt;p>d</description></item></channel></rss>`},
		{"application/atom+xml", `<feed xml:base="//y"><link rel="next" href="?"/><entry><link href="1"/><content>c</content></entry></feed>`},
		{"application/feed+json", `{"version":"https://jsonfeed.org/version/1","title":"T","items":[{"url":"/a"}]}`},
		{"application/gzip", zipped("<urlset><url><loc>/z</loc></url></urlset>")},
		{"text/plain", "https://example.com/a\n# b\n"},
		{"text/plain; charset=utf-16", "a line\r\nanother"},
		{"text/markdown", "# Title\n[x](y)"},
		{"image/png", "\x89PNG"},
	} {
		f.Add(s.contentType, []byte(s.body))
	}
	p := newParser(f)
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		d := &document.Document{URL: "https://example.com/a/b?c=d", ContentType: contentType, Body: body}
		r := p.Parse(d)
		checkPromises(t, p, d, r)
		for i := range r.Links {
			l := &r.Links[i]
			if len(l.Hreflang) > 64 || l.Weight != nil && !(*l.Weight >= 0 && *l.Weight <= 1) || l.LastMod < 0 {
				t.Errorf("link %d: %s", i, linkText(l))
			}
		}
		p.Wants(p.Sniff(contentType, body), body[:min(len(body), document.SniffLen)])
		if diff := cmp.Diff(r, p.Parse(d)); diff != "" {
			t.Errorf("parsed twice (-first +second):\n%s", diff)
		}
	})
}
