package topics

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

var update = flag.Bool("update", false, "write testdata/corpus.json; then run testdata/tfidf.py")

const (
	corpusFile = "testdata/corpus.json" // the terms of pages by language
	learnFile  = "testdata/tfidf.json"  // what scikit-learn makes of them
)

// learnPage is a page of corpus.json.
type learnPage struct {
	Terms  []string `json:"terms"`
	Counts []int32  `json:"counts"`
}

// learned is what scikit-learn says about the pages of a language.
type learned struct {
	IDF    map[string]float64   `json:"idf"`
	Scores []map[string]float64 `json:"scores"` // by page, without a norm
}

// writeCorpus writes the terms of the repository's pages in many languages, and of made pages: 1,200 in
// Esperanto, of which a term must be in two, and one without terms.
func writeCorpus(t *testing.T) {
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse.New(parse.Config{Canonicalizer: canon})
	if err != nil {
		t.Fatal(err)
	}
	corpus := map[string][]learnPage{}
	for _, page := range append(parsetest.Corpus(t), parsetest.Articles(t)...) {
		r := p.Parse(&document.Document{URL: page.URL, ContentType: "text/html", Body: page.Document("text/html").Body, Fetched: time.Unix(0, 0)})
		language := schema.TermLanguage(r.Page.Language)
		corpus[language] = append(corpus[language], learnPage{r.Terms.Terms, r.Terms.Counts})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1200 {
		var made learnPage
		for range random.IntN(6) {
			term := fmt.Sprintf("vorto%d", int(math.Pow(1200, random.Float64())))
			if !slices.Contains(made.Terms, term) {
				made.Terms, made.Counts = append(made.Terms, term), append(made.Counts, 1+random.Int32N(4))
			}
		}
		corpus["epo"] = append(corpus["epo"], made)
	}
	body, err := json.Marshal(corpus)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(corpusFile, append(body, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func load[T any](t *testing.T, name string) (v T) {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// corpusPages returns the pages of the corpus in the order of their languages.
func corpusPages(corpus map[string][]learnPage) (pages []schema.WorkingPage) {
	for _, language := range slices.Sorted(maps.Keys(corpus)) {
		for i, p := range corpus[language] {
			page := schema.WorkingPage{WorkingColumns: schema.WorkingColumns{Terms: p.Terms, Counts: p.Counts}}
			page.URL = fmt.Sprintf("https://%s.test/%d", language, i)
			if language != schema.UnknownLanguage {
				page.Language = language
			}
			pages = append(pages, page)
		}
	}
	return pages
}

// TestScikitLearnGivesTheSameWeights compares frequencies, weights and topics with those of
// TfidfVectorizer, which testdata/tfidf.py computed from the same terms.
func TestScikitLearnGivesTheSameWeights(t *testing.T) {
	if *update {
		writeCorpus(t)
	}
	corpus, want := load[map[string][]learnPage](t, corpusFile), load[map[string]learned](t, learnFile)
	pages := corpusPages(corpus)
	rows := termsOf(t, newSplit(t, pages, 3, 4))
	idf := map[string]map[string]float64{}
	for _, row := range rows {
		if idf[row.Language] == nil {
			idf[row.Language] = map[string]float64{}
		}
		idf[row.Language][row.Term] = float64(microIDF(row.Sampled, row.Pages)) / 1e6
	}
	topics := topicsOf(t, pages, rows, memory)
	next := 0
	for _, language := range slices.Sorted(maps.Keys(corpus)) {
		learn := want[language]
		if len(learn.Scores) != len(corpus[language]) {
			t.Fatalf("%s: %d pages, but %s has %d: run testdata/tfidf.py", language, len(corpus[language]), learnFile, len(learn.Scores))
		}
		if len(idf[language]) != len(learn.IDF) {
			t.Errorf("%s: %d terms count, of scikit-learn %d", language, len(idf[language]), len(learn.IDF))
		}
		for term, w := range learn.IDF {
			if math.Abs(idf[language][term]-w) > 6e-7 {
				t.Errorf("%s: the idf of %q is %v, of scikit-learn %v", language, term, idf[language][term], w)
			}
		}
		for i, page := range corpus[language] {
			compareTopics(t, pages[next].URL, page, learn.Scores[i], topics[next])
			next++
		}
	}
}

// compareTopics checks that topics are the terms with the highest of scikit-learn's scores, in their order.
// Scores that differ only by rounding may change places.
func compareTopics(t *testing.T, url string, page learnPage, scores map[string]float64, topics []string) {
	t.Helper()
	if len(topics) != min(len(scores), MaxTopics) {
		t.Errorf("%s: %d topics of %d terms", url, len(topics), len(scores))
		return
	}
	best := slices.Sorted(maps.Values(scores))
	slices.Reverse(best)
	for i, topic := range topics {
		count := page.Counts[slices.Index(page.Terms, topic)]
		if math.Abs(scores[topic]-best[i]) > 6e-7*float64(count) {
			t.Errorf("%s: topic %d, %q, has the score %v; of scikit-learn's scores %v comes there", url, i, topic, scores[topic], best[i])
		}
	}
}

// newSplit counts pages in the given numbers of partitions and buckets, and returns the rows of each run.
func newSplit(t *testing.T, pages []schema.WorkingPage, partitions, buckets int) (runs [][]schema.TermPages) {
	t.Helper()
	p := &manifest.Plan{Buckets: buckets, URLs: int64(len(pages))}
	for n := range partitions {
		c, err := NewCounter(p, t.TempDir(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range pages {
			if i%partitions == n {
				if err := c.Add(&pages[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		runs = append(runs, collect(t, c.Rows(t.Context())))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return runs
}

// termsOf returns the rows of terms that the runs of a round give, in the order of languages and terms.
func termsOf(t *testing.T, runs [][]schema.TermPages) []schema.Term {
	t.Helper()
	return termsWith(t, runs, sampleOf(0, maxSampled))
}

func termsWith(t *testing.T, runs [][]schema.TermPages, s sample) (out []schema.Term) {
	t.Helper()
	byBucket := map[int32][]schema.TermPages{}
	for _, run := range runs {
		if !slices.IsSortedFunc(run, tabletest.ByKey(schema.TermPagesKey)) {
			t.Fatal("a run is not sorted")
		}
		for _, row := range run {
			byBucket[row.Bucket] = append(byBucket[row.Bucket], row)
		}
	}
	for _, rows := range byBucket {
		slices.SortStableFunc(rows, tabletest.ByKey(schema.TermPagesKey))
		if err := s.count(summed(seq(rows)), func(row *schema.Term) error { out = append(out, *row); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(out, func(a, b schema.Term) int {
		return cmp.Or(strings.Compare(a.Language, b.Language), strings.Compare(a.Term, b.Term))
	})
	return out
}

// topicsOf returns the topics of each page, from a scorer with the given memory.
func topicsOf(t *testing.T, pages []schema.WorkingPage, terms []schema.Term, memory int64) (all [][]string) {
	t.Helper()
	var rows []pageRow
	for i := range pages {
		rows = append(rows, pageRow{pages[i].URL, pages[i].Language, pages[i].Terms, pages[i].Counts})
	}
	s := &Scorer{terms: seq(terms), rows: table.Pull(seq(rows)), memory: memory}
	defer s.Close()
	for i := range pages {
		topics, ok, err := s.Topics(pages[i].URL)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		all = append(all, topics)
	}
	return all
}

func seq[T any](rows []T) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func collect[T any](t *testing.T, rows func(yield func(T, error) bool)) (all []T) {
	t.Helper()
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}
