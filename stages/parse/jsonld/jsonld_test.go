package jsonld

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// ldSays collects the headline and name of each object that json_ld may describe. v is valid JSON,
// decoded by encoding/json.
func ldSays(v any, nested bool, says map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			ldSays(e, nested, says)
		}
	case map[string]any:
		text := func(key string) string {
			s, _ := v[key].(string)
			return fold.String(html.UnescapeString(s), fold.MaxShort)
		}
		if h, n := text("headline"), text("name"); (h != "" || n != "") && v["@type"] != "Question" {
			says[h+"|"+n] = true
		}
		ldSays(v["@graph"], false, says)
		for _, k := range []string{"mainEntity", "mainEntityOfPage", "breadcrumb"} {
			ldSays(v[k], true, says)
		}
	}
}

func TestJSONLDOfRealPagesIsWhatEncodingJSONReads(t *testing.T) {
	scripts, objects := 0, 0
	pages, real := parsetest.Pages(t)
	for _, page := range pages {
		doc, _ := charset.Decode(page.Body, "text/html")
		root, err := html.Parse(bytes.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		for n := range root.Descendants() {
			if n.DataAtom != atom.Script || n.FirstChild == nil || parsetest.Attr(n, "type") != "application/ld+json" {
				continue
			}
			var v any
			if json.Unmarshal([]byte(n.FirstChild.Data), &v) != nil {
				continue
			}
			want, got := map[string]bool{}, map[string]bool{}
			ldSays(v, false, want)
			var l Data
			l.Read([]byte(n.FirstChild.Data))
			if column := l.Column(func(ref string) string { return "https://example.com/" }); column != "" {
				for _, o := range parsetest.JSONLD(t, column) {
					if o.Headline != "" || o.Name != "" {
						got[o.Headline+"|"+o.Name] = true
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: encoding/json (-), json_ld (+):\n%s", page.Name, diff)
			}
			scripts++
			objects += len(got)
		}
	}
	wanted := []int{8, 8}
	if real {
		wanted = []int{98, 108}
	}
	if scripts < wanted[0] || objects < wanted[1] {
		t.Errorf("compared %d scripts with %d objects only", scripts, objects)
	}
}

// FuzzJSONLD checks the promises of json_ld. The scanner and encoding/json must find the end of
// valid JSON at the same place.
func FuzzJSONLD(f *testing.F) {
	for _, s := range []string{`{"@type":"Article","headline":"H","author":[{"name":"A"}]}`, `[{"@graph":[{"@type":"BreadcrumbList","itemListElement":[{"position":1,"item":{"@id":"/","name":"n"}}]}]}]`,
		`<!-- //<![CDATA[` + "\n" + `{"a":"b" "c",} //]]>`, `{'type':'x',name:"\ud83d\u00e9\q"}`, `{"x":[1e-5,true,"\\",{}],"datePublished":"2024-01-02"}`, `{"a":"b"c","d":[}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if json.Valid(script) {
			z := &scanner{src: script}
			if z.skipValue(); len(bytes.TrimRight(script[z.pos:], " \t\r\n")) > 0 {
				t.Errorf("skip stops at %d of %q", z.pos, script)
			}
		}
		script = bytes.ToValidUTF8(script, []byte("\uFFFD")) // a decoded document is valid UTF-8 too
		var l Data
		l.Read(script)
		if len(l.nodes) > maxNodes || l.kept > maxKept {
			t.Errorf("%d nodes of %d bytes", len(l.nodes), l.kept)
		}
		column := l.Column(func(string) string { return "https://example.com/" })
		if len(column) > maxRow+1 {
			t.Errorf("json_ld of %d bytes", len(column))
		}
		if column != "" {
			parsetest.JSONLD(t, column)
		}
		l.Reset()
		l.Read(script)
		if again := l.Column(func(string) string { return "https://example.com/" }); again != column {
			t.Errorf("read twice:\n%s\n%s", column, again)
		}
	})
}

// BenchmarkJSONLD measures JSON-LD alone: it turns the scripts of a page into the column.
func BenchmarkJSONLD(b *testing.B) {
	docs := parsetest.Documents(b)
	var pages [][][]byte
	n := 0
	for i := range docs {
		n += len(docs[i].Body)
		var scripts [][]byte
		z := html.NewTokenizer(bytes.NewReader(docs[i].Body))
		for z.Next() != html.ErrorToken {
			if t := z.Token(); t.DataAtom == atom.Script && t.Type == html.StartTagToken && strings.Contains(t.String(), "ld+json") {
				z.Next()
				scripts = append(scripts, bytes.Clone(z.Raw()))
			}
		}
		pages = append(pages, scripts)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	var l Data
	for b.Loop() {
		for _, scripts := range pages {
			l.Reset()
			for _, s := range scripts {
				l.Read(s)
			}
			l.Column(func(ref string) string { return ref })
		}
	}
}
