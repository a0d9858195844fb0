package topics

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
)

func pageOf(url, language string, terms ...string) schema.WorkingPage {
	p := schema.WorkingPage{}
	p.URL, p.Language = url, language
	for _, term := range terms {
		p.Terms, p.Counts = append(p.Terms, term), append(p.Counts, 1)
	}
	return p
}

func TestFrequenciesAreThoseOfALanguage(t *testing.T) {
	rows := termsOf(t, newSplit(t, []schema.WorkingPage{
		pageOf("http://a.test/1", "eng", "lamp", "old lamp"), pageOf("http://a.test/2", "eng", "lamp"), pageOf("http://a.test/3", "eng"),
		pageOf("http://a.test/4", "deu", "lamp"), pageOf("http://a.test/5", "", "lamp", "灯塔"),
	}, 2, 3))
	want := []schema.Term{
		{Language: "deu", Term: "lamp", Pages: 1, Sampled: 1},
		{Language: "eng", Term: "lamp", Pages: 2, Sampled: 3}, {Language: "eng", Term: "old lamp", Pages: 1, Sampled: 3},
		{Language: "und", Term: "lamp", Pages: 1, Sampled: 1}, {Language: "und", Term: "灯塔", Pages: 1, Sampled: 1},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
}

// TestPartitionsBucketsAndMemoryDoNotMatter compares terms and topics of the corpus in many divisions.
func TestPartitionsBucketsAndMemoryDoNotMatter(t *testing.T) {
	pages := corpusPages(load[map[string][]learnPage](t, corpusFile))
	want := termsOf(t, newSplit(t, pages, 1, 1))
	topics := topicsOf(t, pages, want, memory)
	for _, split := range [][2]int{{1, 7}, {5, 1}, {4, 16}} {
		if d := cmp.Diff(want, termsOf(t, newSplit(t, pages, split[0], split[1]))); d != "" {
			t.Errorf("%d partitions, %d buckets: %s", split[0], split[1], d)
		}
	}
	if d := cmp.Diff(topics, topicsOf(t, pages, want, 1)); d != "" {
		t.Errorf("with a batch for each page: %s", d)
	}
	p := &manifest.Plan{Buckets: 1}
	c, err := NewCounter(p, t.TempDir(), 1<<12)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.memory = 1000 // spills every few pages
	for i := range pages {
		if err := c.Add(&pages[i]); err != nil || c.held >= c.memory {
			t.Fatalf("held %d: %v", c.held, err)
		}
	}
	if d := cmp.Diff(want, termsOf(t, [][]schema.TermPages{collect(t, c.Rows(t.Context()))})); d != "" {
		t.Errorf("with spills: %s", d)
	}
}

// TestALargeRoundSamplesEachLanguage samples at most 100 pages of a language, from a round of 4,000.
func TestALargeRoundSamplesEachLanguage(t *testing.T) {
	const most = 100
	var pages []schema.WorkingPage
	for i := range 4000 {
		language := "eng"
		if i%20 == 0 {
			language = "deu" // 200 pages
		}
		pages = append(pages, pageOf(fmt.Sprintf("https://a.test/%d", i), language, "lamp", fmt.Sprintf("lamp%d", i%5)))
	}
	s := sampleOf(int64(len(pages)), most)
	if s.top != 7 || s.floor != 3 {
		t.Fatalf("levels %d to %d", s.floor, s.top) // 4000/2^7 = 31 is the first number of at most 50
	}
	var runs [][]schema.TermPages
	for n := range 3 {
		p := &manifest.Plan{Buckets: 2}
		c, err := NewCounter(p, t.TempDir(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.sample = s
		for i := n; i < len(pages); i += 3 {
			if err := c.Add(&pages[i]); err != nil {
				t.Fatal(err)
			}
		}
		runs = append(runs, collect(t, c.Rows(t.Context())))
	}
	want := map[string]int64{}
	for _, language := range []string{"deu", "eng"} { // counts with the definition, one level after another
		for level := int32(20); level >= s.floor; level-- {
			n := int64(0)
			for i := range pages {
				if l, ok := s.level(pages[i].URL); ok && pages[i].Language == language && l >= level {
					n++
				}
			}
			if n <= most {
				want[language] = n
			}
		}
	}
	got := map[string]int64{}
	for _, row := range termsWith(t, runs, s) {
		if row.Sampled > most {
			t.Errorf("%+v: more than %d pages are sampled", row, most)
		}
		got[row.Language] = row.Sampled
		if row.Term == "lamp" && row.Pages != row.Sampled {
			t.Errorf("%+v: every page has this term", row)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestSampleOf(t *testing.T) {
	for _, c := range []struct {
		urls       int64
		floor, top int32
	}{{0, 0, 0}, {10_000_000, 0, 0}, {10_000_001, 0, 1}, {80_000_000, 0, 4}, {1_000_000_000, 4, 8}, {math.MaxInt64, 37, 41}} {
		if s := sampleOf(c.urls, maxSampled); s.floor != c.floor || s.top != c.top {
			t.Errorf("%d URLs: levels %d to %d, want %d to %d", c.urls, s.floor, s.top, c.floor, c.top)
		}
	}
}

func TestRareTermsDoNotCount(t *testing.T) {
	for n, want := range map[int64]int64{0: 1, 1: 1, 999: 1, 1000: 2, 3999: 4, 4000: 5, 599_999: 5, 600_000: 6, maxSampled: 100} {
		if got := MinPages(n); got != want {
			t.Errorf("MinPages(%d) = %d, want %d", n, got, want)
		}
	}
	rows := []schema.TermPages{
		{Language: "eng", Pages: 2500}, {Language: "eng", Term: "lamp", Pages: 3}, {Language: "eng", Term: "lmap", Pages: 2}, {Language: "fra", Pages: 1}, {Language: "fra", Term: "phare", Pages: 1},
	}
	want := []schema.Term{{Language: "eng", Term: "lamp", Pages: 3, Sampled: 2500}, {Language: "fra", Term: "phare", Pages: 1, Sampled: 1}}
	if d := cmp.Diff(want, termsOf(t, [][]schema.TermPages{rows})); d != "" {
		t.Error(d)
	}
}

func TestTopicsOfEqualScoresKeepTheirOrder(t *testing.T) {
	p := pageOf("http://a.test/", "eng")
	for i := range 20 {
		p.Terms, p.Counts = append(p.Terms, fmt.Sprintf("t%02d", 20-i)), append(p.Counts, 2)
	}
	p.Terms, p.Counts = append(p.Terms, "rare", "unknown"), append(p.Counts, 2, 9)
	var terms []schema.Term
	for _, term := range p.Terms[:20] {
		terms = append(terms, schema.Term{Language: "eng", Term: term, Pages: 50, Sampled: 100})
	}
	terms = append(terms, schema.Term{Language: "eng", Term: "rare", Pages: 1, Sampled: 100}, schema.Term{Language: "deu", Term: "unknown", Pages: 1, Sampled: 1})
	got := topicsOf(t, []schema.WorkingPage{p}, terms, memory)[0]
	if want := append([]string{"rare"}, p.Terms[:14]...); !slices.Equal(got, want) {
		t.Errorf("topics %v, want %v", got, want)
	}
}

func TestAnErrorOfTheInputIsNamed(t *testing.T) {
	p := pageOf("http://a.test/", "eng", "lamp")
	broken := errors.New("broken")
	s := &Scorer{memory: memory, rows: table.Pull(seq([]pageRow{{URL: p.URL, Language: "eng", Terms: p.Terms, Counts: p.Counts}}))}
	s.terms = func(yield func(schema.Term, error) bool) { yield(schema.Term{}, broken) }
	if _, _, err := s.Topics(p.URL); !errors.Is(err, broken) || !strings.Contains(err.Error(), "read terms") {
		t.Errorf("error %v", err)
	}
	s = &Scorer{memory: memory, rows: table.Pull(seq([]pageRow{{URL: p.URL}})), terms: seq[schema.Term](nil)}
	if _, ok, err := s.Topics("http://b.test/"); ok || err != nil {
		t.Errorf("a page that is not the next: %t, %v", ok, err)
	}
}
