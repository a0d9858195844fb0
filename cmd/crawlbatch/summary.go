package main

import (
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/show"
)

// printSummary says what a sealed round holds.
func printSummary(w io.Writer, s *manifest.Sealed) {
	n := counts(s)
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("round %d of %s: %s, %s, %s, %s, %s", s.Round, s.Crawl, count(n["plan.urls"], "URL"),
		count(n["publish.pages"], "page"), count(n["publish.duplicates"], "duplicate"), count(n["merge.links"], "link"), count(n["plan.hosts"], "host"))
	var outcomes []string
	for _, o := range schema.Outcomes {
		if c := n["merge.outcome."+string(o)]; c > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%s %d", o, c))
		}
	}
	line("  outcomes: %s", strings.Join(outcomes, ", "))
	if layout.IsReparse(s.Crawl) {
		line("  parsed again: %s; as they were: %d withheld (noarchive), %d with a damaged record",
			count(n["fetch.reparse.pages"], "page"), n["fetch.reparse.withheld"], n["fetch.reparse.damaged"])
	}
	line("  frontier: %s for the next round, %d skipped", count(n["frontier.waiting"], "URL"), n["frontier.skips"])
	_, _ = io.WriteString(w, text.String())
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
	fmt.Fprintf(show.Folding(w), "\ntables: %[1]s/tables, raw responses: %[1]s/warc\n", strings.TrimSuffix(storeName, "/"))
	fmt.Fprintf(w, `query them with DuckDB:
  crawlbatch views --dialect duckdb --month %[2]s%[1]s > views.sql
  duckdb -init views.sql -c "SELECT url, title, inlinks, rank FROM pages ORDER BY inlinks DESC LIMIT 10"
`, storeFlag(storeName), crawl)
}
