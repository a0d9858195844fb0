package priority

import (
	"strings"
	"testing"
	"time"
)

func TestAFoundURL(t *testing.T) {
	all := Weights{HostRank: 100, Directory: 20, Anchor: 30, Sitemap: 80, Inlinks: 90, Hop: 10, Query: 15}
	for _, tc := range []struct {
		about string
		w     Weights
		f     Facts
		want  int32
	}{
		{"a host of mean rank among 1,000", Default(), Facts{URL: "http://a.example/", Rank: 0.001}, 650},
		{"a host with a hundred times the mean rank", Default(), Facts{URL: "http://a.example/", Rank: 0.1}, 800},
		{"a host with a hundredth of the mean rank", Default(), Facts{URL: "http://a.example/", Rank: 0.00001}, 500},
		{"a host of unknown rank", Default(), Facts{URL: "http://a.example/"}, 650},
		{"a link has a text", Default(), Facts{URL: "http://a.example/", Rank: 0.001, Anchor: true}, 750},
		{"two directories", Default(), Facts{URL: "http://a.example/a/b/c.html", Rank: 0.001}, 450},
		{"slashes in a query do not count", Default(), Facts{URL: "http://a.example/a/b/?x=/y/z", Rank: 0.001}, 550},
		{"a priority is not below 0", Default(), Facts{URL: "http://a.example/a/b/c/d/e/f/g/h/i", Rank: 0.001}, 0},
		{"its sitemap says 1", Default(), Facts{URL: "http://a.example/", Rank: 0.001, Sitemap: 50}, 690},
		{"its sitemap says 0", Default(), Facts{URL: "http://a.example/", Rank: 0.001, Sitemap: -50}, 610},
		{"a priority does not exceed the sum of its parts", Default(), Facts{URL: "http://a.example/", Rank: 1000, Anchor: true}, 900},
		{"every weight counts", all, Facts{URL: "http://a.example/a/?x=1", Rank: 0.001, Anchor: true, Sitemap: 50, Inlinks: 100, Hops: 3}, 500 + 50 + 30 + 40 + 60 - 30 - 15},
		{"a weight may be too large", Weights{Inlinks: 1000}, Facts{URL: "http://a.example/", Inlinks: 1 << 40}, 1000},
		{"a weight may be negative", Weights{Query: -100}, Facts{URL: "http://a.example/?q"}, 600},
	} {
		tc.f.Hosts = 1000
		if got := Sum(tc.w.Parts(tc.f)); got != tc.want {
			t.Errorf("%s: %d, want %d: %v", tc.about, got, tc.want, tc.w.Parts(tc.f))
		}
	}
}

func TestTheTimeOfAPlan(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	w := Weights{Freshness: 80, Overdue: 100, Change: 60, News: 140}
	for _, tc := range []struct {
		about string
		t     Timing
		want  int32
	}{
		{"a URL that was never fetched", Timing{URL: "http://a.example/"}, 500},
		{"half an interval late, and changed at one of two fetches", Timing{URL: "http://a.example/", Due: now.Add(-15 * day), Interval: 30 * day, Fetches: 2, Changes: 1}, 500 + 50 + 30},
		{"very late", Timing{URL: "http://a.example/", Due: now.Add(-900 * day), Interval: 30 * day, Fetches: 2, Changes: 1}, 500 + 100 + 30},
		{"due early, after an announcement", Timing{URL: "http://a.example/", Due: now.Add(day), Interval: 30 * day, Fetches: 2, Changes: 1}, 500 + 30},
		{"an interval that is not known", Timing{URL: "http://a.example/", Due: now.Add(-day), Fetches: 2, Changes: 1}, 500 + 30},
		{"a fetch of an estimated value", Timing{URL: "http://a.example/", Due: now.Add(-15 * day), Interval: 30 * day, Fetches: 2, Changes: 1, Gain: 0.75}, 500 + 50 + 45},
		{"a fetch that makes it fresher than others", Timing{URL: "http://a.example/", Interval: 30 * day, Fetches: 2, Worth: 0.5, Gain: 0.75}, 500 + 40 + 45},
		{"a fetch of little worth", Timing{URL: "http://a.example/", Interval: 30 * day, Fetches: 2, Worth: -1, Gain: 0.25}, 500 - 80 + 15},
		{"a new URL has no worth of its own", Timing{URL: "http://a.example/", Worth: 1}, 500},
		{"the news of the day", Timing{URL: "http://a.example/2026/11/25/title"}, 640},
		{"the news of three days ago", Timing{URL: "http://a.example/news/2026-11-22-title.html"}, 580},
		{"a day without separators", Timing{URL: "http://a.example/20261124"}, 620},
		{"tomorrow, where it is already tomorrow", Timing{URL: "http://a.example/2026/11/26/"}, 640},
		{"a date far ahead", Timing{URL: "http://a.example/2036/11/25/"}, 500},
		{"old news", Timing{URL: "http://a.example/2016/11/25/"}, 500},
		{"no date: a month has no 45 days", Timing{URL: "http://a.example/2026/11/45/"}, 500},
		{"no date: the 31st of a month with 30 days", Timing{URL: "http://a.example/2026/11/31/"}, 500},
		{"no date: a longer number", Timing{URL: "http://a.example/202611251"}, 500},
		{"a date of the query does not count", Timing{URL: "http://a.example/?day=/2026/11/25/"}, 500},
		{"a date of the host does not count", Timing{URL: "http://x-2026-11-25.example"}, 500},
	} {
		tc.t.Now = now
		if got := Sum(w.AtPlan(500, tc.t)); got != tc.want {
			t.Errorf("%s: %d, want %d: %v", tc.about, got, tc.want, w.AtPlan(500, tc.t))
		}
	}
	if got := Sum(w.AtPlan(990, Timing{URL: "http://a.example/2026/11/25/", Now: now})); got != 1000 {
		t.Errorf("the priority is %d, and the highest is 1000", got)
	}
	if none := new(Weights).AtPlan(321, Timing{URL: "http://a.example/2026/11/25/", Now: now, Due: now, Interval: day, Fetches: 2}); Sum(none) != 321 || len(none) != 1 {
		t.Errorf("without weights, a plan adds parts: %v", none)
	}
}

func FuzzPriority(f *testing.F) {
	f.Add("http://a.example/2026/11/25/?x", 0.5, int64(3), int64(1), int32(4), int32(9), int32(2))
	w := Weights{HostRank: 1000, Directory: 1000, Anchor: -1000, Sitemap: 1000, Inlinks: -1000, Hop: 1000, Query: 1000, Overdue: 1000, Change: 1000, Freshness: -1000, News: 1000}
	f.Fuzz(func(t *testing.T, url string, rank float64, hosts, inlinks int64, hops, fetches, changes int32) {
		if rank != rank || hops < 0 || fetches < 0 || changes < 0 || changes > fetches || fetches > 1<<30 {
			t.Skip("no round has such numbers")
		}
		p := Sum(w.Parts(Facts{URL: url, Rank: rank, Hosts: hosts, Inlinks: inlinks, Hops: hops}))
		q := Sum(w.AtPlan(p, Timing{URL: url, Now: time.Unix(1e9, 0), Due: time.Unix(9e8, 0), Interval: time.Hour, Fetches: fetches, Changes: changes, Worth: 1}))
		if p < 0 || p > 1000 || q < 0 || q > 1000 {
			t.Errorf("priorities %d and %d of %s", p, q, strings.ToValidUTF8(url, "?"))
		}
	})
}
