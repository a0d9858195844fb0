package parse

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// pagesDir holds real pages with their main text; see its README.
const pagesDir = "../../../shared/data/pages"

type realPage struct {
	id, url, main string
	body          []byte
}

// samplePages are the real pages as documents, or the golden pages where those are absent.
func samplePages(tb testing.TB) (docs []Document) {
	tb.Helper()
	for _, p := range loadPages(tb) {
		docs = append(docs, Document{URL: p.url, ContentType: "text/html", Body: p.body})
	}
	if docs == nil {
		for _, g := range goldenPages(tb) {
			docs = append(docs, g.doc)
		}
	}
	return docs
}

// realPages loads the real pages, or skips the test where there are none.
func realPages(tb testing.TB) []realPage {
	tb.Helper()
	pages := loadPages(tb)
	if pages == nil {
		tb.Skip("needs ../shared/data/pages beside the repository")
	}
	return pages
}

func loadPages(tb testing.TB) []realPage {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join(pagesDir, "ground-truth.json"))
	if err != nil {
		return nil
	}
	var truth map[string]struct {
		Main string `json:"main_text"`
		URL  string `json:"url"`
	}
	if err := json.Unmarshal(raw, &truth); err != nil {
		tb.Fatal(err)
	}
	var pages []realPage
	for id, p := range truth {
		f, err := os.Open(filepath.Join(pagesDir, id+".html.gz"))
		if err != nil {
			tb.Fatal(err)
		}
		gz, err := gzip.NewReader(f)
		if err != nil {
			tb.Fatal(err)
		}
		body, err := io.ReadAll(gz)
		if err != nil {
			tb.Fatal(err)
		}
		f.Close()
		pages = append(pages, realPage{id, p.URL, p.Main, body})
	}
	sort.Slice(pages, func(i, j int) bool { return pages[i].id < pages[j].id })
	return pages
}

var wordRE = regexp.MustCompile(`[\pL\pN_]+`)

// shingles counts the runs of four words of a text.
func shingles(s string) map[string]float64 {
	w := wordRE.FindAllString(s, -1)
	m := make(map[string]float64)
	for i := 0; i < max(1, len(w)-3); i++ {
		if run := w[i:min(i+4, len(w))]; len(run) > 0 {
			m[strings.Join(run, " ")]++
		}
	}
	return m
}

// score is precision and recall of a page's shingles, as the benchmark that the
// pages come from counts them.
func score(want, got string) (precision, recall float64, hasP, hasR bool) {
	a, b := shingles(want), shingles(got)
	var tp, fp, fn float64
	for k, n := range a {
		tp += min(n, b[k])
		fn += max(0, n-b[k])
	}
	for k, n := range b {
		fp += max(0, n-a[k])
	}
	precision, recall = 1, 1
	if fp+fn > 0 {
		precision, recall = 0, 0
		if tp > 0 {
			precision, recall = tp/(tp+fp), tp/(tp+fn)
		}
	}
	return precision, recall, tp+fp > 0, tp+fn > 0
}

// leastF1 is what the default extractor reaches on the real pages, less a little.
const leastF1 = 0.97

func TestMainContentOfRealPages(t *testing.T) {
	var p, r, np, nr float64
	parser := newParser(t)
	for _, page := range realPages(t) {
		got := parser.Parse(&Document{URL: page.url, ContentType: "text/html; charset=utf-8", Body: page.body})
		pp, rr, hasP, hasR := score(page.main, got.Text.Main)
		if hasP {
			p, np = p+pp, np+1
		}
		if hasR {
			r, nr = r+rr, nr+1
		}
		if testing.Verbose() && pp*rr < 0.85 {
			t.Logf("precision %.3f recall %.3f %s %s", pp, rr, page.id, page.url)
		}
	}
	p, r = p/np, r/nr
	f1 := 2 * p * r / (p + r)
	t.Logf("main content: F1 %.4f, precision %.4f, recall %.4f on %.0f pages", f1, p, r, nr)
	if f1 < leastF1 {
		t.Errorf("F1 %.4f, want at least %.2f", f1, leastF1)
	}
}
