package worker

import (
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
)

// A crawl that may plan no URL from sitemaps requests none of those that robots.txt names.
func TestSitemapsAreFetchedOnlyIfTheirEntriesMayBePlanned(t *testing.T) {
	for _, c := range []struct {
		yaml string
		want bool
	}{
		{"fetch: {sitemaps: robots}", true},
		{"fetch: {sitemaps: robots}\nfrontier: {follow: host}", true},
		{"fetch: {sitemaps: robots}\nfrontier: {kinds: [a, sitemap]}", true},
		{"fetch: {sitemaps: planned}", false},
		{"fetch: {sitemaps: none}", false},
		{"fetch: {sitemaps: robots}\nfrontier: {follow: none}", false},
		{"fetch: {sitemaps: robots}\nfrontier: {kinds: [a]}", false},
		{"fetch: {sitemaps: robots}\nplan: {max_depth: 0}", false},
	} {
		cfg, err := config.Read("crawlbatch.yaml", []byte(c.yaml), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		if got := FetchConfig(cfg, "").Sitemaps; (got != sitemaps.Limits{}) != c.want {
			t.Errorf("%q: the limits are %+v", c.yaml, got)
		}
	}
}
