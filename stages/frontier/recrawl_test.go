package frontier

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// lively is a page that changes as a Poisson process.
type lively struct {
	rate    float64 // changes per day
	version int
	change  float64 // day of the next change
	r       schema.URLRecord
	late    float64 // days since the last fetch, at most
	lately  int     // fetches in the second half
}

// crawlDaily simulates a crawl with a round each day that fetches at most the given number of due pages, in
// the order of their priorities. after returns the record of a page after a fetch. crawlDaily returns the mean
// freshness in the second half of the days.
func crawlDaily(cfg Config, after func(Config, *schema.URLRecord, *outcome) schema.URLRecord, pages []*lively, days, budget int, seed uint64) (fresh float64) {
	random, weights := rand.New(rand.NewPCG(seed, 1)), priority.Weights{Overdue: 100, Change: 300}
	for _, p := range pages {
		p.change = random.ExpFloat64() / p.rate
	}
	for today := range days {
		now := at + schema.Time(today)*day
		type due struct {
			p        *lively
			priority int32
		}
		var dues []due
		for _, p := range pages {
			for p.change <= float64(today) {
				p.version++
				p.change += random.ExpFloat64() / p.rate
			}
			if p.r.NextDue > now {
				continue
			}
			timing := priority.Timing{Now: now.Time(), Due: p.r.NextDue.Time(), Interval: time.Duration(p.r.RevisitMS) * time.Millisecond, Fetches: p.r.Fetches, Changes: p.r.Changes}
			if p.r.ChangeHistory != (schema.ChangeHistory{}) {
				rule := cfg.rule()
				timing.Gain = rule.Gain(p.r.ChangeHistory, now.Sub(p.r.LastFetched), false)
			}
			dues = append(dues, due{p, priority.Sum(weights.AtPlan(500, timing))})
		}
		slices.SortStableFunc(dues, func(a, b due) int { return cmp.Compare(b.priority, a.priority) })
		for _, d := range dues[:min(budget, len(dues))] {
			p, prior := d.p, d.p.r
			if today >= days/2 {
				p.lately++
				p.late = max(p.late, now.Sub(prior.LastFetched).Hours()/24)
			}
			p.r = after(cfg, &prior, &outcome{Outcome: schema.OK, FetchedAt: now, ContentDigest: fmt.Sprint(p.version)})
		}
		if today < days/2 {
			continue
		}
		for _, p := range pages { // the share of the day until the next change
			if p.r.ContentDigest == fmt.Sprint(p.version) {
				fresh += min(p.change-float64(today), 1) / float64(len(pages)*(days-days/2))
			}
		}
	}
	return fresh
}

// estimating is the rule of this package.
func estimating(cfg Config, prior *schema.URLRecord, o *outcome) schema.URLRecord {
	return cfg.recordAfter(*prior, prior, o, false, cfg.rule())
}

// halving is a simple rule to compare with: a change halves the interval, and its absence lengthens it by half.
func halving(cfg Config, prior *schema.URLRecord, o *outcome) schema.URLRecord {
	r := estimating(cfg, prior, o)
	wait := cfg.revisit(prior)
	switch {
	case r.Changes > prior.Changes:
		wait /= 2
	case prior.Fetches > 0:
		wait += wait / 2
	}
	r.ChangeHistory = schema.ChangeHistory{}
	r.RevisitMS = min(max(wait, cfg.MinInterval), cfg.MaxInterval).Milliseconds()
	r.NextDue = r.LastFetched.Add(time.Duration(r.RevisitMS) * time.Millisecond)
	return r
}

// Pages of a synthetic web change with rates over five orders of magnitude. With estimated rates, the crawl
// keeps them fresher than if changes halve the interval, with the same number of fetches a day. Pages
// that change more often are fetched more often, and pages that never change wait for MaxInterval.
func TestRecrawlsFollowTheChangesOfPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const seed, count, days = 11, 300, 1600
	web := func() (pages []*lively) {
		random := rand.New(rand.NewPCG(seed, 0))
		for n := range count {
			p := &lively{rate: 0.003 * math.Pow(1-random.Float64(), -1/0.9)}
			if n%5 == 0 {
				p.rate = 1e-9 // never
			}
			pages = append(pages, p)
		}
		return pages
	}
	for _, budget := range []int{5, 10, count} {
		cfg := Default()
		others, pages := web(), web()
		halved, fresh := crawlDaily(cfg, halving, others, days, budget, seed), crawlDaily(cfg, estimating, pages, days, budget, seed)
		halvedFetches, fetches := 0, 0
		classes, sizes := [3]float64{}, [3]float64{} // fetches and pages: never changing, slow, fast
		for n, p := range pages {
			halvedFetches += others[n].lately
			fetches += p.lately
			class := 0
			switch {
			case p.rate > 1.0/20 && p.rate < 1.0/5:
				class = 2
			case p.rate > 1e-6 && p.rate < 1.0/100:
				class = 1
			case p.rate > 1e-6:
				continue
			}
			classes[class] += float64(p.lately)
			sizes[class]++
			if class == 0 && budget >= 10 && (p.r.DueReason != schema.DueMax || p.r.RevisitMS != cfg.MaxInterval.Milliseconds() || p.late > 200) {
				t.Errorf("budget %d: a page that never changes waited up to %g days: %+v", budget, p.late, p.r)
			}
		}
		for c := range classes {
			classes[c] /= sizes[c]
		}
		about := fmt.Sprintf("seed %d, at most %d fetches a day: freshness %.3f with %d fetches, with halved intervals %.3f with %d; fetches of a page that never changes %.1f, changes slowly %.1f, often %.1f", seed, budget, fresh, fetches, halved, halvedFetches, classes[0], classes[1], classes[2])
		t.Log(about)
		if fresh < halved+0.01 || fetches > halvedFetches {
			t.Error("not fresher: " + about)
		}
		if budget >= 10 && (classes[1] < 1.2*classes[0] || classes[2] < 1.5*classes[1]) {
			t.Error("pages that change more are not fetched more: " + about)
		}
	}
}
