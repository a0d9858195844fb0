package parsetest

import (
	"regexp"
	"strings"
	"testing"
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

// MainScore returns precision, recall and F1 of what an extractor takes for the main content of
// pages.
func MainScore(tb testing.TB, pages []Page, extract func(Page) string) (precision, recall, f1 float64) {
	var p, r, np, nr float64
	for _, page := range pages {
		pp, rr, hasP, hasR := score(page.Main, extract(page))
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
	return p, r, 2 * p * r / (p + r)
}
