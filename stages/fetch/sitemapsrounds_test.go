package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// If a round plans the URL of a sitemap, neither this round nor a later one requests it a second time
// because robots.txt or an index names it.
func TestAPlannedSitemapIsRequestedOnceInACrawl(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lines := "Sitemap: /named.xml\nSitemap: /index.xml\n"
		serve := site(map[string]string{
			"a.com/index.xml": index("/child.xml", "/other.xml"), "a.com/named.xml": urlset("/q1"), "a.com/child.xml": urlset("/q2"),
			"a.com/other.xml": urlset("/q3"), "a.com/unnamed.xml": urlset("/q4"), "a.com/moved.xml": "301 /there.xml", "a.com/there.xml": urlset("/q5"),
		})
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				_, _ = w.Write([]byte(lines))
				return
			}
			serve(w, r)
		}, append(urls("a.com", 3), "http://a.com/named.xml", "http://a.com/child.xml", "http://a.com/unnamed.xml", "http://a.com/moved.xml")...)
		l.parser = mapParser{}
		r := l.mustRun(&Input{})
		lines += "Sitemap: /unnamed.xml\nSitemap: /there.xml\n"
		for round := range 3 {
			time.Sleep(48 * time.Hour) // until robots.txt is read again
			l.nextRound(fmt.Sprintf("http://a.com/p9%d", round))
			r = l.mustRun(&Input{Before: []*manifest.Result{r}})
		}
		for _, p := range []string{"named", "child", "other", "unnamed", "moved", "there"} {
			n := l.web.count("/" + p + ".xml")
			if n != 1 {
				t.Errorf("/%s.xml was requested %d times", p, n)
			}
		}
	})
}

// The rows of sitemaps outlast a round that plans no URL of their bucket.
func TestSitemapsOutlastARoundWithoutTheirBucket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hosts := map[int]string{}
		for i := 0; len(hosts) < 2; i++ {
			d := fmt.Sprintf("site%d.com", i)
			hosts[urlkey.Bucket(d, 2)] = d
		}
		files := map[string]string{}
		for _, h := range hosts {
			files[h+"/robots.txt"], files[h+"/s.xml"] = "Sitemap: /s.xml\n", urlset("/q")
		}
		l := newSitemapLab(t, files, "http://"+hosts[0]+"/p0")
		var before []*manifest.Result
		for round, bucket := range []int{0, 1, 1, 0} {
			if round > 0 {
				time.Sleep(48 * time.Hour)
				l.nextRound(fmt.Sprintf("http://%s/p%d", hosts[bucket], round))
			}
			l.plan.Buckets, l.plan.Partitions[0].Bucket = 2, bucket
			before = []*manifest.Result{l.mustRun(&Input{Before: before})}
		}
		if n := l.web.count("/s.xml"); n != 2 {
			t.Errorf("the sitemaps of two hosts were requested %d times", n)
		}
	})
}

// If the disk is full, an attempt may fetch, record nothing, and still hand back the partition. The next
// attempt must nevertheless know what the previous round knew.
func TestWhatTheRoundBeforeKnewOutlastsAFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newSitemapLab(t, map[string]string{"a.com/robots.txt": "Sitemap: /s.xml\n", "a.com/s.xml": urlset("/q")}, urls("a.com", 3)...)
		before := []*manifest.Result{l.mustRun(nil)}
		l.nextRound("http://a.com/p9")
		if err := l.toldAt(l.bucket, "/plan-", &Input{Before: before}); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatal(err)
		}
		var d manifest.Checkpoint
		key := layout.Checkpoint(l.task.Crawl, l.task.Round, l.task.Partition)
		version, _, err := manifest.Load(t.Context(), l.bucket, key, &d)
		if err != nil {
			t.Fatal(err)
		}
		d.ElapsedMS, d.Hosts = 1500, []manifest.HostClock{{Host: "a.com", DelayMS: 2000, BaseMS: 2000}}
		if _, err := manifest.Swap(t.Context(), l.bucket, key, &d, version); err != nil {
			t.Fatal(err)
		}
		l.mustRun(&Input{Before: before})
		if robots, sitemaps := l.web.askedRobots()["a.com"], l.web.count("/s.xml"); robots != 1 || sitemaps != 1 {
			t.Errorf("robots.txt was requested %d times, its sitemap %d times", robots, sitemaps)
		}
	})
}
