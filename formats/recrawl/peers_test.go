package recrawl

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// hosted is a page of a simulated host.
type hosted struct {
	host int
	page
	copyOf
}

// hosts returns the pages of some hosts. The logarithms of the mean rates of hosts, and of the rates of a host's
// pages, have normal distributions with the given deviations. Every second page was fetched six times, twenty days
// apart; the others once.
func hosts(r *rand.Rand, between, within float64) (pages []hosted) {
	for host := range 12 {
		mean := math.Log(0.02) + between*r.NormFloat64()
		for n := range 24 {
			p := hosted{host: host, page: page{rate: math.Exp(mean + within*r.NormFloat64()), weight: 1}, copyOf: copyOf{fetched: -30 * r.Float64()}}
			p.changed = p.fetched + r.ExpFloat64()/p.rate
			for range 6 * (n % 2) {
				p.h = Observe(p.h, 20*day.Milliseconds(), r.Float64() < -math.Expm1(-20*p.rate))
			}
			pages = append(pages, p)
		}
	}
	return pages
}

// young simulates a crawler that fetches the pages of the highest value each day, for the time of two fetches of
// each page. It returns the mean freshness.
func young(r *rand.Rand, pages []hosted, budget float64, value func(p *hosted, peers []Peers, now float64) float64) (fresh float64) {
	days, left := int(2/budget), 0.0
	type offer struct {
		p     *hosted
		value float64
	}
	offers := make([]offer, len(pages))
	for today := range days {
		now, peers := float64(today), make([]Peers, 12)
		for n := range pages {
			peers[pages[n].host].Add(pages[n].h)
		}
		for n := range pages {
			offers[n] = offer{&pages[n], value(&pages[n], peers, now)}
		}
		slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.value, a.value) })
		left += budget * float64(len(pages))
		for _, o := range offers[:int(left)] {
			changed := o.p.changed <= now
			if o.p.h = Observe(o.p.h, int64(o.p.since(now)), changed); changed {
				o.p.changed = now + r.ExpFloat64()/o.p.rate
			}
			o.p.fetched = now
		}
		left -= math.Floor(left)
		for n := range pages {
			fresh += min(max(pages[n].changed-now, 0), 1) / float64(days*len(pages))
		}
	}
	return fresh
}

// Half of the pages of some hosts are new. If hosts differ, the prior of their known pages takes a
// part of the loss against a crawler that knows all rates. If they do not differ, it does no harm.
func TestPeersTeachYoungPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	rule := Rule{First: 30 * day, Min: day, Max: 180 * day}
	for _, tc := range []struct{ between, within, least float64 }{{1.5, 0.7, 0.2}, {1, 1, 0.15}, {0.5, 1.5, 0.1}, {0, 1.5, -0.05}} {
		alone, among := 0.0, 0.0
		for _, budget := range []float64{0.015, 0.04, 0.15} {
			for seed := uint64(100); seed < 106; seed++ { // the constants were chosen with other seeds
				simulate := func(value func(p *hosted, peers []Peers, now float64) float64) float64 {
					r := rand.New(rand.NewPCG(seed, uint64(1000*budget)))
					return young(r, hosts(r, tc.between, tc.within), budget, value)
				}
				best := simulate(func(p *hosted, _ []Peers, now float64) float64 {
					return Value(p.rate/float64(day.Milliseconds()), p.since(now))
				})
				alone += best - simulate(func(p *hosted, _ []Peers, now float64) float64 { return rule.Estimate(p.h).Value(p.since(now)) })
				among += best - simulate(func(p *hosted, peers []Peers, now float64) float64 {
					return rule.Among(&peers[p.host]).Estimate(p.h).Value(p.since(now))
				})
			}
		}
		about := fmt.Sprintf("deviation between hosts %g, within a host %g: mean regret of a page alone %.4f, among peers %.4f", tc.between, tc.within, alone/18, among/18)
		t.Log(about)
		if 1-among/alone < tc.least {
			t.Error(about)
		}
	}
}

func TestPeers(t *testing.T) {
	var none, few, still, lively Peers
	unchanged := schema.ChangeHistory{UnchangedMS: 120 * day.Milliseconds(), SameMS: 120 * day.Milliseconds()}
	changes := Observe(Observe(schema.ChangeHistory{}, day.Milliseconds(), true), day.Milliseconds(), true)
	for n := range enough {
		still.Add(unchanged)
		lively.Add(changes)
		lively.Add(schema.ChangeHistory{}) // does not count
		if n > 0 {
			few.Add(changes)
		}
	}
	first := func(p *Peers) time.Duration {
		wait, reason := monthly.Among(p).Interval(schema.ChangeHistory{}, 0)
		if known := p == &still || p == &lively; known == (reason == schema.DueFirst) {
			t.Errorf("%+v: first interval %v because of %s", *p, wait, reason)
		}
		return wait
	}
	if a, b := first(&none), first(&few); a != monthly.First || b != monthly.First {
		t.Errorf("too few peers change the first interval: %v, %v", a, b)
	}
	if wait := first(&still); wait <= monthly.First || wait > monthly.Max {
		t.Errorf("first interval among pages that never change: %v", wait)
	}
	if wait := first(&lively); wait < monthly.First/sooner || wait >= monthly.First/4 {
		t.Errorf("first interval among pages that change each day: %v", wait)
	}
	// What a page does itself counts more than its peers.
	mine := schema.ChangeHistory{}
	for range 6 {
		mine = Observe(mine, 30*day.Milliseconds(), false)
	}
	if wait, _ := monthly.Among(&lively).Interval(mine, 0); wait < monthly.First {
		t.Errorf("a page that never changes is fetched each %v", wait)
	}
	for range 4 {
		changes = Observe(changes, day.Milliseconds(), true)
	}
	if wait, _ := monthly.Among(&still).Interval(changes, 0); wait > monthly.First/2 {
		t.Errorf("a page that changed on six days is fetched each %v", wait)
	}
}
