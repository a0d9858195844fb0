package parse

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// leastF1 is slightly less than the F1 on the articles and on the real pages.
const leastF1 = 0.975

func TestMainContentOfRealPages(t *testing.T) {
	parser := newParser(t)
	for name, pages := range map[string][]parsetest.Page{"own": parsetest.Articles(t), "real": parsetest.Real(t)} {
		if pages == nil {
			continue
		}
		p, r, f1 := mainScore(t, parser, pages)
		t.Logf("main content: F1 %.4f, precision %.4f, recall %.4f on %d %s pages", f1, p, r, len(pages), name)
		if f1 < leastF1 {
			t.Errorf("F1 %.4f on %s pages, want at least %.3f", f1, name, leastF1)
		}
	}
}

// mainScore returns precision, recall and F1 of the parser's main content.
func mainScore(tb testing.TB, parser *Parser, pages []parsetest.Page) (precision, recall, f1 float64) {
	return parsetest.MainScore(tb, pages, func(page parsetest.Page) string {
		d := document.Document{URL: page.URL, ContentType: "text/html; charset=utf-8", Body: page.Body}
		return parser.Parse(&d).Text.Main
	})
}
