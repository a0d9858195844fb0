package verify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// spelledWeb lists pages and their links. A link is an anchor unless it names another element, as in
// img:/img. The robots.txt denies some spellings of URLs that are not canonical.
var spelledWeb = map[string]string{
	"a.test/":           "/q?z=1&a=2 /q?z=1&a=3 /five?a&b&c /five?b&a&c /five?c&a&b /five?c&b&a /five?a&c&b /five?b&c&a /next /to img:/img?z=1&a=2 feed:/feed?z=1&a=2 img:/alone?z=1&a=2",
	"a.test/next":       "/q?a=2&z=1 /five?a&b&c /d?a=2&z=1 /img?a=2&z=1 /feed?a=2&z=1 /moved /moved-five",
	"a.test/moved":      "302 /q?a=2&z=1",
	"a.test/moved-five": "302 /five?a&b&c",
	"stranger.test/":    "http://a.test/open?a=1&b=2&c=3 http://a.test/open?c=3&a=1&b=2 http://a.test/open?c=3&b=2&a=1 http://a.test/open?b=2&c=3&a=1 http://a.test/open?b=2&a=1&c=3 http://a.test/open?a=1&c=3&b=2",
	"a.test/robots.txt": "User-agent: *\nDisallow: /q?z=1&a=2\nDisallow: /d?z=1&a=2\nDisallow: /img?z\nDisallow: /feed?z\nDisallow: /open?c=3\nDisallow: /listed?b\n",
	"a.test/to":         "302 /d?z=1&a=2",
}

// TestASpellingGoesFromALinkToThePlan crawls spelledWeb. The first round learns a spelling that
// robots.txt denies. The second and third round must therefore deny the page. In the second round,
// links lead only to the canonical form. In the third round, a redirect leads to the page.
func TestASpellingGoesFromALinkToThePlan(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	var mu sync.Mutex
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Host+r.RequestURI)
		mu.Unlock()
		page := spelledWeb[r.Host+r.URL.Path]
		if to, ok := strings.CutPrefix(page, "302 "); ok {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, page)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		for link := range strings.FieldsSeq(page) {
			format := "<a href=%q>link</a>\n"
			for prefix, other := range map[string]string{"img:": "<img src=%q>\n", "feed:": "<link rel=alternate type=application/rss+xml href=%q>\n"} {
				if ref, ok := strings.CutPrefix(link, prefix); ok {
					format, link = other, ref
				}
			}
			fmt.Fprintf(w, format, strings.ReplaceAll(link, "&", "&amp;"))
		}
	}))
	defer web.Close()
	dir := t.TempDir()
	b, err := dirstore.Open(filepath.Join(dir, "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "urls.txt")
	if err := os.WriteFile(list, []byte("http://a.test/\nhttp://stranger.test/\nhttp://a.test/listed?a&b\nhttp://a.test/listed?b&a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(web.Listener.Addr().String())
	if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: b, Crawl: testCrawl, Sources: []source.Source{from}, Config: cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: dir, Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
	if err := drive(t.Context(), b, cfg, dir, 3); err != nil {
		t.Fatal(err)
	}
	var plans, skips []string
	for round := range 3 {
		p, _, err := roundstate.FindPlan(t.Context(), b, testCrawl, round)
		if err != nil {
			t.Fatal(err)
		}
		rows := tabletest.Read[schema.PlannedURL](t, b, p.Partitions[0].File.Key)
		for _, u := range rows {
			plans = append(plans, strings.TrimSpace(fmt.Sprint(round, " ", u.URL, " ", strings.Join(u.Spellings, " "))))
		}
		skipped := tabletest.Read[schema.Skip](t, b, layout.Table(stages.FileSkips, testCrawl, round, 0))
		for _, s := range skipped {
			skips = append(skips, fmt.Sprint(round, " ", s.URL, " ", s.Reason))
		}
	}
	for what, c := range map[string][2][]string{
		"plans": {plans, {
			"0 http://a.test/", "0 http://a.test/listed?a&b http://a.test/listed?b&a", "0 http://stranger.test/",
			"1 http://a.test/next", "1 http://a.test/open?a=1&b=2&c=3", "1 http://a.test/q?a=2&z=1 http://a.test/q?z=1&a=2",
			"1 http://a.test/q?a=3&z=1 http://a.test/q?z=1&a=3", "1 http://a.test/to",
			"2 http://a.test/d?a=2&z=1 http://a.test/d?z=1&a=2",
			"2 http://a.test/feed?a=2&z=1 http://a.test/feed?z=1&a=2", "2 http://a.test/img?a=2&z=1 http://a.test/img?z=1&a=2",
			"2 http://a.test/moved", "2 http://a.test/moved-five",
		}},
		"skips": {skips, {"0 http://a.test/five?a&b&c spellings", "1 http://a.test/five?a&b&c spellings", "2 http://a.test/five?a&b&c spellings"}},
		"asked": {asked, {
			"a.test/", "a.test/moved", "a.test/moved-five", "a.test/next", "a.test/open?a=1&b=2&c=3", "a.test/q?a=3&z=1", "a.test/robots.txt", "a.test/to", "stranger.test/", "stranger.test/robots.txt",
		}},
	} {
		slices.Sort(c[0])
		if diff := cmp.Diff(c[1], c[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	report, err := Run(t.Context(), Options{Bucket: b, Crawl: testCrawl, Round: -1, Config: cfg, Scratch: dir, Sample: 1})
	if err != nil || report.Found() > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}
