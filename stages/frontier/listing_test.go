package frontier

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// A URL to which a listed URL leads is not listed. A URL over its budget is, and keeps the place
// while it waits.
func TestTheListingsOfPlansReachTheURLs(t *testing.T) {
	listed := func(source string) schema.Listing {
		return schema.Listing{ListedFirstSource: source, ListedFirstAt: "1", ListedFirstRound: "2026-11.1", ListedLastSource: source, ListedLastAt: "2", ListedLastRound: "2026-11.1"}
	}
	over := key(t, "http://a.example/over")
	urls, _, _ := run(t, bucket(t), Default(), world{
		fetches: []schema.Fetch{fetch(t, "http://a.example/from", schema.OK, func(f *schema.Fetch) { f.FinalURL, f.Listing = "http://a.example/to", listed("a.txt") })},
		inlinks: []schema.Inlink{link(t, "http://a.example/linked", nil)},
		refused: []schema.Refused{{SURT: over.SURT, URL: over.URL, Domain: over.Domain, Reason: schema.SkipBudget, Source: "b.txt", Listing: listed("b.txt")}},
	})
	want := map[string]schema.Listing{"http://a.example/from": listed("a.txt"), "http://a.example/over": listed("b.txt"), "http://a.example/to": {}, "http://a.example/linked": {}}
	for _, r := range urls {
		if w, ok := want[r.URL]; !ok || r.Listing != w {
			t.Errorf("%s: %+v, want %+v", r.URL, r.Listing, w)
		}
		delete(want, r.URL)
	}
	if len(want) > 0 {
		t.Errorf("no rows of %v", want)
	}
}
