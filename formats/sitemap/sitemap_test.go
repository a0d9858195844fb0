package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// entriesOf returns copies of all entries of body.
func entriesOf(t testing.TB, body []byte, lim Limits) ([]Entry, Summary, error) {
	t.Helper()
	var out []Entry
	sum, err := Read(bytes.NewReader(body), lim, func(e *Entry) bool {
		c := *e
		c.Alternates = append([]Alternate(nil), e.Alternates...)
		c.Images = append([]Ref(nil), e.Images...)
		c.Videos = append([]Ref(nil), e.Videos...)
		c.Enclosures = append([]Ref(nil), e.Enclosures...)
		out = append(out, c)
		return true
	})
	return out, sum, err
}

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestReadGivesEntriesInOrder(t *testing.T) {
	const head = `<?xml version="1.0" encoding="UTF-8"?>`
	tests := []struct {
		name, in string
		want     []Entry
		sum      Summary
	}{
		{"all that a url says", head + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>
			<loc> https://example.com/?a=1&amp;b=2 </loc><lastmod>2024-03-05</lastmod><changefreq>Daily</changefreq><priority>0.8</priority></url></urlset>`,
			[]Entry{{Loc: "https://example.com/?a=1&b=2", LastMod: at("2024-03-05T00:00:00Z"), ChangeFreq: "daily", Priority: 0.8}},
			Summary{Kind: URLSet, Entries: 1}},
		{"CDATA and a lastmod that is no date", `<urlset><url><loc><![CDATA[https://example.com/<x>&y]]></loc><lastmod>soon</lastmod></url></urlset>`,
			[]Entry{{Loc: "https://example.com/<x>&y", Priority: -1}}, Summary{Kind: URLSet, Entries: 1}},
		{"an image's loc is not the page's", `<urlset><url><image:image><image:loc>/i.png</image:loc><image:title>T</image:title></image:image><loc>/p</loc></url></urlset>`,
			[]Entry{{Loc: "/p", Priority: -1, Images: []Ref{{"/i.png", "T"}}}}, Summary{Kind: URLSet, Entries: 1}},
		{"alternates", `<urlset><url><loc>/en</loc><xhtml:link rel="alternate" hreflang="de" href="/de"/><xhtml:link rel="other" href="/no"/></url></urlset>`,
			[]Entry{{Loc: "/en", Priority: -1, Alternates: []Alternate{{"de", "/de"}}}}, Summary{Kind: URLSet, Entries: 1}},
		{"an index", `<sitemapindex><sitemap><loc>/a.xml</loc></sitemap><sitemap>https://example.com/bare.xml</sitemap></sitemapindex>`,
			[]Entry{{Loc: "/a.xml", Sitemap: true, Priority: -1}, {Loc: "https://example.com/bare.xml", Sitemap: true, Priority: -1}}, Summary{Kind: Index, Entries: 2}},
		{"cut in the middle of an entry", `<urlset><url><loc>/a</loc></url><url><loc>/b</loc><last`,
			[]Entry{{Loc: "/a", Priority: -1}, {Loc: "/b", Priority: -1}}, Summary{Kind: URLSet, Entries: 2}},
		{"entries that are not ended", `<urlset><url><loc>/a</loc><url><loc>/b</loc></urlset>`,
			[]Entry{{Loc: "/a", Priority: -1}, {Loc: "/b", Priority: -1}}, Summary{Kind: URLSet, Entries: 2}},
		{"entries without a reference", `<urlset><url></url><url><loc> </loc></url><url><loc>/c</loc></url></urlset>`,
			[]Entry{{Loc: "/c", Priority: -1}}, Summary{Kind: URLSet, Entries: 1, Skipped: 2}},
		{"gzip", gzipped(`<urlset><url><loc>/z</loc></url></urlset>`),
			[]Entry{{Loc: "/z", Priority: -1}}, Summary{Kind: URLSet, Entries: 1}},
		{"gzip that is cut", gzipped(`<urlset>` + `<url><loc>/z</loc></url>`)[:40],
			[]Entry{{Loc: "/z", Priority: -1}}, Summary{Kind: URLSet, Entries: 1, Cut: true}},
		{"UTF-16", "\xFE\xFF" + utf16be(`<urlset><url><loc>/ü</loc></url></urlset>`),
			[]Entry{{Loc: "/ü", Priority: -1}}, Summary{Kind: URLSet, Entries: 1, Charset: "utf-16be"}},
		{"a declared charset", "<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>/\xFC</loc></url></urlset>",
			[]Entry{{Loc: "/ü", Priority: -1}}, Summary{Kind: URLSet, Entries: 1, Charset: "windows-1252"}},
		{"RSS", `<rss><channel><title>T</title><link>/home</link><language>en</language><item><title>I</title><link>/1</link><pubDate>Tue, 05 Mar 2024 08:30:00 +0100</pubDate></item>
			<item><guid>https://example.com/g</guid></item><item><guid isPermaLink="false">urn:x</guid></item></channel></rss>`,
			[]Entry{{Loc: "/1", Title: "I", LastMod: at("2024-03-05T07:30:00Z"), Priority: -1}, {Loc: "https://example.com/g", Priority: -1}},
			Summary{Kind: RSS, Entries: 2, Skipped: 1, Title: "T", Lang: "en", Links: []FeedLink{{Rel: "alternate", Href: "/home"}}}},
		{"RDF", `<rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel><title>T</title></channel><item><link>/1</link><dc:date>2024-03-05</dc:date></item></rdf:RDF>`,
			[]Entry{{Loc: "/1", LastMod: at("2024-03-05T00:00:00Z"), Priority: -1}}, Summary{Kind: RSS, Entries: 1, Title: "T"}},
		{"Atom", `<feed><title>T</title><link href="/home"/><updated>2024-03-05T08:30:00Z</updated><entry><title>E</title><link rel="edit" href="/e"/><link rel="alternate" href="/1"/>
			<published>2024-01-01</published><updated>2024-02-02</updated></entry></feed>`,
			[]Entry{{Loc: "/1", Title: "E", LastMod: at("2024-02-02T00:00:00Z"), Priority: -1}},
			Summary{Kind: Atom, Entries: 1, Title: "T", Updated: at("2024-03-05T08:30:00Z"), Links: []FeedLink{{Rel: "alternate", Href: "/home"}}}},
		{"text", "\xEF\xBB\xBFhttps://example.com/a\r\nno URL\n\n https://example.com/b",
			[]Entry{{Loc: "https://example.com/a", Priority: -1}, {Loc: "https://example.com/b", Priority: -1}}, Summary{Kind: Text, Entries: 2, Skipped: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, sum, err := entriesOf(t, []byte(tt.in), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if tt.sum.Charset == "" {
				tt.sum.Charset = "utf-8"
			}
			if d := cmp.Diff(tt.sum, sum); d != "" {
				t.Errorf("summary (-want +got):\n%s", d)
			}
		})
	}
}

func utf16be(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r >> 8))
		b.WriteByte(byte(r))
	}
	return b.String()
}

func TestReadStopsAtItsLimits(t *testing.T) {
	many := "<urlset>" + strings.Repeat("<url><loc>/a</loc></url>", 100)
	for _, tt := range []struct {
		name string
		body string
		lim  Limits
		want int
	}{
		{"entries", many, Limits{Entries: 10}, 10},
		{"bytes", many, Limits{Bytes: 8 + 24*10}, 10},
		{"bytes of a gzip bomb", gzipped(many), Limits{Bytes: 8 + 24*10}, 10},
		{"lines of text", strings.Repeat("https://example.com/\n", 100), Limits{Entries: 10}, 10},
		{"a token without end", "<urlset><url><loc>/a</loc></url><" + strings.Repeat("x", maxToken+1), Limits{}, 1},
		{"a loc without end", "<urlset><url><loc>/" + strings.Repeat("x", 2*MaxLoc) + "</loc></url><url><loc>/b</loc></url>", Limits{}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, sum, err := entriesOf(t, []byte(tt.body), tt.lim)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != tt.want {
				t.Errorf("%d entries, want %d", len(got), tt.want)
			}
			if !sum.Cut && tt.name != "a loc without end" {
				t.Error("the summary does not say that it was cut")
			}
		})
	}
}

func TestReadStopsWhenTold(t *testing.T) {
	n := 0
	if _, err := Read(strings.NewReader("<urlset><url><loc>/a</loc></url><url><loc>/b</loc></url></urlset>"), Limits{}, func(*Entry) bool {
		n++
		return false
	}); err != nil || n != 1 {
		t.Errorf("%d entries, error %v; want 1 and none", n, err)
	}
}

func TestReadRefusesWhatIsNoSitemap(t *testing.T) {
	for _, in := range []string{"", "hello", "<html><body><url><loc>/a</loc></url></body></html>", "<?xml version='1.0'?><note/>"} {
		if _, err := Read(strings.NewReader(in), Limits{}, func(*Entry) bool { return true }); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: error %v, want ErrUnknown", in, err)
		}
	}
}

func TestParseTime(t *testing.T) {
	for in, want := range map[string]string{
		"2024-03-05":                    "2024-03-05T00:00:00Z",
		"2024-03":                       "2024-03-01T00:00:00Z",
		"2024-03-05T08:30+01:00":        "2024-03-05T07:30:00Z",
		"2024-03-05T08:30:00.123456Z":   "2024-03-05T08:30:00Z",
		"2024-03-05 08:30:00":           "2024-03-05T08:30:00Z",
		"2024-03-05T08:30:00+0100":      "2024-03-05T07:30:00Z",
		"Tue, 05 Mar 2024 08:30:00 EST": "2024-03-05T13:30:00Z",
		"Tue, 5 Mar 24 08:30:00 +0100":  "2024-03-05T07:30:00Z",
		"05 Mar 24 08:30:00":            "2024-03-05T08:30:00Z",
		"05 Mar 2024 08:30:00 GMT":      "2024-03-05T08:30:00Z",
		"March 5, 2024":                 "2024-03-05T00:00:00Z",
		"20240305":                      "2024-03-05T00:00:00Z",
		"2024-3-5":                      "2024-03-05T00:00:00Z",
		"2024-03-05T08:30:00 +01:00":    "2024-03-05T07:30:00Z",
		"1709627400":                    "2024-03-05T08:30:00Z",
		"1709627400123":                 "2024-03-05T08:30:00Z",
		"9999999999999":                 "",
		"2024-02-30":                    "",
		"2024-02-29T23:59:59-01:00":     "2024-03-01T00:59:59Z",
		" 2024-03-05T08:30:00Z\n":       "2024-03-05T08:30:00Z",
		"0001-01-01T00:00:00Z":          "",
		"2024-13-05":                    "",
		"yesterday":                     "",
		"":                              "",
	} {
		got := ""
		if d, ok := ParseTime(in); ok {
			got = d.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("ParseTime(%q) = %q, want %q", in, got, want)
		}
		if d, ok := timeOf([]byte(in)); ok != (want != "") || ok && d.UTC().Format(time.RFC3339) != want {
			t.Errorf("timeOf(%q) = %v, %t, want %q", in, d, ok, want)
		}
	}
}
