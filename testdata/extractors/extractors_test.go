// Package extractors compares the main content that stages/parse chooses with the choice of
// go-trafilatura. It is a module of its own, because that library links a date parser that
// takes 0.2 s and 50 MiB at every start of a program.
package extractors

import (
	"bytes"
	"testing"
	"time"

	"github.com/markusmobius/go-trafilatura"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// TestMainContentIsChosenAtLeastAsWell compares the F1 on the repository's articles and, if they
// are there, on the real pages.
func TestMainContentIsChosenAtLeastAsWell(t *testing.T) {
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := parse.New(parse.Config{Canonicalizer: canon, Agent: "examplebot"})
	if err != nil {
		t.Fatal(err)
	}
	ours := func(page parsetest.Page) string {
		return parser.Parse(&document.Document{URL: page.URL, ContentType: "text/html; charset=utf-8", Body: page.Body}).Text.Main
	}
	theirs := func(page parsetest.Page) string {
		r, err := trafilatura.Extract(bytes.NewReader(page.Body), trafilatura.Options{
			EnableFallback: true, ExcludeComments: true, HtmlDateMode: trafilatura.Disabled,
		})
		if err != nil {
			return ""
		}
		return r.ContentText
	}
	for name, pages := range map[string][]parsetest.Page{"own": parsetest.Articles(t), "real": parsetest.Real(t)} {
		if pages == nil {
			continue
		}
		score := func(extract func(parsetest.Page) string) (f1 float64, each time.Duration) {
			began := time.Now()
			_, _, f1 = parsetest.MainScore(t, pages, extract)
			return f1, time.Since(began) / time.Duration(len(pages))
		}
		a, timeA := score(ours)
		b, timeB := score(theirs)
		t.Logf("%d %s pages: stages/parse F1 %.4f in %v a page, go-trafilatura %.4f in %v", len(pages), name, a, timeA.Round(10*time.Microsecond), b, timeB.Round(10*time.Microsecond))
		if a < b {
			t.Errorf("%s pages: F1 %.4f, go-trafilatura has %.4f", name, a, b)
		}
	}
}
