package parse

import (
	"bytes"
	"testing"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"golang.org/x/net/html"
)

// newParser returns a parser with the default configuration.
func newParser(tb testing.TB) *Parser {
	tb.Helper()
	canon, err := urlkey.New([]string{"utm_*", "fbclid", "gclid"})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := New(Config{Canonicalizer: canon, Agent: "examplebot"})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// benchPages are the real pages, or the project's own where those are absent.
func benchPages(b *testing.B) (pages []Document, bytes int64) {
	for _, p := range samplePages(b) {
		pages = append(pages, p)
		bytes += int64(len(p.Body))
	}
	return pages, bytes
}

// BenchmarkParse is the whole stage; compare it with BenchmarkHTMLParse.
func BenchmarkParse(b *testing.B) {
	p := newParser(b)
	pages, n := benchPages(b)
	b.SetBytes(n)
	b.ReportAllocs()
	for b.Loop() {
		for i := range pages {
			p.Parse(&pages[i])
		}
	}
}

// BenchmarkHTMLParse is x/net/html's tree of the same bytes: the measure of the stage.
func BenchmarkHTMLParse(b *testing.B) {
	pages, n := benchPages(b)
	b.SetBytes(n)
	b.ReportAllocs()
	for b.Loop() {
		for i := range pages {
			if _, err := html.Parse(bytes.NewReader(pages[i].Body)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkTokens is x/net/html's tokenizer alone.
func BenchmarkTokens(b *testing.B) {
	pages, n := benchPages(b)
	b.SetBytes(n)
	b.ReportAllocs()
	for b.Loop() {
		for i := range pages {
			for z := html.NewTokenizer(bytes.NewReader(pages[i].Body)); z.Next() != html.ErrorToken; {
			}
		}
	}
}
