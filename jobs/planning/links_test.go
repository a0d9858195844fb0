package planning

import (
	"bytes"
	"fmt"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// A page may get validators only if the store has its links, because a 304 brings no links. The key
// of the WARC file with the page's content says which part of links would have the page's links. Crawls that began in format 5
// do not use stored links: they send validators only for pages from which they follow no link.
func TestAPlanKnowsWhichLinksAreStored(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sealed := &manifest.Sealed{Crawl: "2026-10", Round: 1}
	for n := range 3 {
		key := layout.Table(stages.FileLinks, "2026-10", 1, n)
		sealed.Files = append(sealed.Files, manifest.File{Dataset: stages.FileLinks, Key: key})
		if n == 1 {
			continue // somebody has deleted it
		}
		if _, err := store.CreateBytes(t.Context(), b, key, []byte("links")); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []int{5, 6, 16} { // since format 16, also a crawl from the frontier
		crawl := &manifest.Crawl{Header: manifest.Header{Format: format}, Crawl: "2026-10", Listed: format < 16}
		cfg := config.Default()
		has, err := (&Basis{Bucket: b, Of: crawl, Config: cfg, Earlier: []*manifest.Sealed{sealed}}).hasLinks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			warc string
			want bool
		}{
			{layout.WARC("2026-10", 1, "p", 0, 1, 0), format >= 6},
			{layout.WARC("2026-10", 1, "p", 2, 3, 7), format >= 6},
			{layout.WARC("2026-10", 1, "p", 1, 1, 0), false},
			{layout.WARC("2026-10", 0, "p", 0, 1, 0), false},
			{"", false},
		} {
			for range 2 {
				for depth, want := range map[int]bool{0: tt.want, cfg.Plan.MaxDepth: tt.want || format == 5} {
					if got := has(tt.warc, depth); got != want {
						t.Errorf("format %d: %q at depth %d: %v", format, tt.warc, depth, got)
					}
				}
			}
		}
	}
}

// A config may name variables of the environment. A plan takes the links of an earlier month if both
// configs find the same links with the values of now.
func TestAPlanTakesLinksOfConfigsThatNameVariables(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const text = "plan: {strip_params: [\"${PARAM}\"]}\nfrontier: {follow: \"${FOLLOW}\"}\nfetch: {proxy: \"${PROXY}\", max_sitemap: 50MiB}\n"
	crawl, err := manifest.Encode(&manifest.Crawl{Crawl: "2026-10", Config: text})
	if err == nil {
		// A crawl of format 2 has no ledger.
		crawl = bytes.Replace(crawl, fmt.Appendf(nil, `"format_version": %d`, schema.FormatVersion), []byte(`"format_version": 2`), 1)
		_, err = store.CreateBytes(t.Context(), b, layout.CrawlManifest("2026-10"), crawl)
	}
	if err == nil {
		_, err = store.CreateBytes(t.Context(), b, layout.Table(stages.FileLinks, "2026-10", 0, 0), []byte("links"))
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Plan.StripParams = []string{"sid"}
	basis := &Basis{
		Bucket: b, Of: &manifest.Crawl{Header: manifest.Header{Format: schema.FormatVersion}, Crawl: "2026-11"}, Config: cfg, Earlier: []*manifest.Sealed{{Crawl: "2026-10"}},
	}
	t.Setenv("FOLLOW", "none") // PROXY, which may hold a password, is not needed
	for param, want := range map[string]bool{"sid": true, "utm_*": false} {
		t.Setenv("PARAM", param)
		has, err := basis.hasLinks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := has(layout.WARC("2026-10", 0, "p", 0, 1, 0), 0); got != want {
			t.Errorf("the earlier config strips %q: %t", param, got)
		}
	}
}

// A store may have more WARC files than fit in memory, so a plan remembers the answers for some of them only.
func TestAPlanRemembersFewWARCFiles(t *testing.T) {
	l := &linkParts{stored: map[string]bool{layout.Table(stages.FileLinks, "2026-10", 1, 2): true}, known: map[string]bool{}}
	for i := range 2*maxKnown + 10 {
		part := i % 5
		if got := l.has(layout.WARC("2026-10", 1, "p", part, 1, i)); got != (part == 2) {
			t.Fatalf("WARC file %d of partition %d: %v", i, part, got)
		}
		if len(l.known) > maxKnown {
			t.Fatalf("%d answers are remembered", len(l.known))
		}
	}
	if len(l.known) != 10 {
		t.Errorf("%d answers are remembered, want 10", len(l.known))
	}
}
