package planner

import (
	"encoding/json"
	"os"
	"slices"
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
