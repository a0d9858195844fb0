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

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// linkedWeb lists pages and their links. A link is an anchor unless it names another element, as in
// img:/img. The robots.txt denies some forms of URLs and allows others.
var linkedWeb = map[string]string{
	"a.test/": "/q?z=1&a=2 /q?z=1&a=3 /r?z=1&a=2 /five?b&a&c /five?a&b&c /five?c&a&b /next /to /back img:/img?z=1&a=2 feed:/feed?z=1&a=2 img:/alone?z=1&a=2 " +
		"/short?b&a&& /short?b&a& /least?c&b&a /least?b&c&a /track?utm_source=x&id=1 /track?id=1&utm_medium=longer /empty? /%65scaped?b%2d&a /known?b&a /gone?b&a",
	"a.test/next":       "/later /d?a=2&z=1 /img?a=2&z=1 /feed?a=2&z=1 /moved /known?a&b",
	"a.test/later":      "/q?a=2&z=1 /gone?a&b",
	"a.test/gone":       "404",
	"a.test/gone?a&b":   "",
	"a.test/moved":      "302 /to-where?b&a",
	"stranger.test/":    "http://a.test/open?b=2&a=1 http://a.test/open?a=1&b=2 http://a.test/far?b=2&a=1 http://a.test/known?a&b http://a.test/five?c&b&a#part",
	"a.test/robots.txt": "User-agent: *\nDisallow: /q?z=1&a=2\nDisallow: /r?a=2&z=1\nDisallow: /d?z=1&a=2\nDisallow: /img?z\nDisallow: /feed?z\nDisallow: /listed?b\n",
	"a.test/to":         "302 /d?z=1&a=2",
	"a.test/back":       "302 /back?",
	"a.test/back?":      "",
}

// TestAFormGoesFromALinkToTheRequest crawls linkedWeb. A URL is asked for in one form: that of its source, else that of
// its own domain, else that of a stranger; the canonical one if it is among them, else the shortest. Where robots.txt
// denies this form, or the server does not know it, and the domain then links the URL in another form, the next round asks
// for that one.
func TestAFormGoesFromALinkToTheRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	var mu sync.Mutex
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Host+r.RequestURI)
		mu.Unlock()
		page, ok := linkedWeb[r.Host+r.RequestURI]
		if !ok {
			page = linkedWeb[r.Host+r.URL.Path]
		}
		if page == "404" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
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
	if err := os.WriteFile(list, []byte("http://a.test/\nhttp://stranger.test/\nhttp://a.test/listed?b&a\nhttp://a.test/listed?a&b\nhttp://a.test/source?b&a\nhttp://a.test/source?a&b&\n"), 0o644); err != nil {
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
	if err := drive(t.Context(), b, cfg, dir, 4); err != nil {
		t.Fatal(err)
	}
	var plans []string
	for round := range 4 {
		p, _, err := roundstate.FindPlan(t.Context(), b, testCrawl, round)
		if err != nil {
			t.Fatal(err)
		}
		rows := tabletest.Read[schema.PlannedURL](t, b, p.Partitions[0].File.Key)
		for _, u := range rows {
			plans = append(plans, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", round, u.SentFrom, strings.TrimPrefix(u.URL, "http://"), strings.TrimPrefix(u.Sent, "http://a.test"))))
		}
	}
	for what, c := range map[string][2][]string{
		"plans": {plans, {
			"0 source a.test/", "0 source a.test/listed?a&b", "0 source a.test/source?a&b /source?b&a", "0 source stranger.test/",
			"1 domain a.test/back", "1 domain a.test/empty /empty?", "1 domain a.test/escaped?a&b- /%65scaped?b%2d&a", "1 domain a.test/five?a&b&c",
			"1 domain a.test/gone?a&b /gone?b&a", "1 domain a.test/known?a&b /known?b&a", "1 domain a.test/least?a&b&c /least?b&c&a", "1 domain a.test/next",
			"1 domain a.test/q?a=2&z=1 /q?z=1&a=2", "1 domain a.test/q?a=3&z=1 /q?z=1&a=3", "1 domain a.test/r?a=2&z=1 /r?z=1&a=2", "1 domain a.test/short?a&b /short?b&a&",
			"1 domain a.test/to", "1 domain a.test/track?id=1 /track?utm_source=x&id=1", "1 stranger a.test/far?a=1&b=2 /far?b=2&a=1", "1 stranger a.test/open?a=1&b=2",
			"2 domain a.test/d?a=2&z=1", "2 domain a.test/feed?a=2&z=1", "2 domain a.test/img?a=2&z=1", "2 domain a.test/later",
			"2 domain a.test/moved", "3 domain a.test/gone?a&b", "3 domain a.test/q?a=2&z=1",
		}},
		"asked": {asked, {
			"a.test/", "a.test/%65scaped?b%2d&a", "a.test/back", "a.test/back?",
			"a.test/d?a=2&z=1", "a.test/empty?", "a.test/far?b=2&a=1", "a.test/feed?a=2&z=1",
			"a.test/five?a&b&c", "a.test/gone?a&b", "a.test/gone?b&a", "a.test/img?a=2&z=1",
			"a.test/known?b&a", "a.test/later", "a.test/least?b&c&a", "a.test/listed?a&b",
			"a.test/moved", "a.test/next", "a.test/open?a=1&b=2", "a.test/q?a=2&z=1",
			"a.test/q?z=1&a=3", "a.test/r?z=1&a=2", "a.test/robots.txt", "a.test/short?b&a&",
			"a.test/source?b&a", "a.test/to", "a.test/to-where?b&a", "a.test/track?utm_source=x&id=1",
			"stranger.test/", "stranger.test/robots.txt",
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
