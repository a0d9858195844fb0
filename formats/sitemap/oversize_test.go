package sitemap

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// longTexts are texts that repeat to URLs of 10 MB or more than a token: plain, with separators, with marks of XML and JSON, and with
// every kind of character that Unicode treats in a special way.
var longTexts = map[string]string{
	"plain": "x", "slashes": "/", "parameters": "&a=1", "entities": "&amp;", "an entity that does not end": "&", "numeric entities": "&#x10FFFF;", "NUL by entity": "&#0;",
	"quotes": `"'`, "less-than signs": "< <5<=", "greater-than signs": ">]]]>-->", "backslashes": `\\`, "percents": "%", "percent escapes": "%E2%80%AE", "white space": " \t", "line ends": "\r\n",
	"right-to-left override": "\u202e", "zero width": "\u200b\u200d\ufeff", "combining": "e\u0301\u0323\u0300", "full width": "．／％", "surrogates as UTF-8": "\xed\xa0\x80\xed\xb0\x80",
	"noncharacters": "\ufffe\U0010ffff", "overlong": "\xc0\xaf\xe0\x80\xaf", "cut runes": "\xf0\x9f\xf0", "bytes that are not UTF-8": "\xff\xfe", "NUL": "\x00", "controls": "\x01\x1b\x7f\u0085\u2028",
	"emoji": "👩‍👩‍👧‍👦", "case folding": "İıſKÅß", "private use": "\ue000", "tags": "\U000e0041", "ideographs": "例え", "punycode": "xn--",
}

// TestALongURLIsOneSkippedEntry reads files in which each place of a URL has one of 10 MB. The entries
// before and after it must be read, and the reader must count it.
func TestALongURLIsOneSkippedEntry(t *testing.T) {
	tricks := []string{"loc", "CDATA", "href of Atom", "guid", "line of text", "JSON"} // the places that get all texts
	for _, f := range []struct {
		name, head, tail string
		skipped          int
		not              string // text that cannot be in this place
	}{
		{"loc", "<urlset><url><loc>/a</loc></url><url><loc>http://a.example/", "</loc><priority>1</priority></url><url><loc>/b</loc></url></urlset>", 1, ""},
		{"CDATA", "<urlset><url><loc>/a</loc></url><url><loc><![CDATA[http://a.example/", "]]></loc></url><url><loc>/b</loc></url></urlset>", 1, "]]>"},
		{"a loc with a tag after it", "<sitemapindex><sitemap><loc>/a</loc></sitemap><sitemap><loc>http://a.example/", "<sitemap><loc>/b</loc></sitemap></sitemapindex>", 1, ""},
		{"link of RSS", "<rss><channel><item><link>/a</link></item><item><link>http://a.example/", "</link></item><item><link>/b</link></item></channel></rss>", 1, ""},
		{"guid", "<rss><channel><item><link>/a</link></item><item><guid>http://a.example/", "</guid></item><item><link>/b</link></item></channel></rss>", 1, ""},
		{"href of Atom", `<feed><entry><link href="/a"/></entry><entry><link href="http://a.example/`, `"/></entry><entry><link href="/b"/></entry></feed>`, 1, `"`},
		{"href in single quotes", `<feed><entry><link href="/a"/></entry><entry><link rel=alternate href='http://a.example/`, `'></link></entry><entry><link href="/b"/></entry></feed>`, 1, `'`},
		{"rdf:about", `<rdf:RDF><item rdf:about="http://a"><link>/a</link></item><item rdf:about="http://a.example/`, `"></item><item><link>/b</link></item></rdf:RDF>`, 1, `"`},
		{"alternate", `<urlset><url><loc>/a</loc><xhtml:link rel="alternate" href="http://a.example/`, `"/></url><url><loc>/b</loc></url></urlset>`, 0, `"`},
		{"image", "<urlset><url><loc>/a</loc><image:image><image:loc>http://a.example/", "</image:loc></image:image></url><url><loc>/b</loc></url></urlset>", 0, ""},
		{"description", "<rss><channel><item><link>/a</link><description>", "</description></item><item><link>/b</link></item></channel></rss>", 0, ""},
		{"comment", "<urlset><url><loc>/a</loc></url><!-- http://a.example/", "--><url><loc>/b</loc></url></urlset>", 0, "-->"},
		{"declaration", "<urlset><url><loc>/a</loc></url><!DOCTYPE x ", "><url><loc>/b</loc></url></urlset>", 0, ">"},
		{"attribute of an end tag", `<urlset><url><loc>/a</loc></url x="`, `"><url><loc>/b</loc></url></urlset>`, 0, `"`},
		{"line of text", "http://a.example/a\nhttp://a.example/", "\nhttp://a.example/b\n", 1, "\n"},
		{"JSON", `{"version":"https://jsonfeed.org/version/1","items":[{"url":"/a"},{"url":"http://a.example/`, `"},{"url":"/b"}]}`, 1, `"`},
		{"id of JSON", `{"version":"https://jsonfeed.org/version/1","items":[{"url":"/a"},{"id":"http://a.example/`, `"},{"url":"/b"}]}`, 1, `"`},
		{"key of JSON", `{"version":"https://jsonfeed.org/version/1","http://a.example/`, `":1,"items":[{"url":"/a"},{"url":"/b"}]}`, 0, `"`},
		{"member of JSON", `{"version":"https://jsonfeed.org/version/1","home_page_url":"http://a.example/`, `","items":[{"url":"/a"},{"url":"/b"}]}`, 0, `"`},
	} {
		for name, text := range longTexts {
			size := 10 << 20
			if testing.Short() {
				size = maxToken + 1<<20
			}
			if name != "plain" {
				size = maxToken + 1<<20
				if testing.Short() || !slices.Contains(tricks, f.name) || f.not != "" && strings.Contains(text, f.not) {
					continue
				}
			}
			long := io.LimitReader(&repeatReader{text: text}, int64(size/len(text)*len(text)))
			var all []string
			sum, err := Read(io.MultiReader(strings.NewReader(f.head), long, strings.NewReader(f.tail)), Limits{}, func(e *Entry) bool {
				all = append(all, strings.TrimPrefix(e.Loc, "http://a.example"))
				return true
			})
			if err != nil || sum.Cut || sum.Skipped != f.skipped || !slices.Equal(all, []string{"/a", "/b"}) {
				t.Errorf("%s, %s: %.100q, %d skipped, cut %t, %v", f.name, name, all, sum.Skipped, sum.Cut, err)
			}
		}
	}
}

// TestManyLongURLsTakeBoundedMemory reads 200 MB of URLs of 10 MB.
func TestManyLongURLsTakeBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	long := "<url><loc>http://a.example/" + strings.Repeat("x", 10<<20) + "</loc></url>"
	most := uint64(0)
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	runtime.GC()
	look()
	before := most
	in := io.LimitReader(&repeatReader{text: long}, int64(20*len(long)))
	sum, err := Read(&watchedReader{io.MultiReader(strings.NewReader("<urlset>"), in, bytes.NewReader([]byte("<url><loc>/b</loc></url></urlset>"))), 0, look}, Limits{Bytes: 1 << 30}, func(*Entry) bool { return true })
	if err != nil || sum.Entries != 1 || sum.Skipped != 20 || sum.Cut {
		t.Errorf("%+v, %v", sum, err)
	}
	if most-before > 64<<20 {
		t.Errorf("the reader took %d bytes, more than 64 MiB", most-before)
	}
}

// FuzzUnescapeUpTo compares the limited form with the beginning of the whole text.
func FuzzUnescapeUpTo(f *testing.F) {
	f.Add([]byte("&lt;p>A<p> word&amp;&#x41;&copy=2&"), 3)
	f.Add(bytes.Repeat([]byte("&lt;p>A<p> word"), 100), 1000)
	f.Add([]byte("x&CounterClockwiseContourIntegral;&amp;&"), 5)
	f.Fuzz(func(t *testing.T, p []byte, most int) {
		most = min(max(most, 0), 1<<20)
		whole := unescape(nil, p)
		if got := unescapeUpTo(nil, p, most); !bytes.Equal(got, whole[:min(most, len(whole))]) {
			t.Errorf("%q up to %d: %q, of %q", p, most, got, whole)
		}
	})
}
