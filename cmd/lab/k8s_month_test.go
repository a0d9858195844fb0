//go:build lab

package lab

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/stages"
)

// secondMonth crawls two months from the same list. The web does not change, so the second month
// must find every page unchanged. Between the months, the owner of a host asks not to be crawled.
// The opt-out list is an object in the bucket. The crawls also fetch the sitemaps that robots.txt names.
func secondMonth(t *testing.T, r *clusterRun, salt uint64) {
	const nobody = "# nobody has asked yet\n"
	c := r.crawl(t, clusterPlan{
		salt: salt, delay: 50 * time.Millisecond, hosts: 8, pages: 12, faultless: true, optOut: nobody,
		replace: []string{"partition_urls: 100", "partition_urls: 30, bucket_urls: 45"},
	})
	c.finish()
	var seeds []string
	for url := range c.web.Seeds() {
		seeds = append(seeds, url)
	}
	out, _, _ := strings.Cut(strings.TrimPrefix(seeds[0], "http://"), "/")
	crawltest.Write(t, c.optOut, nobody+out+"\n")
	began := time.Now()
	c.nextMonth(seeds)

	first, second := c.monthOf(demo.Crawl), c.monthOf(nextCrawl)
	t.Logf("first month %v, second month %v", first.counts, second.counts)
	isOut := func(url string) bool { return strings.HasPrefix(url, "http://"+out+"/") }
	if !slices.ContainsFunc(first.fetched, isOut) {
		t.Errorf("no page of %s was fetched in the first month", out)
	}
	if d := cmp.Diff(slices.DeleteFunc(first.fetched, isOut), second.fetched); d != "" {
		t.Errorf("the second month fetched other URLs (-want +got):\n%s", d)
	}
	n := second.counts
	if n["ok"]+n["changed true"]+n["changed unknown"]+n["first seen in "+nextCrawl] > 0 {
		t.Errorf("fetched anew: %v", n)
	}
	if n["not_modified not_modified"] == 0 || n["changed false"] == 0 ||
		n["not_modified not_modified"]+n["ok identical_payload"] != len(second.fetched) || n["first seen in "+demo.Crawl] < len(second.fetched) {
		t.Errorf("%v, of %d URLs", n, len(second.fetched))
	}
	if first.counts["skipped opt_out"] > 0 || n["skipped opt_out"] == 0 {
		t.Errorf("the opt-out list refused %d URLs, and later %d", first.counts["skipped opt_out"], n["skipped opt_out"])
	}
	sitemaps := map[bool]int{}
	for _, e := range c.stop() {
		late := e.Time.After(began)
		if late && e.Host == out {
			t.Errorf("%s%s was requested at %s, although %s is on the opt-out list", e.Host, e.Path, e.Time.Format("15:04:05.000"), out)
		}
		if strings.Contains(e.Path, "sitemap") {
			sitemaps[late]++
		}
	}
	if sitemaps[false] == 0 || sitemaps[true] == 0 {
		t.Errorf("%d requests for sitemaps, and later %d", sitemaps[false], sitemaps[true])
	}
}

// nextCrawl is the month after demo.Crawl.
const nextCrawl = "2000-02"

// nextMonth crawls and verifies the next month from lists in the bucket, and verifies the first month again.
func (c *clusterCrawl) nextMonth(urls []string) {
	c.t.Helper()
	bucket, _, _ := strings.Cut(strings.TrimPrefix(c.store, s3store.Scheme), "/")
	var sources []string
	for n := range 2 {
		name := fmt.Sprintf("urls-%d.txt", n)
		crawltest.Write(c.t, filepath.Join(c.server.Dir, bucket, name), strings.Join(urls[len(urls)*n/2:len(urls)*(n+1)/2], "\n")+"\n")
		sources = append(sources, "--source", s3store.Scheme+bucket+"/"+name)
	}
	month := []string{"--month", nextCrawl}
	for _, args := range [][]string{
		slices.Concat([]string{"plan", "--config", c.config, "--connect-to", "::" + c.addr}, sources, month),
		append(append([]string{"run", "--rounds", "2"}, month...), c.flags...),
		append([]string{"verify", "--one-clock"}, month...),
		{"verify", "--one-clock"},
	} {
		code, out := c.start(args[0], args[1:]...).wait()
		if code != 0 {
			c.t.Fatalf("%s: exit %d\n%s", strings.Join(args, " "), code, out)
		}
		if args[0] == "plan" && !strings.Contains(out, "continues "+demo.Crawl+" (2 rounds)") {
			c.t.Errorf("plan does not say which month it continues:\n%s", out)
		}
	}
}

// month holds what a month fetched, and counts of its rows.
type month struct {
	fetched []string       // planned URLs that were fetched or not modified, sorted
	counts  map[string]int // numbers of fetches by outcome and kind of revisit, of pages by the value of changed, of URLs by the month that first saw them, of skips by reason
}

// monthOf reads the tables of a month.
func (c *clusterCrawl) monthOf(crawl string) month {
	c.t.Helper()
	b := c.bucket()
	sealed, err := crawltest.SealedFiles(c.t.Context(), b, crawl)
	if err != nil {
		c.t.Fatal(err)
	}
	m := month{counts: map[string]int{}}
	for _, f := range crawltest.RowsOf[schema.Fetch](c.t, b, sealed, stages.FileFetches) {
		m.counts[strings.TrimSpace(fmt.Sprintf("%s %s", f.Outcome, f.Revisit))]++
		if f.Outcome == schema.OK || f.Outcome == schema.NotModified {
			m.fetched = append(m.fetched, f.URL)
		}
	}
	slices.Sort(m.fetched)
	for _, p := range crawltest.RowsOf[schema.Page](c.t, b, sealed, stages.FilePages) {
		changed := "unknown"
		if p.Changed != nil {
			changed = fmt.Sprint(*p.Changed)
		}
		m.counts["changed "+changed]++
	}
	for _, s := range crawltest.RowsOf[schema.Skip](c.t, b, sealed, stages.FileSkips) {
		m.counts["skipped "+string(s.Reason)]++
	}
	newest := map[string]schema.URLRecord{}
	for _, u := range crawltest.RowsOf[schema.URLRecord](c.t, b, sealed, stages.FileURLs) {
		newest[u.URL] = u
	}
	for _, u := range newest {
		if u.Fetches > 0 {
			crawl, _, _ := strings.Cut(u.FirstSeen, ".")
			m.counts["first seen in "+crawl]++
		}
	}
	return m
}
