package frontier

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/stages"
)

// history makes the states that some rounds wrote, each about some of the same URLs.
func history(t *testing.T, random *rand.Rand, rounds int) (written [][]schema.URLRecord) {
	all := []schema.URLState{schema.StateFound, schema.StateFetched, schema.StateDeferred, schema.StateFailed, schema.StateGone}
	for n := range rounds {
		var rows []schema.URLRecord
		for u := range 200 {
			if random.IntN(3) == 0 {
				rows = append(rows, state(t, fmt.Sprintf("http://h.d%d.example/%d", u%20, u), all[random.IntN(len(all))], func(r *schema.URLRecord) {
					r.Depth, r.Fetches, r.LastPlanned = int32(n), int32(random.IntN(9)), fmt.Sprintf("2026-%d.0", 10+n%2)
					r.Form = schema.Linked([]string{"", r.URL + "?", r.URL + "?&"}[random.IntN(3)], random.IntN(2) == 0)
				}))
			}
		}
		written = append(written, rows)
	}
	return written
}

// randomWorld makes a round that fetches some URLs and finds links to other URLs. Most of the URLs
// are also in history.
func randomWorld(t *testing.T, random *rand.Rand, buckets int) world {
	w := world{buckets: buckets}
	for u := range 250 {
		url := fmt.Sprintf("http://h.d%d.example/%d", u%20, u)
		switch random.IntN(4) {
		case 0:
			w.fetches = append(w.fetches, fetch(t, url, []schema.Outcome{schema.OK, schema.HTTP4xx, schema.Timeout, schema.Deferred}[random.IntN(4)], nil))
		case 1:
			w.inlinks = append(w.inlinks, link(t, url, func(l *schema.Inlink) { l.Form = schema.Linked([]string{"", url + "?"}[random.IntN(2)], true) }))
		}
	}
	return w
}

// basesOf reads the rows of all bases in the results of a round.
func basesOf(t *testing.T, b store.Bucket, results []*manifest.Result) (files []manifest.File, rows []schema.URLRecord) {
	for _, r := range results {
		for _, f := range r.FilesOf(stages.FileURLsBase) {
			files, rows = append(files, f), append(rows, tabletest.Read[schema.URLRecord](t, b, f.Key)...)
		}
	}
	return files, rows
}

// newest returns the last row of each URL, sorted.
func newest(rows ...[]schema.URLRecord) []schema.URLRecord {
	byURL := map[string]schema.URLRecord{}
	for _, r := range slices.Concat(rows...) {
		byURL[r.URL] = r
	}
	return slices.SortedFunc(maps.Values(byURL), compareStates)
}

func compareStates(a, b schema.URLRecord) int {
	return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL)
}

// A base must hold the newest row of each URL. A round that reads the base must make the same
// decisions as a round that reads all earlier parts.
func TestABaseStandsForAllPartsBeforeIt(t *testing.T) {
	for _, tc := range []struct{ before, now, later int }{{1, 1, 1}, {2, 4, 4}, {3, 3, 6}, {3, 2, 5}} {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		deltas := history(t, random, 3)
		b := bucket(t)
		var earlier []*manifest.Sealed
		for n, rows := range deltas {
			earlier = append(earlier, seal(t, b, "2026-10", n, tc.before, rows...))
		}
		w := randomWorld(t, random, tc.now)
		urls, _, results := run(t, b, Default(), w, earlier...)
		files, base := basesOf(t, b, results)
		if len(files) != tc.now {
			t.Fatalf("%v, seed %d: %d bases for %d buckets", tc, seed, len(files), tc.now)
		}
		slices.SortFunc(base, compareStates)
		if d := gocmp.Diff(newest(append(slices.Clone(deltas), urls)...), base); d != "" {
			t.Errorf("%v, seed %d: the base (-want +got):\n%s", tc, seed, d)
		}

		// The next round runs twice: with all earlier parts, and with the bases in their place.
		next := randomWorld(t, random, tc.later)
		parts := bucket(t)
		want, wantSkips, _ := run(t, parts, Default(), next, sealAll(t, parts, tc.before, append(deltas, urls))...)
		short := bucket(t)
		based := seal(t, short, "2026-10", 3, tc.now, urls...)
		for n, f := range files {
			rows := tabletest.Read[schema.URLRecord](t, b, f.Key)
			based.Files = append(based.Files, put(t, short, stages.FileURLsBase, layout.Working("2026-10", 3, "frontier", urlstate.BaseName(0), n), rows, compareStates))
		}
		got, gotSkips, _ := run(t, short, Default(), next, based) // the parts before the bases do not exist in this store
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("%v, seed %d: urls (-want +got):\n%s", tc, seed, d)
		}
		if d := gocmp.Diff(wantSkips, gotSkips); d != "" {
			t.Errorf("%v, seed %d: skips (-want +got):\n%s", tc, seed, d)
		}
	}
}

func sealAll(t *testing.T, b store.Bucket, buckets int, rounds [][]schema.URLRecord) (sealed []*manifest.Sealed) {
	for n, rows := range rounds {
		sealed = append(sealed, seal(t, b, "2026-10", n, buckets, rows...))
	}
	return sealed
}
