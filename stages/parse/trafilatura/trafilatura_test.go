package trafilatura

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

const article = `<html><head><title>The lamp</title></head><body><nav><a href=/>Home</a> <a href=/a>All articles of this site</a></nav>
<article><h1>The lamp</h1><p>The <b>lighthouse</b> stands at the end of the cape, and its light can be seen far out at sea, every night of the year.</p>
<p>The keeper wrote down the weather each day for forty years<br>and left out no day, not even the one on which the lamp broke and the sea was high.</p>
<ul><li>A list of lamps that the keeper had seen in other towers.</li><li>And of those that he had not.</li></ul></article>
<footer><a href=/imprint>Imprint</a> © 2026 Example</footer></body></html>`

func TestMainContentAsLines(t *testing.T) {
	got, err := Main([]byte(article))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(got, "\n")
	if !strings.Contains(got, "The lighthouse stands at the end of the cape, and") || strings.Contains(got, "Imprint") || len(lines) < 4 {
		t.Errorf("%q", got)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		want      error
	}{
		{"nothing", "", nil},
		{"no content", "<html><body></body></html>", nil},
		{"megabytes", strings.Repeat("<p>text</p>", 1<<17), ErrTooLarge},
		{"a million elements", strings.Repeat("<i></i>", 100_000), ErrTooLarge},
		{"512 levels", strings.Repeat("<div>", 600) + "x", ErrTooDeep},
		{"formatting elements that every block opens again", strings.Repeat("<b id=1><i id=2>", 40) + strings.Repeat("<p>x", 10_000), ErrTooLarge},
		{"text below many elements", strings.Repeat("<div>", 90) + strings.Repeat("text ", 40_000), ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Main([]byte(tt.doc))
			if err == nil || got != "" || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%q, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// TestOddDocumentsWithinTheBoundsComeBack reads documents that are just within the bounds.
func TestOddDocumentsWithinTheBoundsComeBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for name, doc := range oddDocuments() {
		if _, err := Main([]byte(doc)); errors.Is(err, ErrTooLarge) || errors.Is(err, ErrTooDeep) {
			t.Errorf("%s is refused, but it should be within the bounds: %v", name, err)
		}
	}
}

// oddDocuments returns documents near the bounds that are slow to read as trees.
func oddDocuments() map[string]string {
	prose := "The lighthouse stands at the end of the cape, and its light can be seen far out at sea. "
	return map[string]string{
		"paragraphs":   strings.Repeat("<p>"+prose+"</p>", 10_000),
		"divs":         strings.Repeat("<div>"+prose+"</div>", 9_000),
		"short divs":   strings.Repeat("<div>x</div>", 19_000),
		"links":        strings.Repeat("<a href=/x>link</a> ", 14_000),
		"deep":         strings.Repeat("<div>", 95) + strings.Repeat("<p>"+prose, 900),
		"towers":       strings.Repeat(strings.Repeat("<div>", 90)+"x"+strings.Repeat("</div>", 90), 300),
		"formatting":   strings.Repeat("<b><i>", 3) + strings.Repeat("<p>"+prose, 6_000),
		"tables":       strings.Repeat("<table><tr><td>"+prose+"</table>", 6_000),
		"nested table": strings.Repeat("<table><tr><td>", 48) + strings.Repeat(prose, 100),
		"lists":        strings.Repeat("<ul><li>"+prose+"</ul>", 9_000),
		"br":           "<p>" + strings.Repeat("x<br>", 25_000),
		"spans":        "<p>" + strings.Repeat("<span>x</span>", 19_000),
		"attributes":   strings.Repeat(`<div class="`+strings.Repeat("comment share ", 200)+`">x</div>`, 300),
		"comments":     strings.Repeat("<!-- x -->", 50_000) + "<p>" + prose,
		"headings":     strings.Repeat("<h2>x</h2>", 19_000),
		"quotes":       strings.Repeat("<blockquote>"+prose+"</blockquote>", 9_000),
		"one text":     "<p>" + strings.Repeat(prose, 10_000),
		"one word":     "<article><p>" + strings.Repeat("x", 900_000),
		"json":         `<script type="application/ld+json">` + strings.Repeat("[", 500_000) + "</script><p>" + prose,
	}
}

func BenchmarkOdd(b *testing.B) {
	for name, doc := range oddDocuments() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Main([]byte(doc))
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	want, err := Main([]byte(article))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if got, err := Main([]byte(article)); got != want || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzMain(f *testing.F) {
	f.Add([]byte(article))
	f.Add([]byte("<table><b><p><table><td></b>x<svg><p>y"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := Main(doc)
		if err == nil && (got == "" || utf8.Valid(doc) && !utf8.ValidString(got)) {
			t.Errorf("%q", got)
		}
	})
}
