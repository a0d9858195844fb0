package verify

import (
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// TestOnlyLinksOfTheKindsThatConfigNamesAreFollowed follows only the areas, frames and
// redirects of a web.
func TestOnlyLinksOfTheKindsThatConfigNamesAreFollowed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.CrawlDelay, w.RetryAfter, w.Faults = 6, 40, 20*time.Millisecond, 0, faults.Quick
	l := newSimwebLab(t, w, func(c *config.Config) {
		c.Frontier.Follow, c.Frontier.Kinds = "any", []string{"area", "iframe", "redirect"}
	})
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	l.verify(t, false)

	met := map[string]bool{}
	for line := range l.web.Seeds() {
		met[line] = true
	}
	found := 0
	for link, err := range table.Concat[schema.Link](t.Context(), l.bucket, []string{layout.Table("links", testCrawl, 0, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		met[link.Target] = met[link.Target] || slices.Contains(l.cfg.Frontier.Kinds, string(link.Kind))
	}
	for u, err := range table.Concat[schema.URLRecord](t.Context(), l.bucket, []string{layout.Table("urls", testCrawl, 0, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		if u.State != schema.StateFound {
			continue
		}
		if found++; !met[u.URL] {
			t.Errorf("%s was found, although no link of a followed kind leads there", u.URL)
		}
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}
