package parse

import (
	"bytes"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/abadojack/whatlanggo"
	xhtml "golang.org/x/net/html"
	xcharset "golang.org/x/net/html/charset"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/html"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
	"crawlbatch.io/crawlbatch/stages/parse/text"
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

// benchPages returns the real pages, or the repository's own pages if there are no real pages.
func benchPages(tb testing.TB) (pages []document.Document, bytes int64) {
	for _, p := range parsetest.Documents(tb) {
		pages = append(pages, p)
		bytes += int64(len(p.Body))
	}
	return pages, bytes
}

// cpu returns the user and system time of this process, including garbage collection.
func cpu(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The benchmarks compare the stage with two functions. treeOf builds x/net/html's tree of a page.
// tokensOf runs only x/net/html's tokenizer.
func treeOf(tb testing.TB, d *document.Document) {
	if _, err := xhtml.Parse(bytes.NewReader(d.Body)); err != nil {
		tb.Fatal(err)
	}
}

func tokensOf(tb testing.TB, d *document.Document) {
	z := xhtml.NewTokenizer(bytes.NewReader(d.Body))
	for z.Next() != xhtml.ErrorToken {
	}
	if z.Err() != io.EOF {
		tb.Fatal(z.Err())
	}
}

// BenchmarkParse measures the whole stage and, in the same run, html.Parse of the same bytes. The
// stage must cost at most as much as html.Parse. The tokenizer alone takes about half of that time.
func BenchmarkParse(b *testing.B) {
	p := newParser(b)
	pages, n := benchPages(b)
	var stage, tree, tokens time.Duration
	rounds := 0
	for b.Loop() {
		began := cpu(b)
		for i := range pages {
			p.Parse(&pages[i])
		}
		parsed := cpu(b)
		for i := range pages {
			treeOf(b, &pages[i])
		}
		built := cpu(b)
		for i := range pages {
			tokensOf(b, &pages[i])
		}
		stage, tree, tokens = stage+parsed-began, tree+built-parsed, tokens+cpu(b)-built
		rounds++
	}
	perPage := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(rounds*len(pages)) }
	b.ReportMetric(perPage(stage), "µs-cpu/page")
	b.ReportMetric(perPage(tree), "µs-cpu/page-html.Parse")
	b.ReportMetric(perPage(tokens), "µs-cpu/page-tokenizer")
	b.ReportMetric(float64(n)*float64(rounds)/stage.Seconds()/1e6, "MB/cpu-s")
	b.ReportMetric(float64(stage)/float64(tree), "×html.Parse")
	b.ReportMetric(1, "×html.Parse-at-most")
}

// BenchmarkParseParts reports the time per page of each part of the stage, measured separately. The
// time of links is the difference between a run that keeps all links and a run that keeps one link
// per page. The rest of the time goes into words, terms, fingerprints and rows.
func BenchmarkParseParts(b *testing.B) {
	p, linkless := newParser(b), newParser(b)
	linkless.cfg.MaxLinks = 1
	pages, _ := benchPages(b)
	var h html.Reader
	var decoding, lexing, pass, mainText, language, whole, withoutLinks time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		for i := range pages {
			d := &pages[i]
			at := time.Now()
			took := func(part *time.Duration) {
				now := time.Now()
				*part += now.Sub(at)
				at = now
			}
			doc, _ := charset.Decode(d.Body, d.ContentType)
			took(&decoding)
			for z := (lexer.Lexer{Src: doc}); z.Next() != lexer.EndOfFile; {
			}
			took(&lexing)
			h.Reset(html.Config{MaxText: p.cfg.MaxText, MaxLinks: p.cfg.MaxLinks})
			all := h.Read(doc, false)
			took(&pass)
			h.Outline().Full(all)
			main := h.Outline().Main()
			took(&mainText)
			text.Language("", main)
			took(&language)
			p.Parse(d)
			took(&whole)
			linkless.Parse(d)
			took(&withoutLinks)
		}
	}
	report := func(d time.Duration, part string) {
		b.ReportMetric(float64(d.Microseconds())/float64(rounds*len(pages)), "µs-"+part)
	}
	links := whole - withoutLinks
	report(decoding, "decode")
	report(lexing, "lexer")
	report(pass-lexing, "elements")
	report(mainText, "main-text")
	report(language, "language")
	report(links, "links")
	report(whole-decoding-pass-mainText-language-links, "words-rows")
	report(whole, "all")
}

// BenchmarkParseQuality reports quality, not time. On real pages, the benchmark reports the F1 of
// the main content, which should be 0.96. On the corpus of many languages, the benchmark reports
// how many languages it detects in whole pages and in pieces of 100 to 200 characters, and how many
// charsets it detects in pages that declare none. It reports the same shares for whatlanggo and
// x/net/html/charset.
func BenchmarkParseQuality(b *testing.B) {
	for b.Loop() {
		articles := parsetest.Real(b)
		if articles == nil {
			articles = parsetest.Articles(b)
		}
		_, _, f1 := mainScore(b, newParser(b), articles)
		b.ReportMetric(f1, "F1-main")
		b.ReportMetric(0.93, "F1-main-at-least")
		pages, short := detectLanguages(b, text.Detect)
		b.ReportMetric(100*pages.Share(), "%language")
		b.ReportMetric(100*short.Share(), "%language-short")
		pages, short = detectLanguages(b, func(s string) string { return text.Declared(whatlanggo.Detect(s).Lang.Iso6393()) })
		b.ReportMetric(100*pages.Share(), "%language-whatlanggo")
		b.ReportMetric(100*short.Share(), "%language-short-whatlanggo")
		b.ReportMetric(100*parsetest.GuessCharsets(b, charset.Decode).Share(), "%charset")
		floor := parsetest.GuessCharsets(b, func(body []byte, contentType string) ([]byte, string) {
			e, name, _ := xcharset.DetermineEncoding(body, contentType)
			out, _ := e.NewDecoder().Bytes(body) // the decoders of the Encoding Standard never fail
			return out, name
		})
		b.ReportMetric(100*floor.Share(), "%charset-x/net")
	}
	b.ReportMetric(0, "ns/op")
}
