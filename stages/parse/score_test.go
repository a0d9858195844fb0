package parse

import (
	"regexp"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
	"crawlbatch.io/crawlbatch/stages/parse/trafilatura"
)

var wordRE = regexp.MustCompile(`[\pL\pN_]+`)

// shingles counts the runs of four words in a text.
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

// score returns precision and recall of a page's shingles. It counts like the benchmark that
// published the pages.
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

// leastF1 is slightly less than the F1 of the default extractor on the real pages.
const leastF1 = 0.975

func TestMainContentOfRealPages(t *testing.T) {
	scoreOf(t, newParser(t), leastF1)
}

// leastTrafilatura is slightly less than the F1 of package trafilatura on the real pages.
const leastTrafilatura = 0.95

func TestMainContentOfRealPagesByTrafilatura(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	p := newParser(t)
	p.cfg.MainText = trafilatura.Main
	scoreOf(t, p, leastTrafilatura)
}

func TestWhatTheOtherExtractorCannotReadIsReadFast(t *testing.T) {
	const page = "<html><body><p>The lighthouse stands at the end of the cape, and its light can be seen far out at sea.</p></body></html>"
	p := newParser(t)
	want := p.Parse(&document.Document{URL: "https://example.com/", ContentType: "text/html", Body: []byte(page)})
	for name, extract := range map[string]func([]byte) (string, error){
		"an error":     func([]byte) (string, error) { return "", trafilatura.ErrTooDeep },
		"too deep":     trafilatura.Main,
		"another text": func([]byte) (string, error) { return "Other text.", nil },
	} {
		p.cfg.MainText = extract
		body := page
		if name == "too deep" {
			body = strings.Repeat("<div>", 300) + page
		}
		got := p.Parse(&document.Document{URL: "https://example.com/", ContentType: "text/html", Body: []byte(body)})
		if same := got.Text.Main == want.Text.Main && got.Page.TextDigest == want.Page.TextDigest && got.Page.SimHash == want.Page.SimHash &&
			got.Page.WordCount == want.Page.WordCount; same != (name != "another text") {
			t.Errorf("%s: %q, %d words", name, got.Text.Main, got.Page.WordCount)
		}
	}
}

// mainScore returns precision, recall and F1 of the main content of the real pages, and the number
// of these pages.
func mainScore(tb testing.TB, parser *Parser, pages []parsetest.Page) (precision, recall, f1 float64, n int) {
	var p, r, np, nr float64
	for _, page := range pages {
		got := parser.Parse(&document.Document{URL: page.URL, ContentType: "text/html; charset=utf-8", Body: page.Body})
		pp, rr, hasP, hasR := score(page.Main, got.Text.Main)
		if hasP {
			p, np = p+pp, np+1
		}
		if hasR {
			r, nr = r+rr, nr+1
		}
		if testing.Verbose() && pp*rr < 0.85 {
			tb.Logf("precision %.3f recall %.3f %s %s", pp, rr, page.Name, page.URL)
		}
	}
	p, r = p/np, r/nr
	return p, r, 2 * p * r / (p + r), len(pages)
}

// scoreOf checks that a parser's F1 is not below least, on the articles and on the real pages.
func scoreOf(t *testing.T, parser *Parser, least float64) {
	t.Helper()
	for name, pages := range map[string][]parsetest.Page{"own": parsetest.Articles(t), "real": parsetest.Real(t)} {
		if pages == nil {
			continue
		}
		p, r, f1, n := mainScore(t, parser, pages)
		t.Logf("main content: F1 %.4f, precision %.4f, recall %.4f on %d %s pages", f1, p, r, n, name)
		if f1 < least {
			t.Errorf("F1 %.4f on %s pages, want at least %.2f", f1, name, least)
		}
	}
}
