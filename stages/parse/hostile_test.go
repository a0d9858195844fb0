package parse

import (
	"bytes"
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// checkPromises checks the promises that every result must keep.
func checkPromises(t *testing.T, p *Parser, d *document.Document, r *Result) {
	t.Helper()
	checkMeta(t, r)
	for name, s := range map[string]string{"main": r.Text.Main, "full": r.Text.Full, "topics": strings.Join(r.Page.Topics, " ")} {
		if !utf8.ValidString(s) {
			t.Errorf("%s is not UTF-8: %.80q", name, s)
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }) {
			t.Errorf("%s holds control characters: %.80q", name, s)
		}
	}
	if n := len(r.Text.Full); n > p.cfg.MaxText {
		t.Errorf("text of %d bytes", n)
	}
	if len(r.Text.Main) > len(r.Text.Full) {
		t.Errorf("main text of %d bytes in a full text of %d", len(r.Text.Main), len(r.Text.Full))
	}
	if int(r.Page.Outlinks) != len(r.Links)+r.OverLinks {
		t.Errorf("%d outlinks, %d links and %d beyond the limit", r.Page.Outlinks, len(r.Links), r.OverLinks)
	}
	if r.Page.Outlinks > 0 && len(r.Links) == 0 {
		t.Errorf("%d outlinks without a row", r.Page.Outlinks)
	}
	for i := range r.Links {
		l := &r.Links[i]
		if int(l.Ordinal) != i || len(l.Anchor) > fold.MaxAnchor || len(l.Rel) > fold.MaxRel || !utf8.ValidString(l.Anchor) || !utf8.ValidString(l.Rel) ||
			!strings.HasPrefix(l.Target, "http") || len(l.Hreflang) > text.MaxLanguageTag || len(r.Links) > max(p.cfg.MaxLinks, 2*sitemap.MaxEntries) {
			t.Errorf("link %d: %+v", i, *l)
		}
	}
}

func TestHostilePagesStayWithinBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	var attrs, formats strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&attrs, " a%d=1", i)
	}
	for i := range 400 {
		fmt.Fprintf(&formats, "<b a=%d>", i)
	}
	tests := []struct {
		name, body string
		links      int
		text       string // text at the end of the full text
	}{
		{"nesting", many("<div>", 300_000) + "<a href=/x>deep</a>", 1, "deep"},
		{"nesting that is ended", many("<div>", 300_000) + many("</div>", 300_000) + "end", 0, "end"},
		{"end tags that match nothing within many open elements", many("<section>", 600) + many("</article>", 300_000) + "end", 0, "end"},
		{"lists in lists", many("<ul><li>", 200_000) + "end", 0, "end"},
		{"tables in tables", many("<table><tr><td>", 100_000) + "end", 0, "end"},
		{"formatting elements that a tree clones for each paragraph", "<p>" + formats.String() + many("<p>x", 300_000), 0, "x"},
		{"a million attributes", "<a href=/x" + attrs.String() + ">many</a>", 1, "many"},
		{"an attribute without end", `<p>text</p><a href="` + many("x", 5_000_000), 0, "text"},
		{"a comment without end", "<p>text</p><!--" + many("-x", 2_000_000), 0, "text"},
		{"a title without end", "<p>text</p><title>" + many("x ", 2_000_000), 0, "text"},
		{"a script without end", "<p>text</p><script>" + many("<!-- <script>", 200_000), 0, "text"},
		{"less-than signs", many("<", 3_000_000) + "end", 0, ""},
		{"ampersands", many("&", 1_000_000) + " end", 0, ""},
		{"NULs", many("\x00", 1_000_000) + "<p>end", 0, "end"},
		{"links without number", many("<a href=/x>y</a> ", 200_000), 10_000, "y"},
		{"an anchor without end", "<a href=/x>" + many("word <p>", 500_000), 1, ""},
		{"a srcset without end", "<img srcset='" + many("/x 1x,", 300_000) + "'>end", 10_000, "end"},
		{"a class without end", "<div class='" + many("aB-", 1_000_000) + "'>end", 0, "end"},
		{"JSON-LD with comments without end after its keys", many("<script type=application/ld+json>{"+many(`"'"/*':1,`, 100_000)+"</script>", 8) + "end", 0, "end"},
		{"JSON-LD with a row of comments after each key", many("<script type=application/ld+json>{"+many(`"'"/*':'*/ /*',`, 60_000)+"</script>", 8) + "end", 0, "end"},
		{"blocks of a letter", many("<p>x", 1_000_000), 0, ""},
		{"words of a letter", many("a b ", 1_000_000), 0, ""},
		{"one word", many("x", 3_000_000), 0, ""},
		{"ideographs", many("灯塔", 500_000), 0, ""},
		{"Thai", many("ประภาคาร", 200_000), 0, ""},
		{"invalid UTF-8", "<meta charset=utf-8>" + many("\xff\xfe\xe2", 500_000) + " end", 0, ""},
	}
	p := newParser(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &document.Document{URL: "https://example.com/", ContentType: "text/html", Body: []byte(tt.body)}
			r := p.Parse(d)
			checkPromises(t, p, d, r)
			if len(r.Links) != tt.links {
				t.Errorf("%d links, want %d", len(r.Links), tt.links)
			}
			if !strings.HasSuffix(r.Text.Full, tt.text) {
				t.Errorf("text ends %.80q, want %q", r.Text.Full[max(0, len(r.Text.Full)-80):], tt.text)
			}
		})
	}
}

// TestDeepNestingIsNoLimit parses a page that x/net/html's tree builder refuses.
func TestDeepNestingIsNoLimit(t *testing.T) {
	const deep = 10_000
	page := strings.Repeat("<div>", deep) + "<p>deep <a href=/x>down</a></p>" + strings.Repeat("</div>", deep) + "<p>and up</p>"
	if _, err := html.Parse(strings.NewReader(page)); err == nil {
		t.Error("x/net/html reads this page, so package html has one reason less to exist")
	}
	r := newParser(t).Parse(&document.Document{URL: "https://example.com/", ContentType: "text/html", Body: []byte(page)})
	if want := "deep down\nand up"; r.Text.Full != want || len(r.Links) != 1 {
		t.Errorf("text %q and %d links, want %q and 1", r.Text.Full, len(r.Links), want)
	}
}

// TestMemoryIsBounded parses bodies of 50 MiB and checks the sum of all allocations, including
// memory that is freed during the parse.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	size := 50 << 20
	if raceDetector { // the race detector is slow and sometimes drops pooled objects
		size = 4 << 20
	}
	fill := func(head, part string) []byte {
		b := append(make([]byte, 0, size), head...)
		for len(b)+len(part) <= size {
			b = append(b, part...)
		}
		return b
	}
	var attrs []byte
	attrs = append(attrs, "<a href=/x"...)
	for i := 0; len(attrs) < size-64; i++ {
		attrs = fmt.Appendf(attrs, " a%d='&amp;'", i)
	}
	p := newParser(t)
	for _, tt := range []struct {
		name, contentType string
		body              []byte
		most              uint64 // largest allowed memory, in MiB
	}{
		{"text", "text/html", fill("<p>", "word and word "), 32},
		{"paragraphs", "text/html", fill("", "<p>A word and a word.</p>\n"), 96},
		{"links", "text/html", fill("", "<a href=/x?y=z>A word</a> "), 32},
		{"nesting", "text/html", fill("", "<div><section><ul><li>"), 64},
		{"attributes", "text/html", attrs, 16},
		{"an attribute's references", "text/html", fill("<a href='", "&amp;"), 64},
		{"references", "text/html", fill("", "&lt;&nosuch;&#x1F600; "), 160},
		{"windows-1251", "text/html; charset=windows-1251", fill("", "\xCF\xF0\xE8\xE2\xE5\xF2 "), 192},
		{"undeclared", "text/html", fill("", "\xCF\xF0\xE8\xE2\xE5\xF2 "), 192},
		{"UTF-16", "text/html; charset=utf-16", fill("", "\x3D\xD8\x00\xDE"), 192},
		{"malformed UTF-8", "text/html; charset=utf-8", fill("ü", "\xE2\x82 ü ü "), 192},
		{"malformed bytes that become three each", "text/html; charset=euc-jp", fill("", "\xFF"), 192},
		{"plain text", "text/plain", fill("", "A line of text.\n"), 96},
		{"a sitemap", "text/xml", fill("<urlset>", "<url><loc>/a</loc><priority>0.5</priority></url>"), 64},
		{"a sitemap of one entry's images", "text/xml", fill("<urlset><url><loc>/a</loc>", "<image:image><image:loc>/i</image:loc></image:image>"), 16},
		{"a feed", "application/rss+xml", fill("<rss>", "<item><title>A title</title><link>/a</link><description>A &lt;b&gt; word</description></item>"), 64},
		{"a feed's unended text", "application/rss+xml", fill("<rss><item><description>", "&lt;p>A<p> word"), 32},
		{"a JSON feed", "application/feed+json", fill(`{"version":"https://jsonfeed.org/version/1.1","items":[`, `{"url":"/a","title":"A title"},`), 128},
		{"a JSON feed's attachments that are numbers", "application/feed+json", fill(`{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"/a","attachments":[`, `0,`), 16},
		{"items of such attachments", "application/feed+json", fill(`{"version":"https://jsonfeed.org/version/1.1","items":[`, `{"url":"/a","attachments":[`+strings.Repeat("0,", 1<<18)+`0]},`), 128},
		{"a JSON feed's authors that are numbers", "application/feed+json", fill(`{"version":"https://jsonfeed.org/version/1.1","authors":[`, `0,`), 16},
		{"a JSON feed's id that is a list", "application/feed+json", fill(`{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"/a","id":[`, `0,`), 16},
		{"ids that are lists", "application/feed+json", fill(`{"version":"https://jsonfeed.org/version/1.1","items":[`, `{"url":"/a","id":[`+strings.Repeat("0,", 1<<18)+`0]},`), 128},
		{"a JSON feed's brackets", "application/feed+json", fill(`{"version":"https://jsonfeed.org/version/1.1","items":[`, `[`), 16},
		{"NULs", "text/html", fill("", "\x00"), 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &document.Document{URL: "https://example.com/", ContentType: tt.contentType, Body: tt.body}
			before := allocated()
			r := p.Parse(d)
			took := (allocated() - before) >> 20
			t.Logf("%d MiB", took)
			if took > tt.most {
				t.Errorf("a body of %d MiB took %d MiB, want at most %d", len(tt.body)>>20, took, tt.most)
			}
			checkPromises(t, p, d, r)
		})
	}
}

// TestALongBaseDoesNotMultiply parses documents whose base is much longer than the references. The URLs
// of all links must have a bound that is linear in the document, and the parser counts the links beyond it.
func TestALongBaseDoesNotMultiply(t *testing.T) {
	base := "https://example.com/" + strings.Repeat("%7e", 2700) + "/" // its canonical form has 2,700 bytes, as it is linked 8,100
	for _, tt := range []struct {
		name, contentType, body string
		links                   int // in all
		last                    string
	}{
		{"a page", "text/html", "<head><base href='" + base + "'><link rel=canonical href=c></head>" + strings.Repeat("<a href=x>y</a>", 2000) + "<meta http-equiv=refresh content='9;url=r'>", 2002, "r"},
		{"a page whose references differ", "text/html", "<base href='" + base + "'>" + numbered(2000, "<a href=%d>y</a>"), 2000, ""},
		{"Atom", "application/atom+xml", "<feed xml:base='" + base + "'>" + numbered(20_000, "<entry><link href='%d'/></entry>"), 20_000, ""},
		{"Atom with a base for each entry", "application/atom+xml", "<feed xml:base='" + base + "'>" + numbered(3000, "<entry xml:base='%d/'><link href='x'/></entry>"), 3000, ""},
		{"files of an entry", "application/rss+xml", "<rss xml:base='" + base + "'>" + strings.Repeat("<item><link>1</link>"+strings.Repeat("<enclosure url='2'/>", 1000)+"</item>", 4), 4004, ""},
		{"a gzipped feed", "application/gzip", zipped("<feed xml:base='" + base + "'>" + numbered(20_000, "<entry><link href='%d'/></entry>")), 20_000, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &document.Document{URL: "https://example.com/", ContentType: tt.contentType, Body: []byte(tt.body)}
			p := newParser(t)
			p.cfg.MaxLinks = 100_000
			r := p.Parse(d)
			checkPromises(t, p, d, r)
			size := len(tt.body)
			if tt.contentType == "application/gzip" {
				size = 20_000 * len("<entry><link href='12345'/></entry>")
			}
			sum := 0
			for i := range r.Links {
				sum += len(r.Links[i].Target) + len(r.Links[i].Sent)
			}
			if most := 8*size + 4<<20 + 2*len(base); sum > most || sum < 2<<20 {
				t.Errorf("URLs of %d bytes in %d links from %d bytes, want at least 2 MiB and at most %d", sum, len(r.Links), size, most)
			}
			if int(r.Page.Outlinks) != tt.links || r.OverLinks == 0 || r.BadLinks != 0 {
				t.Errorf("%d links, %d beyond the bound, %d bad; want %d in all", r.Page.Outlinks, r.OverLinks, r.BadLinks, tt.links)
			}
			if tt.last != "" && (!strings.HasSuffix(r.Page.CanonicalURL, "/c") || !strings.HasSuffix(r.Links[len(r.Links)-1].Target, "/"+tt.last)) {
				t.Error("the canonical or the refresh link is missing")
			}
		})
	}
}

// TestADocumentWithoutRowsOfLinksHasNoOutlinks parses documents in which so many references have no target that
// the others are beyond the bounds. It is not known whether these have targets, so the links are not complete.
func TestADocumentWithoutRowsOfLinksHasNoOutlinks(t *testing.T) {
	long := strings.Repeat("x", 8180) + "/" // no URL below it is short enough
	for _, tt := range []struct {
		name, contentType, body string
		links                   int
	}{
		{"a page", "text/html", "<base href='/" + long + "'>" + numbered(1000, "<a href='%d'>y</a>"), 1000},
		{"Atom", "application/atom+xml", "<feed xml:base='/" + long + "'>" + numbered(1000, "<entry><link href='%d'/></entry>"), 1000},
		{"many references without a target", "text/html", numbered(10_001, "<a href='http://[%d'>y</a>"), 10_001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newParser(t)
			d := &document.Document{URL: "https://example.com/", ContentType: tt.contentType, Body: []byte(tt.body)}
			r := p.Parse(d)
			checkPromises(t, p, d, r)
			if len(r.Links) != 0 || r.OverLinks != 0 || r.BadLinks != tt.links || !r.Cut {
				t.Errorf("%d links, %d beyond the bound, %d bad, cut %t", len(r.Links), r.OverLinks, r.BadLinks, r.Cut)
			}
		})
	}
}

// numbered repeats a format with the numbers from 0 to n-1.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestTheBoundOfURLsLosesNoUsualLink parses documents with many long URLs, or with relative references
// to a document whose URL is long.
func TestTheBoundOfURLsLosesNoUsualLink(t *testing.T) {
	long := strings.Repeat("ü/", 300)
	deep := "https://example.com/" + strings.Repeat("d/", 80)
	for _, tt := range []struct {
		name, contentType, url, body string
		links                        int
	}{
		{"a sitemap of long URLs", "text/xml", "https://example.com/s.xml", "<urlset>" + numbered(2100, "<url><loc>https://example.com/"+long+"%d</loc></url>"), 2100},
		{"a gzipped sitemap of long URLs", "application/gzip", "https://example.com/s.xml.gz", zipped("<urlset>" + numbered(2100, "<url><loc>https://example.com/"+long+"%d</loc></url>")), 2100},
		{"a gzipped list", "application/gzip", "https://example.com/s.txt.gz", zipped(numbered(50_000, "https://example.com/"+strings.Repeat("x", 100)+"/%d\n")), 50_000},
		{"a feed with relative links", "application/rss+xml", deep, "<rss>" + numbered(50_000, "<item><link>%d</link></item>"), 50_000},
		{"a page with relative links", "text/html", deep, numbered(10_000, "<a href=%d>y</a> "), 10_000},
	} {
		d := &document.Document{URL: tt.url, ContentType: tt.contentType, Body: []byte(tt.body)}
		if r := newParser(t).Parse(d); len(r.Links) != tt.links || r.OverLinks != 0 {
			t.Errorf("%s: %d links, %d beyond the bound; want %d", tt.name, len(r.Links), r.OverLinks, tt.links)
		}
	}
}

// allocated returns how many bytes the heap has allocated since the process began.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestResultsShareNoMemoryWithTheBody(t *testing.T) {
	p := newParser(t)
	for _, g := range goldenPages(t) {
		want := p.Parse(&g.doc)
		body := bytes.Clone(g.doc.Body)
		d := g.doc
		d.Body = body
		got := p.Parse(&d)
		if !bytes.Equal(body, g.doc.Body) {
			t.Errorf("%s: Parse changed the body", g.name)
		}
		for i := range body {
			body[i] = 'X'
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: rows changed with the body (-want +got):\n%s", g.name, diff)
		}
	}
}

func TestParsersWorkSideBySide(t *testing.T) {
	p := newParser(t)
	pages := goldenPages(t)
	want := make([]*Result, len(pages))
	for i := range pages {
		want[i] = p.Parse(&pages[i].doc)
	}
	done := make(chan string)
	const workers = 4
	for range workers {
		go func() {
			diff := ""
			for range 5 {
				for i := range pages {
					diff += cmp.Diff(want[i], p.Parse(&pages[i].doc))
				}
			}
			done <- diff
		}()
	}
	for range workers {
		if diff := <-done; diff != "" {
			t.Error(diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, g := range goldenPages(f) {
		f.Add(g.doc.ContentType, "", g.doc.Body)
	}
	f.Add("", "noindex", []byte("<table><a href=1><td><p><li><a href=2></table></li>"))
	f.Add("text/html", `<a>; rel="canonical`, []byte("<base href=//x><svg><![CDATA[<a href=y>]]><select><math>"))
	p := newParser(f)
	f.Fuzz(func(t *testing.T, contentType, field string, body []byte) {
		d := &document.Document{URL: "https://example.com/a/b?c=d", ContentType: contentType, Body: body,
			Header: func(string) []string { return []string{field} }}
		before := bytes.Clone(body)
		r := p.Parse(d)
		checkPromises(t, p, d, r)
		if !bytes.Equal(before, body) {
			t.Error("Parse changed the body")
		}
		if diff := cmp.Diff(r, p.Parse(d)); diff != "" {
			t.Errorf("parsed twice (-first +second):\n%s", diff)
		}
	})
}
