package frontier

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// The known pages of one host change each day, and those of another never do, but for its front page. New pages
// of the first are due again sooner than those of the second. The order of the rows, the number of buckets and
// the size of the window do not matter.
func TestKnownPagesOfAHostSayHowOftenNewOnesChange(t *testing.T) {
	history := func(interval int64, changed bool) (h schema.ChangeHistory) {
		for range 4 {
			h = recrawl.Observe(h, interval, changed)
		}
		return h
	}
	for _, buckets := range []int{1, 3} {
		var known []schema.URLRecord
		w := world{buckets: buckets}
		add := func(host string, depth int32, n int, changed bool, interval int64) {
			for i := range n {
				known = append(known, state(t, fmt.Sprintf("http://%s/%d/%d", host, depth, i), schema.StateFetched, func(r *schema.URLRecord) {
					r.Depth, r.Fetches, r.LastFetched, r.ContentDigest, r.ChangeHistory = depth, 5, 1, "D", history(interval, changed)
				}))
			}
		}
		add("news.example", 2, 2*window, true, dayMS)
		add("still.example", 2, 20, false, 40*dayMS)
		add("still.example", 0, 20, true, dayMS)
		w.fetches = []schema.Fetch{
			fetch(t, "http://news.example/0/first", schema.OK, nil), fetch(t, "http://news.example/new", schema.OK, nil),
			fetch(t, "http://still.example/new", schema.OK, nil), fetch(t, "http://unknown.example/new", schema.OK, nil),
			fetch(t, "http://still.example/new-front", schema.OK, func(f *schema.Fetch) { f.Depth = 0 }),
		}
		due := func(w world) map[string]string {
			b, got := bucket(t), map[string]string{}
			urls, _, _ := run(t, b, Default(), w, seal(t, b, "2026-10", 0, buckets, known...))
			for _, u := range urls {
				got[u.URL] = fmt.Sprintf("%s %d", u.DueReason, (u.NextDue-at)/day)
			}
			return got
		}
		want := map[string]string{
			"http://news.example/0/first": "rate 1", "http://news.example/new": "rate 1", "http://unknown.example/new": "first 30",
			"http://still.example/new": "rate 55", "http://still.example/new-front": "rate 1",
		}
		if d := gocmp.Diff(want, due(w)); d != "" {
			t.Errorf("%d buckets (-want +got):\n%s", buckets, d)
		}
	}
}
