package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// askedSitemaps lists the sitemaps that a month requested because robots.txt names them, sorted.
func (m *monthsLab) askedSitemaps(month string) (urls []string) {
	for _, q := range rowsOfMonth[schema.Request](m, month, stages.FileRequests) {
		if q.Purpose == schema.ForSitemap {
			urls = append(urls, q.URL)
		}
	}
	slices.Sort(urls)
	return urls
}

// For any number of buckets, a crawl requests each sitemap that robots.txt names once a month, and every
// invariant holds (m.crawl verifies each month).
func TestACrawlFetchesTheSitemapsThatRobotsTxtNames(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	var first []string
	for i, change := range []func(*config.Config){
		func(*config.Config) {},
		func(c *config.Config) { c.Plan.BucketURLs, c.Plan.PartitionURLs = 30, 20 },
	} {
		m := newMonthsLab(t, directory(t))
		change(m.cfg)
		m.cfg.Plan.Budgets.Default = 60
		var want []string
		for h := range 8 {
			path := "/robots.txt"
			if m.web.Profile(h) == simweb.RobotsMoved {
				path = m.web.Look(h, path).Location
			}
			if strings.Contains(string(m.web.Look(h, path).Body), "Sitemap:") {
				want = append(want, "http://"+m.web.Host(h)+"/sitemap.xml")
			}
		}
		slices.Sort(want)
		seeds := slices.Collect(m.web.Seeds())
		m.crawl(firstMonth, stages.SystemClock{}, 2, seeds, nil)
		got := m.askedSitemaps(firstMonth)
		for _, u := range want {
			if n := len(slices.DeleteFunc(slices.Clone(got), func(g string) bool { return g != u })); n != 1 {
				t.Errorf("%s was requested %d times", u, n)
			}
		}
		var rows []string
		listed := 0
		for _, l := range rowsOfMonth[schema.Link](m, firstMonth, stages.FileLinks) {
			rows = append(rows, fmt.Sprintf("link %s %d %s %s %d", l.Source, l.Ordinal, l.Kind, l.Target, l.LastMod))
			if l.Kind == schema.KindSitemap && slices.Contains(want, l.Source) {
				listed++
			}
		}
		if listed == 0 || len(want) < 3 {
			t.Fatalf("%d entries of %d sitemaps", listed, len(want))
		}
		states := map[string]schema.URLRecord{}
		for _, u := range rowsOfMonth[schema.URLRecord](m, firstMonth, stages.FileURLs) {
			rows = append(rows, fmt.Sprintf("url %s %s %s %d %d %s", u.FirstSeen, u.URL, u.State, u.Depth, u.Inlinks, u.ContentDigest))
			states[u.URL] = u
		}
		for _, f := range rowsOfMonth[schema.Fetch](m, firstMonth, stages.FileFetches) {
			rows = append(rows, fmt.Sprintf("fetch %s %s", f.URL, f.Outcome))
			if slices.Contains(want, f.URL) {
				t.Errorf("%s was planned", f.URL)
			}
		}
		for _, u := range want {
			if s := states[u]; s.State != schema.StateFetched || s.LastPlanned != "" || s.NextDue != 0 || s.ContentDigest == "" {
				t.Errorf("%s: %+v", u, s)
			}
		}
		slices.SortFunc(rows, cmp.Compare[string])
		if i == 0 {
			first = rows
		} else if d := gocmp.Diff(first, rows); d != "" {
			t.Errorf("the rows depend on the number of buckets: %.2000s", d)
		}

		// The second month requests them again, although everything else has its history.
		m.crawl(secondMonth, monthAhead{}, 1, seeds, nil)
		if d := gocmp.Diff(want, slices.DeleteFunc(m.askedSitemaps(secondMonth), func(u string) bool { return !slices.Contains(want, u) })); d != "" {
			t.Errorf("the second month (-want +got):\n%s", d)
		}
	}
}

// With `planned`, as in older crawls, and with `none`, a crawl does not request the sitemaps that
// robots.txt names. With `none`, it does not follow the entries of a planned sitemap either.
func TestSitemapsMayBeLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, mode := range []string{config.SitemapsIfPlanned, config.SitemapsIgnored} {
		m := newMonthsLab(t, directory(t))
		m.cfg.Fetch.Sitemaps = mode
		m.crawl(firstMonth, stages.SystemClock{}, 1, []string{"http://" + m.web.Host(0) + "/sitemap.xml"}, nil)
		if got := m.askedSitemaps(firstMonth); len(got) > 0 {
			t.Errorf("%s: %v", mode, got)
		}
		found := 0
		for _, u := range rowsOfMonth[schema.URLRecord](m, firstMonth, stages.FileURLs) {
			if u.State == schema.StateFound {
				found++
			}
		}
		if (found > 0) != (mode == config.SitemapsIfPlanned) {
			t.Errorf("%s: %d URLs of the planned sitemap wait", mode, found)
		}
	}
}
