package show

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

func TestContinuesNamesTheNewestCrawlAndWhatItSkips(t *testing.T) {
	crawls := []manifest.ContinuedCrawl{{Crawl: "2026-07", Rounds: 4}, {Crawl: "2026-08", Rounds: 1}, {Crawl: "2026-09", Rounds: 3}}
	for _, tt := range []struct {
		crawls  []manifest.ContinuedCrawl
		skipped []string
		want    string
	}{
		{nil, nil, ""},
		{nil, []string{"2026-10"}, "continues no earlier month; skips 2026-10, which has no finished round\n"},
		{crawls[:1], nil, "continues 2026-07 (4 rounds)\n"},
		{crawls[:2], nil, "continues 2026-08 (1 round) and 1 crawl before it\n"},
		{crawls, []string{"2026-11", "2026-10"}, "continues 2026-09 (3 rounds) and 2 crawls before it; skips 2026-11, which has no finished round; skips 2026-10, which has no finished round\n"},
	} {
		var out strings.Builder
		if err := Continues(&out, tt.crawls, tt.skipped); err != nil || out.String() != tt.want {
			t.Errorf("%q, %v, want %q", out.String(), err, tt.want)
		}
	}
}
