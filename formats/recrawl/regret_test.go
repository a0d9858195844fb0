package recrawl

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// page is a page of a simulated web.
type page struct {
	rate   float64 // changes per day
	weight float64 // importance
}

// freshness returns the expected share of time in which the copy of a page is fresh, if it is fetched
// each interval days.
func freshness(rate, interval float64) float64 {
	x := rate * interval
	if x < 1e-9 {
		return 1
	}
	return -math.Expm1(-x) / x
}

// mean returns the mean freshness of the pages by weight. interval returns the interval of each page in
// days; +Inf means that the page is never fetched again.
func mean(pages []page, interval func(p page) float64) float64 {
	fresh, weights := 0.0, 0.0
	for _, p := range pages {
		weights += p.weight
		if i := interval(p); !math.IsInf(i, 1) {
			fresh += p.weight * freshness(p.rate, i)
		}
	}
	return fresh / weights
}

// optimal returns the interval of a page at a multiplier: the time after which the value of a fetch by
// weight reaches the multiplier. Pages whose value never reaches it are not fetched.
func optimal(p page, multiplier float64) float64 {
	if p.weight/p.rate <= multiplier {
		return math.Inf(1)
	}
	low, high := 0.0, 1.0
	for p.weight*Value(p.rate, high) < multiplier {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; p.weight*Value(p.rate, middle) < multiplier {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// oracle returns the best mean freshness with the given number of fetches a day, for a crawler that
// knows the rates. It finds the multiplier by bisection.
func oracle(pages []page, budget float64) float64 {
	low, high := 0.0, 0.0
	for _, p := range pages {
		high = max(high, p.weight/p.rate)
	}
	for range 60 {
		middle, fetches := (low+high)/2, 0.0
		for _, p := range pages {
			fetches += 1 / optimal(p, middle)
		}
		if fetches > budget {
			low = middle
		} else {
			high = middle
		}
	}
	return mean(pages, func(p page) float64 { return optimal(p, high) })
}

// policy returns the value that a policy gives to a fetch of a page at the given day.
type policy func(c *copyOf, now float64) float64

// copyOf is what a simulated crawler knows about a page.
type copyOf struct {
	fetched          float64 // day of the last fetch
	changed          float64 // day of the next change of the page, which the crawler does not know
	fetches, changes int32
	h                schema.ChangeHistory
	estimate         Estimate
}

func (c *copyOf) since(now float64) float64 { return (now - c.fetched) * float64(day.Milliseconds()) }

// greedy simulates a crawler that fetches, each day, the pages of the highest value by weight that the
// budget allows. It returns the mean freshness in the second half of the days.
func greedy(r *rand.Rand, rule Rule, pages []page, budget float64, days int, value policy) float64 {
	const step = 1.0
	copies := make([]copyOf, len(pages))
	for n, p := range pages {
		copies[n] = copyOf{changed: r.ExpFloat64() / p.rate, fetched: -30 * r.Float64(), fetches: 1, estimate: rule.Estimate(schema.ChangeHistory{})}
	}
	type offer struct {
		n     int
		value float64
	}
	offers := make([]offer, len(pages))
	fresh, weights, left := 0.0, 0.0, 0.0
	for s := range int(float64(days) / step) {
		now := float64(s) * step
		for n, p := range pages {
			offers[n] = offer{n, p.weight * value(&copies[n], now)}
		}
		slices.SortFunc(offers, func(a, b offer) int { return cmp.Or(cmp.Compare(b.value, a.value), a.n-b.n) })
		left += budget * step
		for next := 0; left >= 1; left, next = left-1, next+1 {
			c := &copies[offers[next].n]
			changed := c.changed <= now
			c.h = Observe(c.h, int64(c.since(now)), changed)
			c.fetches++
			if changed {
				c.changes++
				c.changed = now + r.ExpFloat64()/pages[offers[next].n].rate
			}
			c.fetched, c.estimate = now, rule.Estimate(c.h)
		}
		if now < float64(days)/2 {
			continue
		}
		for n, p := range pages { // the share of the step until the next change
			weights += p.weight
			fresh += p.weight * min(max(copies[n].changed-now, 0), step) / step
		}
	}
	return fresh / weights
}

// web returns pages whose rates and weights have the given distributions.
func web(r *rand.Rand, heavy, weighted bool, count int) []page {
	pages := make([]page, count)
	for i := range pages {
		if heavy { // Pareto of index 0.8, which has no mean
			pages[i].rate = min(0.002*math.Pow(1-r.Float64(), -1/0.8), 50)
		} else { // Gamma of shape 1/2: half the square of a normal variable
			z := r.NormFloat64()
			pages[i].rate = 0.06*z*z/2 + 1e-5
		}
		pages[i].weight = 1
		if weighted {
			pages[i].weight = min(math.Pow(1-r.Float64(), -1/1.2), 100)
		}
	}
	return pages
}

// A crawler that knows nothing about the rates at first loses little against an oracle that knows them,
// for several distributions of rates and weights, and for several budgets. It is better than a crawler
// that fetches all pages equally often, or each in proportion to its rate, even if that one knows the
// rates. It is also better, on average, than the same policy with a wrong estimate.
func TestRegret(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const seed, count = 2018, 150
	rule := Rule{First: 30 * day, Min: day, Max: 180 * day}
	wrong := map[string]policy{
		"certain": func(c *copyOf, now float64) float64 { // without the error of the estimate
			return Value(c.estimate.Rate, c.since(now))
		},
		"naive": func(c *copyOf, now float64) float64 { // changes by time: at most one in an interval
			rate := (shape + float64(c.h.ChangeWeight)/unit) / (share*float64(rule.First.Milliseconds()) + float64(c.h.ChangedMS+c.h.UnchangedMS))
			return Value(rate, c.since(now))
		},
		"succession": func(c *copyOf, _ float64) float64 { // changes by fetches: without the intervals
			return float64(c.changes+1) / float64(c.fetches+2)
		},
	}
	regrets, worlds := map[string]float64{}, 0.0
	for _, heavy := range []bool{false, true} {
		for _, weighted := range []bool{false, true} {
			for _, budget := range []float64{0.015, 0.04, 0.15} { // fetches of a page and day
				r := rand.New(rand.NewPCG(seed, uint64(1000*budget)))
				pages, fetches, days := web(r, heavy, weighted, count), budget*count, int(20/budget)+100
				best, total := oracle(pages, fetches), 0.0
				for _, p := range pages {
					total += p.rate
				}
				regret := map[string]float64{
					"ours":         best - greedy(r, rule, pages, fetches, days, func(c *copyOf, now float64) float64 { return c.estimate.Value(c.since(now)) }),
					"uniform":      best - mean(pages, func(page) float64 { return 1 / budget }),
					"proportional": best - mean(pages, func(p page) float64 { return total / fetches / p.rate }),
				}
				for _, name := range slices.Sorted(maps.Keys(wrong)) {
					regret[name] = best - greedy(r, rule, pages, fetches, days, wrong[name])
				}
				about := fmt.Sprintf("seed %d, heavy tail %t, weights %t, %g fetches a page and day: freshness of the oracle %.3f", seed, heavy, weighted, budget, best)
				for _, name := range slices.Sorted(maps.Keys(regret)) {
					about += fmt.Sprintf(", regret of %s %.3f", name, regret[name])
					regrets[name] += regret[name]
				}
				worlds++
				t.Log(about)
				if ours := regret["ours"]; ours > 0.03 || ours >= regret["uniform"] || ours >= regret["proportional"] {
					t.Errorf("the regret of ours is too large: %s", about)
				}
			}
		}
	}
	for name, sum := range regrets {
		t.Logf("seed %d: mean regret of %s %.4f", seed, name, sum/worlds)
		if name != "ours" && sum < 1.5*regrets["ours"] {
			t.Errorf("the mean regret of %s is %.4f, of ours %.4f", name, sum/worlds, regrets["ours"]/worlds)
		}
	}
	if ours := regrets["ours"] / worlds; ours > 0.011 {
		t.Errorf("the mean regret of ours is %.4f", ours)
	}
}
