package recrawl

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// When the rate alone decides the interval of a page, its worth is 0 at the due time.
func TestAPageIsWorthItsPriceWhenItIsDue(t *testing.T) {
	rates := 0
	for changes := range 8 {
		for _, gap := range []time.Duration{5 * day, 20 * day, 40 * day} {
			h := schema.ChangeHistory{}
			for n := range 8 {
				h = Observe(h, gap.Milliseconds(), n < changes)
			}
			interval, reason := monthly.Interval(h, 0)
			if reason != schema.DueRate || monthly.Estimate(h).Value(float64(interval.Milliseconds())) < 0.999*monthly.Price() {
				continue // a bound decided, or the page changes too often to reach the price
			}
			rates++
			if worth := monthly.Worth(h, interval, false); math.Abs(worth) > 1e-4 {
				t.Errorf("%d changes in 8 fetches each %v: worth %v after %v", changes, gap, worth, interval)
			}
		}
	}
	if rates < 5 {
		t.Errorf("only %d histories whose rate decides", rates)
	}
}

func TestWorthRisesWithTime(t *testing.T) {
	const seed = 17
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		h := schema.ChangeHistory{}
		for range r.IntN(20) {
			h = Observe(h, r.Int64N(60*day.Milliseconds()), r.IntN(2) == 0)
		}
		last := -1.0
		for since := day; since < 30_000*day; since = since * 3 / 2 {
			worth := monthly.Worth(h, since, false)
			if !(worth >= last && worth <= 1) { // the condition also refuses NaN
				t.Fatalf("seed %d, history %+v: worth %v after %v, and %v before", seed, h, worth, since, last)
			}
			// (log 4)/(log 100): four times r.Max
			if since >= 4*monthly.Max && worth < math.Log(4)/math.Log(100)-1e-9 {
				t.Fatalf("seed %d, history %+v: worth %v after %v", seed, h, worth, since)
			}
			if announced := monthly.Worth(h, since, true); announced < worth || since >= monthly.Max && announced != worth {
				t.Fatalf("seed %d, history %+v: worth %v if a change was announced, %v if not", seed, h, announced, worth)
			}
			last = worth
		}
		if last < 0.99 { // 30,000 days are 166 times r.Max
			t.Fatalf("seed %d, history %+v: worth %v after 30,000 days", seed, h, last)
		}
	}
}

func TestWorthFollowsTheValue(t *testing.T) {
	unchanged, each := schema.ChangeHistory{}, schema.ChangeHistory{}
	for range 12 {
		unchanged, each = Observe(unchanged, 30*day.Milliseconds(), false), Observe(each, day.Milliseconds()/24, true)
	}
	for _, tc := range []struct {
		about       string
		h           schema.ChangeHistory
		since       time.Duration
		least, most float64
	}{
		{"never changed in a year, a month ago", unchanged, 30 * day, -0.8, -0.6},
		{"fetched once, a month ago", schema.ChangeHistory{}, 30 * day, -0.3, 0.1},
		{"never changed in a year, half a year ago", unchanged, 179 * day, -0.05, 0.2},
		{"changes each hour, a month ago", each, 30 * day, -1, -0.7},
		{"changes each hour, two years ago", each, 720 * day, math.Log(4)/math.Log(100) - 1e-9, math.Log(4)/math.Log(100) + 1e-9},
	} {
		if worth := monthly.Worth(tc.h, tc.since, false); worth < tc.least || worth > tc.most {
			t.Errorf("%s: worth %v, want %v to %v", tc.about, worth, tc.least, tc.most)
		}
	}
}
