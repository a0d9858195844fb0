package show

import (
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// Summary writes what a sealed round contains.
func Summary(w io.Writer, s *manifest.Sealed) {
	n := map[string]int64{}
	for _, c := range s.Counts {
		n[c.Name] = c.N
	}
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("round %d of %s: %s, %s, %s, %s, %s", s.Round, s.Crawl, Count(n["plan.urls"], "URL"),
		Count(n["publish.pages"], "page"), Count(n["publish.duplicates"], "duplicate"), Count(n["merge.links"], "link"), Count(n["plan.hosts"], "host"))
	var outcomes []string
	for _, o := range schema.Outcomes {
		if c := n["merge.outcome."+string(o)]; c > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%s %d", o, c))
		}
	}
	line("  outcomes: %s", strings.Join(outcomes, ", "))
	if layout.IsReparse(s.Crawl) {
		line("  parsed again: %s; with their old rows: %d withheld (noarchive), %d with a damaged record",
			Count(n["fetch.reparse.pages"], "page"), n["fetch.reparse.withheld"], n["fetch.reparse.damaged"])
	}
	line("  frontier: %s for the next round, %d skipped", Count(n["frontier.waiting"], "URL"), n["frontier.skips"])
	_, _ = io.WriteString(w, text.String())
}
