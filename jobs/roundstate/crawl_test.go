package roundstate

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// The rules of a crawl need the variables of its config that are no secrets.
func TestCanonicalizersReadTheEnvironment(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const cfg = "plan: {strip_params: [\"${PARAM}\"]}\nfrontier: {follow: \"${FOLLOW}\"}\nfetch: {proxy: \"${PROXY}\"}\n"
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11", Config: cfg})
	t.Setenv("PARAM", "sid")
	_, err = Canonicalizers(t.Context(), b, []string{"2026-11"})
	if err == nil || !strings.Contains(err.Error(), "frontier.follow") || !strings.HasSuffix(err.Error(), "(not set in the environment: FOLLOW, PROXY)") {
		t.Errorf("without FOLLOW: %v", err)
	}
	t.Setenv("FOLLOW", "none") // PROXY, which may hold a password, is not needed
	rules, err := Canonicalizers(t.Context(), b, []string{"2026-11"})
	if err != nil {
		t.Fatal(err)
	}
	url, err := rules[0].URL("http://a.test/?sid=1&x=2", "")
	if err != nil || url != "http://a.test/?x=2" {
		t.Errorf("the rules make %q, %v", url, err)
	}
}
