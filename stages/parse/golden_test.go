package parse

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
)

var update = flag.Bool("update", false, "rewrite the golden rows in testdata")

// goldenPage is a document of testdata/pages. The file NAME.json beside the document has the
// document's rows.
type goldenPage struct {
	name string
	doc  document.Document
}

// contentTypes lists the Content-Type fields of golden pages. Pages that are not in the list have
// text/html.
var contentTypes = map[string]string{
	"windows-1251.html": "text/html; charset=windows-1251",
	"plain.txt":         "text/plain",
	"urls.txt":          "text/plain; charset=utf-8",
	"feed.xml":          "text/xml",
	"sitemap.xml":       "application/xml",
	"other.xml":         "application/xml",
	"document.pdf":      "application/octet-stream",
}

// headers lists the other header fields of golden pages.
var headers = map[string]map[string][]string{
	"main.html": {
		"X-Robots-Tag":     {"otherbot: noindex", "examplebot: nofollow", "unavailable_after: 25 Jun 2030 15:00:00 PST"},
		"Link":             {`</canonical>; rel="canonical", <https://example.com/next>; rel=next; title="a, b"`},
		"Refresh":          {"5; url=/later"},
		"Content-Language": {"en"},
	},
}

func goldenPages(tb testing.TB) (pages []goldenPage) {
	tb.Helper()
	names, err := filepath.Glob("testdata/pages/*")
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range names {
		name := filepath.Base(path)
		if strings.HasSuffix(name, ".json") {
			continue
		}
		body, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		ct, ok := contentTypes[name]
		if !ok {
			ct = "text/html"
		}
		h := headers[name]
		pages = append(pages, goldenPage{name, document.Document{
			URL: "https://example.com/dir/" + name, ContentType: ct, Body: body, Depth: 2,
			Header: func(field string) []string { return h[field] },
		}})
	}
	if len(pages) == 0 {
		tb.Fatal("testdata/pages is empty")
	}
	return pages
}

// columnsOf returns the columns of a row that are not empty.
func columnsOf(v reflect.Value, out map[string]any) map[string]any {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			columnsOf(v.Field(i), out)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if !v.Field(i).IsZero() {
			out[name] = v.Field(i).Interface()
		}
	}
	return out
}

func TestGoldenRows(t *testing.T) {
	p := newParser(t)
	for _, g := range goldenPages(t) {
		t.Run(g.name, func(t *testing.T) {
			r := p.Parse(&g.doc)
			if r.Page.DocumentKind != string(r.Kind) {
				t.Errorf("document_kind is %q, the kind %q", r.Page.DocumentKind, r.Kind)
			}
			r.Page.DocumentKind = ""
			got := map[string]any{
				"kind": r.Kind, "page": columnsOf(reflect.ValueOf(r.Page), map[string]any{}),
				"text":      columnsOf(reflect.ValueOf(r.Text), map[string]any{}),
				"bad_links": r.BadLinks, "over_links": r.OverLinks, "refresh": r.Refresh, "nofollow": r.Nofollow,
			}
			var links []map[string]any
			for _, l := range r.Links {
				row := columnsOf(reflect.ValueOf(l), map[string]any{})
				if row["source"] != r.Page.URL || row["source_surtkey"] != r.Page.SURT {
					t.Errorf("link %v is not of the page %s", row, r.Page.URL)
				}
				delete(row, "source")
				delete(row, "source_surtkey")
				links = append(links, row)
			}
			got["links"] = links
			raw, err := json.MarshalIndent(got, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			raw = append(raw, '\n')
			golden := filepath.Join("testdata/pages", g.name+".json")
			if *update {
				if err := os.WriteFile(golden, raw, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(raw)); d != "" {
				t.Errorf("rows differ from %s (-want +got; -update rewrites it):\n%s", golden, d)
			}
		})
	}
}
