package parse

import (
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// TestSitemapsOfASyntheticWeb reads the sitemaps, indexes and feeds that the server of a synthetic
// web sends. Together, the sitemaps of a host must list exactly the URLs that the synthetic web
// defines.
func TestSitemapsOfASyntheticWeb(t *testing.T) {
	cfg := simweb.Default()
	cfg.Seed, cfg.Hosts, cfg.PagesPerHost = 7, 4, 8_000
	web, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, client := newParser(t), clientOf(t, web)
	get := func(url string) *Result {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return p.Parse(&document.Document{URL: url, ContentType: resp.Header.Get("Content-Type"), Body: body})
	}
	changed := schema.TimeOf(time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC))
	indexes := 0
	for host := range cfg.Hosts {
		var got, want []string
		var read func(url string)
		read = func(url string) {
			r := get(url)
			if r.Kind != Sitemap {
				t.Fatalf("%s is read as %s of %s", url, r.Kind, r.Page.MimeDetected)
			}
			for _, l := range r.Links {
				switch l.Kind {
				case schema.KindSitemapIndex:
					indexes++
					read(l.Target)
				case schema.KindSitemap:
					if got = append(got, l.Target); l.LastMod != changed {
						t.Fatalf("%s changed at %v", l.Target, l.LastMod)
					}
				}
			}
		}
		base := "http://" + web.Host(host)
		read(base + "/sitemap.xml")
		web.SitemapURLs(host, func(url string) bool {
			key, err := p.cfg.Canonicalizer.Canonical(url, "")
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, key.URL)
			return true
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-web +read):\n%.2000s", base, d)
		}
		if feed := get(base + "/feed.xml"); feed.Kind != Feed || len(feed.Links) == 0 || feed.Page.Title == "" {
			t.Errorf("%s/feed.xml is read as %s with %d links", base, feed.Kind, len(feed.Links))
		}
	}
	if indexes == 0 {
		t.Error("no host has an index")
	}
}
