package planning

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// A page may get validators only if the store has its links, because a 304 brings no links. The key
// of the WARC file with the page's content says which part of links would have the page's links.
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
	has, err := (&Basis{Bucket: b, Of: &manifest.Crawl{Crawl: "2026-10"}, Config: config.Default(), Earlier: []*manifest.Sealed{sealed}}).storedLinks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		warc string
		want bool
	}{
		{layout.WARC("2026-10", 1, "p", 0, 1, 0), true},
		{layout.WARC("2026-10", 1, "p", 2, 3, 7), true},
		{layout.WARC("2026-10", 1, "p", 1, 1, 0), false},
		{layout.WARC("2026-10", 0, "p", 0, 1, 0), false},
		{"", false},
	} {
		for range 2 {
			if got := has(tt.warc); got != tt.want {
				t.Errorf("%q: %v", tt.warc, got)
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
		Bucket: b, Of: &manifest.Crawl{Crawl: "2026-11"}, Config: cfg, Earlier: []*manifest.Sealed{{Crawl: "2026-10"}},
	}
	t.Setenv("FOLLOW", "none") // PROXY, which may hold a password, is not needed
	for param, want := range map[string]bool{"sid": true, "utm_*": false} {
		t.Setenv("PARAM", param)
		has, err := basis.storedLinks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := has(layout.WARC("2026-10", 0, "p", 0, 1, 0)); got != want {
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
