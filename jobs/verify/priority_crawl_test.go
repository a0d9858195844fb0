package verify

import (
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/lookup"
	"crawlbatch.io/crawlbatch/stages"
)

// After each round, the parts of the priority of each URL can be computed from the round's tables, and
// they sum to the stored priority. The weights decide which URL a budget leaves out.
func TestWeightsDecideAndAreExplained(t *testing.T) {
	day := time.Now().UTC().Format("/2006/01/02/news")
	web, addr := serveLinks(t, map[string]string{
		"a.test/": day + " /x?q=1 /x /dir/deep/page", "a.test" + day: "/x", "a.test/x": "/dir/deep/page /y", "a.test/y": "/x", "a.test/dir/deep/page": "/y http://b.test/",
		"b.test/": "http://a.test/ /z", "b.test/z": "",
	})
	l := newCrawlLab(t, addr, []string{"http://a.test/", "http://b.test/"}, func(c *config.Config) {
		c.Plan.Priority = priority.Weights{
			HostRank: 123, Directory: 45, Anchor: 67, Sitemap: 80, Inlinks: 90, Hop: 11, Query: 300, Freshness: 70, Overdue: 50, Change: 60, News: 400,
		}
		c.Frontier.Focus = config.Focus{Model: "0.5 deep\n", Points: 77}
		c.Plan.Budgets.Total = 4
	})
	if err := l.driver.Run(t.Context(), testCrawl, 0); err != nil {
		t.Fatal(err)
	}
	asked := web.pagesAsked()
	if !slices.Contains(asked, "http://a.test"+day) {
		t.Errorf("the budget left out the news of the day, but took %q", asked)
	}
	if slices.Contains(asked, "http://a.test/x?q=1") {
		t.Errorf("the budget took the URL of the lowest priority: %q", asked)
	}
	known, err := lookup.Open(t.Context(), l.bucket, testCrawl, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for round := range 2 {
		for _, r := range tabletest.Read[schema.URLRecord](t, l.bucket, layout.Table(stages.FileURLs, testCrawl, round, 0)) {
			k, err := urlkey.KeyOf(r.URL)
			if err != nil {
				t.Fatal(err)
			}
			found, err := known.Find(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			p := found.State.Priority
			if len(p.Parts) == 0 || priority.Sum(p.Parts) != p.Stored || p.AtPlan != nil && priority.Sum(p.AtPlan) != p.Next {
				t.Errorf("%s: %+v", r.URL, p)
			}
			looked++
		}
	}
	if looked < 7 {
		t.Errorf("%d rows were looked up", looked)
	}
}
