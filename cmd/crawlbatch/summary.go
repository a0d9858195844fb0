package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/worker"
)

// printSummary says what the finished rounds of a crawl hold.
func printSummary(ctx context.Context, w io.Writer, b store.Bucket, crawl string) error {
	rounds, err := worker.Sealed(ctx, b, crawl)
	if err != nil {
		return err
	}
	for _, s := range rounds {
		n := counts(s)
		fmt.Fprintf(w, "round %d of %s: %s, %s, %s, %s, %s\n", s.Round, crawl, count(n["plan.urls"], "URL"),
			count(n["publish.pages"], "page"), count(n["publish.duplicates"], "duplicate"), count(n["merge.links"], "link"), count(n["plan.hosts"], "host"))
		var outcomes []string
		for _, o := range schema.Outcomes {
			if c := n["merge.outcome."+string(o)]; c > 0 {
				outcomes = append(outcomes, fmt.Sprintf("%s %d", o, c))
			}
		}
		fmt.Fprintf(w, "  outcomes: %s\n", strings.Join(outcomes, ", "))
		if layout.IsReparse(crawl) {
			fmt.Fprintf(w, "  parsed again: %s; as they were: %d withheld (noarchive), %d with a damaged record\n",
				count(n["fetch.reparse.pages"], "page"), n["fetch.reparse.withheld"], n["fetch.reparse.damaged"])
		}
		fmt.Fprintf(w, "  frontier: %s for the next round, %d skipped\n", count(n["frontier.waiting"], "URL"), n["frontier.skips"])
	}
	return nil
}

func counts(s *manifest.Sealed) map[string]int64 {
	n := map[string]int64{}
	for _, c := range s.Counts {
		n[c.Name] = c.N
	}
	return n
}

// printQuery says where the tables are and how to ask them.
func printQuery(w io.Writer, storeName, crawl string) {
	fmt.Fprintf(w, `
tables: %[1]s/tables, raw responses: %[1]s/warc
query them with DuckDB:
  crawlbatch views --dialect duckdb --month %[3]s%[2]s > views.sql
  duckdb -init views.sql -c "SELECT url, title, inlinks, rank FROM pages ORDER BY inlinks DESC LIMIT 10"
`, strings.TrimSuffix(storeName, "/"), storeFlag(storeName), crawl)
}
