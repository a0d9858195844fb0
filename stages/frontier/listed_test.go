package frontier

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Some crawls plan only URLs that sources list and URLs that they find. In such a crawl, a URL that only
// earlier crawls know is found again if a followed link or a redirect leads to it, or if a source lists it
// but a budget has no room. The URL keeps its history. Nothing else makes it due.
func TestAListedCrawlFindsKnownURLsAgain(t *testing.T) {
	fetched := func(r *schema.URLRecord) {
		r.Fetches, r.ETag, r.LastFetched, r.RevisitMS, r.NextDue, r.LastPlanned, r.Outcome = 3, "e", at, 40*dayMS, at+40*day, "2026-10.1", schema.OK
	}
	url := func(path string) string { return "http://a.example/" + path }
	b := bucket(t)
	earlier := seal(t, b, "2026-10", 1, 1,
		state(t, url("linked"), schema.StateFetched, fetched), state(t, url("target"), schema.StateGone, fetched), state(t, url("over"), schema.StateFetched, fetched),
		state(t, url("unlinked"), schema.StateFetched, fetched), state(t, url("waits"), schema.StateFound, nil), state(t, url("nofollow"), schema.StateFetched, fetched),
		state(t, url("recent"), schema.StateFetched, fetched), state(t, url("form"), schema.StateFound, nil),
		state(t, url("followed"), schema.StateFetched, func(r *schema.URLRecord) { fetched(r); r.LastFetched = at + 1 }), // by this crawl, without a plan
		state(t, "http://b.example/", schema.StateFetched, fetched))
	refused := func(path string, reason schema.SkipReason) schema.Refused {
		k := key(t, url(path))
		return schema.Refused{SURT: k.SURT, URL: k.URL, Domain: k.Domain, Reason: reason}
	}
	w := world{listed: true,
		fetches: []schema.Fetch{fetch(t, url("page"), schema.OK, nil), fetch(t, url("moved"), schema.Redirected, redirectTo(url("target")))},
		inlinks: []schema.Inlink{
			link(t, url("linked"), nil), link(t, url("recent"), nil), link(t, url("followed"), nil), link(t, "http://b.example/", nil),
			link(t, url("nofollow"), func(l *schema.Inlink) { l.Followed = false }),
			link(t, url("form"), func(l *schema.Inlink) { l.Followed, l.Form = false, schema.Linked(url("%66orm"), true) }),
		},
		refused: []schema.Refused{refused("over", schema.SkipBudget), refused("recent", schema.SkipRecent)},
	}
	urls, skips, _ := run(t, b, Default(), w, earlier)
	check(t, "urls", []string{
		"a.example/form deferred 5", "a.example/linked found 3", "a.example/moved redirected 2", "a.example/over found 0",
		"a.example/page fetched 2", "a.example/target found 3",
	}, states(urls))
	check(t, "skips", []string{"a.example/form nofollow 3", "a.example/nofollow nofollow 3", "a.example/over budget 0", "a.example/recent recent 0", "b.example/ out_of_scope 3"}, reasons(skips))
	for _, r := range urls {
		if r.URL != url("linked") {
			continue
		}
		if r.Fetches != 3 || r.ETag != "e" || r.FirstSeen != "2026-10.0" || r.NextDue != 0 || r.RevisitMS != 40*dayMS || r.LastPlanned != "2026-10.1" {
			t.Errorf("%+v", r)
		}
	}
}

// A URL that waits in the crawl's own tables is not written again in each round. If the plan
// refuses the URL because of a recent fetch, the URL keeps the due time that its last fetch set.
func TestAListedCrawlWritesAWaitingURLOnce(t *testing.T) {
	url := func(path string) string { return "http://a.example/" + path }
	waits := func(path string, change func(*schema.URLRecord)) schema.URLRecord {
		return state(t, url(path), schema.StateFound, func(r *schema.URLRecord) {
			r.Fetches, r.LastFetched, r.RevisitMS, r.Outcome, r.Depth, r.Priority = 1, at, 40*dayMS, schema.OK, 3, 650
			if change != nil {
				change(r)
			}
		})
	}
	known := func(path string) schema.URLRecord {
		return waits(path, func(r *schema.URLRecord) { r.State, r.NextDue = schema.StateFetched, at+40*day })
	}
	b := bucket(t)
	paths := []string{"closer", "gone", "linked", "moved", "over", "recent"}
	var before []schema.URLRecord
	for _, path := range paths {
		before = append(before, known(path))
	}
	earlier := seal(t, b, "2026-10", 1, 1, append(before, known("anew"))...)
	own := seal(t, b, "2026-11", 0, 1, waits("closer", func(r *schema.URLRecord) { r.Depth = 9 }), waits("gone", func(r *schema.URLRecord) { r.Outcome = schema.HTTP4xx }),
		waits("linked", nil), waits("moved", func(r *schema.URLRecord) { r.RedirectTo = url("target") }), waits("over", nil), waits("recent", nil))
	refused := func(path string, reason schema.SkipReason) schema.Refused {
		k := key(t, url(path))
		return schema.Refused{SURT: k.SURT, URL: k.URL, Domain: k.Domain, Reason: reason, Depth: 3}
	}
	w := world{listed: true,
		fetches: []schema.Fetch{fetch(t, url("page"), schema.OK, nil)},
		inlinks: []schema.Inlink{link(t, url("anew"), nil), link(t, url("closer"), nil), link(t, url("linked"), nil), link(t, url("recent"), nil)},
		refused: []schema.Refused{refused("gone", schema.SkipRecent), refused("moved", schema.SkipRecent), refused("over", schema.SkipBudget), refused("recent", schema.SkipRecent)},
	}
	urls, skips, results := run(t, b, Default(), w, earlier, own)
	check(t, "urls", []string{"a.example/anew found 3", "a.example/closer found 3", "a.example/moved redirected 3", "a.example/page fetched 2", "a.example/recent fetched 3"}, states(urls))
	check(t, "skips", []string{"a.example/gone recent 3", "a.example/moved recent 3", "a.example/over budget 3", "a.example/recent recent 3"}, reasons(skips))
	for _, r := range urls {
		if (r.URL == url("recent") || r.URL == url("moved")) && (r.NextDue != at+40*day || r.LastFetched != at) {
			t.Errorf("%+v", r)
		}
	}
	for _, c := range results[0].Counts {
		if c.Name == "waiting" && c.N != 4 {
			t.Errorf("%d URLs wait", c.N)
		}
	}
}

// A known URL that a list names waits if a budget refuses it, although it is not due without the list. A URL
// that is due stays due, with its reason, and one that the list of another round names keeps its state.
func TestAListedKnownURLOverABudgetWaits(t *testing.T) {
	url := func(path string) string { return "http://a.example/" + path }
	known := func(path string, s schema.URLState, due schema.Time) schema.URLRecord {
		return state(t, url(path), s, func(r *schema.URLRecord) {
			r.Fetches, r.ETag, r.LastFetched, r.RevisitMS, r.NextDue, r.DueReason, r.LastPlanned, r.FirstSeen = 3, "e", at-day, 40*dayMS, due, schema.DueSteady, "2026-11.0", "2026-11.0"
		})
	}
	refused := func(path, round string) schema.Refused {
		k := key(t, url(path))
		return schema.Refused{SURT: k.SURT, URL: k.URL, Domain: k.Domain, Reason: schema.SkipBudget, Listing: schema.Listing{ListedFirstRound: round, ListedLastRound: round}}
	}
	rows := []schema.URLRecord{
		known("ahead", schema.StateFetched, at+40*day), known("denied", schema.StateDenied, 0), known("due", schema.StateFetched, at-1),
		known("failed", schema.StateFailed, at+day), known("found", schema.StateFound, 0), known("gone", schema.StateGone, 0), known("unlisted", schema.StateFetched, at+40*day),
	}
	w := world{fetches: []schema.Fetch{fetch(t, url("page"), schema.OK, nil)}, refused: []schema.Refused{refused("unlisted", "2026-11.0")}}
	for _, path := range []string{"ahead", "denied", "due", "failed", "found", "gone"} {
		w.refused = append(w.refused, refused(path, "2026-11.1"))
	}
	for _, w.listed = range []bool{false, true} {
		want := []string{"a.example/ahead found 0", "a.example/denied found 0", "a.example/failed found 0", "a.example/gone found 0", "a.example/page fetched 2"}
		b := bucket(t)
		urls, skips, results := run(t, b, Default(), w, seal(t, b, "2026-11", 0, 1, rows...))
		check(t, "urls", want, states(urls))
		if len(skips) != len(rows) {
			t.Errorf("skips %+v", skips)
		}
		if n := results[0].Count("waiting"); n != int64(len(want)) { // the found one, and the others without the page
			t.Errorf("%d URLs wait", n)
		}
		for _, r := range urls {
			if r.State == schema.StateFound && (r.NextDue != 0 || r.DueReason != "" || r.Fetches != 3 || r.ETag != "e" || r.RevisitMS != 40*dayMS || r.ListedLastRound != "2026-11.1") {
				t.Errorf("%+v", r)
			}
		}
		// The next round refuses them again, and writes no further rows.
		next := w
		next.refused = nil
		for _, path := range []string{"ahead", "denied", "failed", "found", "gone"} {
			next.refused = append(next.refused, refused(path, "2026-11.0"))
		}
		b = bucket(t)
		waits := filter(urls, func(r schema.URLRecord) bool { return r.State == schema.StateFound })
		urls, _, results = run(t, b, Default(), next, seal(t, b, "2026-11", 0, 1, append(waits, rows[4])...))
		if check(t, "urls of the next round", []string{"a.example/page fetched 2"}, states(urls)); results[0].Count("waiting") != 5 {
			t.Errorf("next round: %v", results[0].Counts)
		}
	}
}
