package sitemap

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// repeatReader is a reader that repeats a text, so that a long input takes no memory.
type repeatReader struct {
	text string
	at   int
}

func (r *repeatReader) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		k := copy(p[n:], r.text[r.at:])
		n, r.at = n+k, (r.at+k)%len(r.text)
	}
	return len(p), nil
}

// watchedReader is a reader that calls look after each MiB.
type watchedReader struct {
	r    io.Reader
	n    int
	look func()
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.n += n; w.n > 1<<20 {
		w.n = 0
		w.look()
	}
	return n, err
}

func TestHostileFilesStayWithinBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const size = 16 << 20
	for _, tt := range []struct{ name, head, again string }{
		{"one tag", "<urlset><url><loc>/a</loc></url>", "<x"},
		{"a tag without end", "<urlset><url><loc>/a</loc></url><", "x"},
		{"attributes", "<urlset><url><loc>/a</loc></url><url", " a=1"},
		{"an attribute without end", `<urlset><url><loc>/a</loc></url><url a="`, "x"},
		{"nesting", "<urlset><url><loc>/a</loc></url>", "<image:image><video:video>"},
		{"entries in entries", "<urlset><url><loc>/a</loc></url>", "<url>"},
		{"end tags", "<urlset><url><loc>/a</loc></url>", "</url></loc>"},
		{"a loc without end", "<urlset><url><loc>/a</loc></url><url><loc>", "/x"},
		{"white space", "<urlset><url><loc>/a</loc></url>", " "},
		{"ampersands", "<urlset><url><loc>/a</loc></url><url><loc>", "&"},
		{"entities", "<urlset><url><loc>/a</loc></url><url><lastmod>", "&lt;"},
		{"a comment without end", "<urlset><url><loc>/a</loc></url><!--", "- "},
		{"CDATA without end", "<urlset><url><loc>/a</loc></url><![CDATA[", "] "},
		{"images", "<urlset><url><loc>/a</loc>", "<image:image><image:loc>/i</image:loc></image:image>"},
		{"alternates", "<urlset><url><loc>/a</loc>", `<xhtml:link rel="alternate" href="/i"/>`},
		{"a description without end", "<rss><channel><item><link>/a</link></item><item><description>", "&lt;p&gt;<b>"},
		{"links of a feed", "<feed><entry><link href=/a></entry>", "<link href='/x'/>"},
		{"a JSON feed of brackets", `{"version":"https://jsonfeed.org/version/1","items":[{"url":"/a"},`, "["},
		{"a line of text", "https://example.com/a\n", "x"},
		{"lines of text", "https://example.com/a\n", "x\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, most := 0, uint64(0)
			look := func() {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
			runtime.GC()
			look()
			before := most
			in := io.LimitReader(&repeatReader{text: tt.again}, size)
			watched := &watchedReader{io.MultiReader(strings.NewReader(tt.head), in), 0, look}
			_, err := Read(watched, Limits{}, func(*Entry) bool {
				n++
				return true
			})
			if n < 1 {
				t.Errorf("%d entries, %v: want at least the entry before the hostile part", n, err)
			}
			if most-before > 64<<20 { // 64 MiB suffice for a token of 4 MiB, its copies, its attributes and garbage
				t.Errorf("the reader took %d bytes, more than 64 MiB", most-before)
			}
		})
	}
}

// TestABaseIsNotCopiedForEachElement reads feeds whose xml:base is much longer than the elements that
// are relative to it. The sum of all allocations shows how often the reader joined the two.
func TestABaseIsNotCopiedForEachElement(t *testing.T) {
	const half = 256 << 10
	long, longest := strings.Repeat("a/", half/2), strings.Repeat("a/", MaxLoc/2)
	for _, tt := range []struct{ name, base, again string }{
		{"links of the feed, a long base", long, `<link xml:base="b/" href="c"/>`},
		{"links of the feed without bases, a long base", long, `<link href="c"/>`},
		{"links of the feed, the longest base", longest, `<link xml:base="b/" href="c"/>`},
		{"links of the feed that are too long, the longest base", longest, `<link xml:base="b/" href="` + strings.Repeat("c", MaxLoc+1) + `"/>`},
		{"entries, a long base", long, `<entry xml:base="b/"><link href="c"/></entry>`},
		{"entries without a link, the longest base", longest, `<entry xml:base="b/">`},
		{"entries with many bases, the longest base", longest, `<entry` + strings.Repeat(` xml:base="b/"`, maxAttrs) + `>`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `<feed xml:base="` + tt.base + `">` + strings.Repeat(tt.again, half/len(tt.again)) + `<entry><link href="z"/></entry>`
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n := 0
			_, err := Read(strings.NewReader(body), Limits{}, func(*Entry) bool { n++; return true })
			runtime.ReadMemStats(&after)
			if err != nil || n == 0 {
				t.Errorf("%d entries, %v", n, err)
			}
			if took := int(after.TotalAlloc-before.TotalAlloc) / len(body); took > 32 {
				t.Errorf("%d bytes were allocated for each byte of the body, want at most 32", took)
			}
		})
	}
}

// TestABaseThatIsTooLongIsIgnored reads a feed with bases that are too long, or too long when joined.
func TestABaseThatIsTooLongIsIgnored(t *testing.T) {
	long, half := strings.Repeat("x", MaxLoc+1), strings.Repeat("x", MaxLoc-10)+"/"
	for _, tt := range []struct{ body, want, link string }{
		{`<feed xml:base="` + long + `"><link href="s"/><entry><link href="a"/></entry>`, "", ""},
		{`<feed xml:base="/b/"><link xml:base="` + long + `" href="s"/><entry xml:base="` + long + `"><link xml:base="` + long + `" href="a"/></entry>`, "/b/", "/b/"},
		{`<feed xml:base="/b/"><link xml:base="` + half + `" href="s"/><entry xml:base="` + half + `"><link href="a"/></entry>`, "/b/" + half, "/b/" + half},
		{`<feed xml:base="/bbbbbbbbbbbb/"><link xml:base="` + half + `" href="s"/><entry xml:base="` + half + `"><link href="a"/></entry>`, "/bbbbbbbbbbbb/", "/bbbbbbbbbbbb/"},
	} {
		got, sum, err := entriesOf(t, []byte(tt.body), Limits{})
		if err != nil || len(got) != 1 || got[0].Loc != "a" || got[0].Base != tt.want || len(sum.Links) != 1 || sum.Links[0].Base != tt.link {
			t.Errorf("%.60s: %d entries, %v, %d links", tt.body, len(got), err, len(sum.Links))
		}
	}
}

func TestBombsAreCutAtTheLimit(t *testing.T) {
	zeros := strings.Repeat(" ", 8<<20)
	for name, body := range map[string]string{
		"gzip":         gzipped("<urlset><url><loc>/a</loc></url>" + zeros),
		"gzip in gzip": gzipped(gzipped("<urlset><url><loc>/a</loc></url>" + zeros)),
	} {
		got, sum, err := entriesOf(t, []byte(body), Limits{Bytes: 1 << 20})
		if err != nil || len(got) != 1 || !sum.Cut {
			t.Errorf("%s: %d entries, cut %t, %v", name, len(got), sum.Cut, err)
		}
	}
	// The reader never resolves entities that the document defines.
	lol := `<!DOCTYPE urlset [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><urlset><url><loc>/&b;</loc></url></urlset>`
	if got, _, err := entriesOf(t, []byte(lol), Limits{}); err != nil || len(got) != 1 || got[0].Loc != "/&b;" {
		t.Errorf("entities: %+v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`<urlset><url><loc>/a</loc><xhtml:link rel="alternate" hreflang="de" href="/b"/><image:image><image:loc>/i</image:loc><image:title>T</image:title></image:image></url></urlset>`,
		`<urlset><url><loc>/a</loc><video:video><video:player_loc>/p</video:player_loc></video:video><news:news><news:title>T</news:title></news:news><PageMap><Attribute name="src">/x</Attribute></PageMap></url>`,
		`<rss><channel><item><guid>http://x</guid><description><![CDATA[<p>x&amp;</p>]]></description><enclosure url="/f"/></item></channel></rss>`,
		`<feed xml:base="/b/"><entry><link href="/a"/><content type="xhtml"><div>t<b>u</b></div></content></entry></feed>`,
		`<rdf:RDF><channel/><item rdf:about="http://x"><dc:date>2024</dc:date></item>`,
		`{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"/1","attachments":[{"url":"/f"}]}]}`,
		"# c\nhttps://example.com/\n", gzipped("<sitemapindex><sitemap>http://x</sitemap>"), gzipped(gzipped("http://x\n")),
		"\xFE\xFF\x00<\x00u", "Warning <b>x</b><urlset><url><loc>/caf\xE9</loc></url>",
	} {
		f.Add([]byte(s), "")
	}
	f.Add([]byte("<rss><item><title>\xCC</title><link>/a"), "windows-1251")
	f.Fuzz(func(t *testing.T, body []byte, charset string) {
		got, sum, _ := entriesOf(t, body, Limits{Entries: 100, Bytes: 1 << 20, Charset: charset})
		if len(got) != sum.Entries || sum.Entries > 100 {
			t.Errorf("%d entries given, %d counted", len(got), sum.Entries)
		}
		for _, e := range got {
			refs := append(append(append([]Ref{{e.Loc, e.Title}, {e.Comments, e.Summary}}, e.Images...), e.Videos...), e.Enclosures...)
			for _, r := range refs {
				if !utf8.ValidString(r.Loc+r.Text) || len(r.Loc) > 3*MaxLoc || len(r.Text) > MaxSummary {
					t.Errorf("%d and %d bytes, valid %t: %q", len(r.Loc), len(r.Text), utf8.ValidString(r.Loc+r.Text), r)
				}
			}
			if e.Loc == "" || len(e.Loc) > MaxLoc {
				t.Errorf("entry with a reference of %d bytes", len(e.Loc))
			}
			if !utf8.ValidString(e.Base) || e.Priority != -1 && !(e.Priority >= 0 && e.Priority <= 1) {
				t.Errorf("base %q, priority %v", e.Base, e.Priority)
			}
		}
		again, twice, _ := entriesOf(t, bytes.Clone(body), Limits{Entries: 100, Bytes: 1 << 20, Charset: charset})
		if len(again) != len(got) || twice.Title != sum.Title {
			t.Error("a second read gives other entries")
		}
	})
}
