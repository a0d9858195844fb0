package planner

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/planner/source"
)

// TestCommonCrawlsIndexIsPlannedByConditions plans from files with the schema of Common Crawl's
// cc-index, which Spark wrote (testdata/cc-index/write.py): pages of version 1 with and without a
// dictionary, snappy and zstd, columns with nulls, and times as INT96 and in milliseconds. Each condition
// must select the URLs that Spark's SQL selects.
func TestCommonCrawlsIndexIsPlannedByConditions(t *testing.T) {
	text, err := os.ReadFile("testdata/cc-index/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string][]string
	if err := json.Unmarshal(text, &answers); err != nil || len(answers) < 5 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for _, crawl := range []string{"CC-MAIN-2017-51", "CC-MAIN-2026-43"} {
		for where, want := range answers {
			s, err := source.Files("testdata/cc-index/crawl="+crawl+"/subset=*/*.parquet#where="+where, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, parts, refused := commitAndRead(t, bucket(t), plan(t, Default(), s))
			var got []string
			for _, p := range parts {
				for _, u := range p {
					got = append(got, u.URL)
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(want, got); d != "" || len(want) == 0 || len(refused) > 0 {
				t.Errorf("%s, %s: %d URLs, %d refused\n%.2000s", crawl, where, len(got), len(refused), d)
			}
		}
	}
}

// TestASourceWhoseConditionNoRecordMeetsIsCounted plans from several sources, of which one or all have no
// record that meets the condition.
func TestASourceWhoseConditionNoRecordMeetsIsCounted(t *testing.T) {
	const index = "testdata/cc-index/crawl=CC-MAIN-2026-43/subset=*/*.parquet"
	none := func() source.Source {
		s, err := source.Files(index+"#where=fetch_status = 999", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	due := known(source.Entry{URL: "http://known.example/", Due: true})
	for _, sources := range [][]source.Source{{none(), lines("http://a.example/")}, {lines("http://a.example/"), none(), none()}, {none(), due}} {
		p, err := Make(t.Context(), Default(), request(t, sources...))
		if err != nil {
			t.Error(err)
			continue
		}
		for i, c := range p.Counts() {
			if empty := strings.HasPrefix(c.Name, index); c.NoMatch() != empty || (c.Entries == 0) != empty || c.Refused != 0 || p.Manifest().Sources[i] != c.Name {
				t.Errorf("%+v", c)
			}
		}
		if p.Manifest().URLs != 1 {
			t.Errorf("%d URLs", p.Manifest().URLs)
		}
	}
	_, err := Make(t.Context(), Default(), request(t, none(), none()))
	if !errors.Is(err, source.ErrEmpty) || !strings.Contains(err.Error(), "no record meets the condition") {
		t.Error(err)
	}
	empty, err := source.Files(os.DevNull, nil) // without a condition, an empty list is a mistake even beside others
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Make(t.Context(), Default(), request(t, lines("http://a.example/"), empty)); !errors.Is(err, source.ErrEmpty) {
		t.Error(err)
	}
}
