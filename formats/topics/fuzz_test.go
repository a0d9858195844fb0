package topics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// mostTerms is the number of terms that parse keeps of a page. A term has at most two words of 64 bytes.
const mostTerms = 128

// FuzzTopics takes pages of any bytes, in languages of any name, through the tokenizer, the counts and the
// scores.
func FuzzTopics(f *testing.F) {
	f.Add([]byte("old lamp, old lamp\nsea"), []byte("灯塔的光和灯塔 灯塔"), "eng", "zho")
	f.Add([]byte("\xff\xfe\x00\x00lamp\x00lamp \x00"), []byte("ก\u0e47ก\u0e47ก\u0e47 ก\u0e47ก\u0e47ก\u0e47"), "", "th\x00a")
	f.Add([]byte(strings.Repeat("a", 300)+" "+strings.Repeat("b\u0300", 90)), []byte("1 2 3 3,000.5 x1y2 x1y2"), "und", "\xff")
	f.Fuzz(func(t *testing.T, first, second []byte, one, two string) {
		var normal text.Normal
		var counter text.Terms
		var pages []schema.WorkingPage
		for i, body := range [][]byte{first, second, first} {
			language := []string{one, two, two}[i]
			if strings.Contains(language, "\x00") {
				language = "zxx" // parse gives codes of letters only
			}
			p := schema.WorkingPage{}
			p.URL, p.Language = fmt.Sprintf("http://a.test/%d", i), language
			normal.Normalize(string(body))
			counter.Count(&normal, language)
			for _, term := range counter.Top(mostTerms) {
				p.Terms, p.Counts = append(p.Terms, term.Text), append(p.Counts, term.Count)
				if term.Text == "" || len(term.Text) > 129 || term.Count < 1 || !utf8.ValidString(term.Text) || strings.Contains(term.Text, "\x00") {
					t.Errorf("term %q, %d times", term.Text, term.Count)
				}
			}
			if unique := slices.Compact(slices.Sorted(slices.Values(p.Terms))); len(unique) != len(p.Terms) || len(unique) > mostTerms {
				t.Errorf("%d terms, %d of them unique", len(p.Terms), len(unique))
			}
			pages = append(pages, p)
		}
		plan := &manifest.Plan{Buckets: 3}
		c, err := NewCounter(plan, t.TempDir(), 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.memory = 200
		for i := range pages {
			if err := c.Add(&pages[i]); err != nil {
				t.Fatal(err)
			}
		}
		rows := termsOf(t, [][]schema.TermPages{collect(t, c.Rows(t.Context()))})
		if d := cmp.Diff(rows, termsOf(t, newSplit(t, pages, 2, 1))); d != "" {
			t.Errorf("in one partition and in two: %s", d)
		}
		for _, row := range rows {
			if row.Pages < 1 || row.Pages > row.Sampled {
				t.Errorf("%+v", row)
			}
		}
		for i, topics := range topicsOf(t, pages, rows, 1) {
			if len(topics) != min(len(pages[i].Terms), MaxTopics) { // no term is too rare in three pages
				t.Errorf("page %d has %d terms and the topics %q", i, len(pages[i].Terms), topics)
			}
		}
	})
}
