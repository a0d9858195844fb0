package source

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/budget"
)

// simPage is a page of a simulated web, with its row of the dataset urls.
type simPage struct {
	schema.URLRecord
	host    int
	rate    float64     // changes per millisecond
	weight  float64     // rank of the host as a multiple of the mean rank
	changes schema.Time // time of the next change, which the crawler does not know
}

// simWeb is a simulated web. Rates have log-normal distributions: among hosts, and among the pages of a host.
type simWeb struct {
	between, within float64 // deviations of the logarithms
	ranked          bool    // whether hosts have different ranks
}

const (
	simHosts, simPages = 40, 20
	simRound           = 30 * 24 * time.Hour
	simRounds          = 72
	simBegin           = schema.Time(1_800_000_000_000_000)
)

func (w simWeb) pages(r *rand.Rand, weights *priority.Weights) (pages []*simPage) {
	ranks, sum := make([]float64, simHosts), 0.0
	for host := range ranks {
		if ranks[host] = 1; w.ranked {
			ranks[host] = min(math.Pow(1-r.Float64(), -1/1.2), 50)
		}
		sum += ranks[host]
	}
	for host := range simHosts {
		mean := math.Log(0.02) + w.between*r.NormFloat64()
		for range simPages {
			p := &simPage{host: host, rate: math.Exp(mean+w.within*r.NormFloat64()) / 86_400_000, weight: ranks[host] / sum * simHosts}
			p.URL, p.Fetches, p.LastFetched = "http://a.example/", 1, simBegin.Add(-time.Duration(r.Float64()*float64(simRound)))
			p.changes = p.LastFetched + after(r, p)
			p.Priority = priority.Sum(weights.Parts(priority.Facts{URL: p.URL, Rank: ranks[host] / sum, Hosts: simHosts}))
			pages = append(pages, p)
		}
	}
	r.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] }) // the order of the plan, which is that of hashes
	return pages
}

// after returns the time until the next change of a page, whose rate is per millisecond.
func after(r *rand.Rand, p *simPage) schema.Time { return schema.Time(r.ExpFloat64() / p.rate * 1000) }

// simFetch fetches a page.
func simFetch(r *rand.Rand, p *simPage, now schema.Time) {
	changed := p.changes <= now
	p.ChangeHistory = recrawl.Observe(p.ChangeHistory, now.Sub(p.LastFetched).Milliseconds(), changed)
	if changed {
		p.Changes++
		p.changes = now + after(r, p)
	}
	p.Fetches++
	p.LastFetched = now
}

// settle sets the due times of pages as the frontier does: with the peers of each page on its host.
func settle(pages, fetched []*simPage, rule recrawl.Rule) {
	peers := make([]recrawl.Peers, simHosts)
	for _, p := range pages {
		peers[p.host].Add(p.ChangeHistory)
	}
	for _, p := range fetched {
		least := time.Duration(0)
		if p.Fetches > 1 && p.SameMS > 0 {
			least = recrawl.Steady(p.ChangeHistory, time.Duration(p.RevisitMS)*time.Millisecond)
		}
		wait, reason := rule.Among(&peers[p.host]).Interval(p.ChangeHistory, least)
		p.RevisitMS, p.NextDue, p.DueReason = wait.Milliseconds(), p.LastFetched.Add(wait), reason
	}
}

// simResult is the mean freshness by weight in the second half of the rounds and in the first twelve with fetches, the
// longest time in which a page was not fetched in the second half, and the number of fetches of each round.
type simResult struct {
	fresh, early float64
	age          time.Duration
	fetches      []int64
}

// run crawls the web. In each round it fetches a share of the pages. choose returns the pages to fetch.
func (w simWeb) run(seed uint64, share float64, weights priority.Weights, rule recrawl.Rule, choose func(pages []*simPage, now schema.Time, limit int64) []*simPage) (out simResult) {
	r := rand.New(rand.NewPCG(seed, 42))
	pages := w.pages(r, &weights)
	settle(pages, pages, rule)
	total, early := 0.0, 0.0
	for round := range simRounds {
		now := simBegin.Add(time.Duration(round) * simRound)
		fetched := choose(pages, now, int64(share*float64(len(pages))))
		for _, p := range fetched {
			simFetch(r, p, now)
		}
		settle(pages, fetched, rule)
		out.fetches = append(out.fetches, int64(len(fetched)))
		for _, p := range pages {
			fresh := p.weight * min(max(float64(p.changes.Sub(now))/float64(simRound), 0), 1)
			switch {
			case round >= simRounds/2:
				total += p.weight
				out.fresh += fresh
				out.age = max(out.age, now.Sub(p.LastFetched))
			case round > 0 && round <= 12: // in the first round, no page is due yet
				early += p.weight
				out.early += fresh
			}
		}
	}
	out.fresh /= total
	out.early /= early
	return out
}

// byScore chooses due pages as the planner does.
func byScore(weights priority.Weights, rule recrawl.Rule) func([]*simPage, schema.Time, int64) []*simPage {
	f := &frontier{}
	return func(pages []*simPage, now schema.Time, limit int64) (fetched []*simPage) {
		f.now = now
		rules, err := budget.NewRules(budget.Limits{})
		if err != nil {
			panic(err)
		}
		round, scores := rules.NewRound(), map[*simPage]int32{}
		for _, p := range pages {
			p.State = schema.StateFetched
			if f.isDue(&p.URLRecord) {
				scores[p] = priority.Sum(weights.AtPlan(p.Priority, TimingOf(&p.URLRecord, now, weights, rule)))
				round.Add(scores[p], false)
			}
		}
		round.Cut(min(limit, round.Total()))
		for _, p := range pages {
			if score, due := scores[p]; due && round.Take(score, false) {
				fetched = append(fetched, p)
			}
		}
		return fetched
	}
}

// byValue chooses the pages of the highest value, due or not.
func byValue(value func(p *simPage, now schema.Time) float64) func([]*simPage, schema.Time, int64) []*simPage {
	return func(pages []*simPage, now schema.Time, limit int64) []*simPage {
		values := map[*simPage]float64{}
		for _, p := range pages {
			values[p] = value(p, now)
		}
		best := slices.Clone(pages)
		slices.SortStableFunc(best, func(a, b *simPage) int { return cmp.Compare(values[b], values[a]) })
		return best[:limit]
	}
}

// Budgets leave a quarter or half of the known pages for each month. The plan's scores then keep the copies
// fresher than those without the part freshness, than the part change, and than fetching all pages equally often or in
// proportion to their rates. No page waits much longer than frontier.recrawl.max, unless its host has a low rank.
// The points of the part were chosen with other seeds.
func TestFreshnessUnderABudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const first, seeds = 101, 3
	rule := recrawl.Rule{First: 30 * 24 * time.Hour, Min: 24 * time.Hour, Max: 180 * 24 * time.Hour}
	before, change := priority.Default(), priority.Default()
	before.Freshness = 0
	change.Freshness, change.Change = 0, 150
	policies := map[string]func([]*simPage, schema.Time, int64) []*simPage{
		"oracle": byValue(func(p *simPage, now schema.Time) float64 {
			return p.weight * recrawl.Value(p.rate, float64(now.Sub(p.LastFetched).Milliseconds()))
		}),
		"uniform": byValue(func(p *simPage, now schema.Time) float64 { return float64(now - p.LastFetched) }),
		"proportional": byValue(func(p *simPage, now schema.Time) float64 {
			return p.rate * float64(now.Sub(p.LastFetched).Milliseconds())
		}),
		"before":      byScore(before, rule),
		"change: 150": byScore(change, rule),
		"ours":        byScore(priority.Default(), rule),
	}
	names := slices.Sorted(maps.Keys(policies))
	for _, share := range []float64{0.25, 0.5} {
		fresh := map[string]float64{}
		for _, w := range []simWeb{{1.2, 0.8, false}, {0.5, 1.5, false}, {1.2, 0.8, true}, {0.5, 1.5, true}} {
			for seed := uint64(first); seed < first+seeds; seed++ {
				about := fmt.Sprintf("budget %g, seed %d, deviations %g and %g, ranks %t: freshness", share, seed, w.between, w.within, w.ranked)
				for _, name := range names {
					r := w.run(seed, share, before, rule, policies[name])
					fresh[name] += r.fresh / 4 / seeds
					about += fmt.Sprintf(" %s %.3f (oldest %.0f days);", name, r.fresh, r.age.Hours()/24)
					if most := 3 * rule.Max; name == "ours" && !w.ranked && r.age > most {
						t.Errorf("budget %g, seed %d: a page was not fetched for %v", share, seed, r.age)
					}
				}
				t.Log(about)
			}
		}
		regret := func(name string) float64 { return fresh["oracle"] - fresh[name] }
		for _, name := range names {
			t.Logf("budget %g, seeds %d to %d: mean freshness of %s %.3f, regret %.3f", share, first, first+seeds-1, name, fresh[name], regret(name))
		}
		for _, name := range []string{"uniform", "proportional", "before"} {
			if regret("ours") > 0.9*regret(name) {
				t.Errorf("budget %g: regret of ours %.3f, of %s %.3f", share, regret("ours"), name, regret(name))
			}
		}
		if share == 0.25 && regret("ours") > 0.5*regret("change: 150") || regret("ours") > 0.04 {
			t.Errorf("budget %g: regret of ours %.3f, of change: 150 %.3f", share, regret("ours"), regret("change: 150"))
		}
	}
}

// In its first rounds, a crawl knows hardly any rates, and pages that did not change are not due for a while, so that it
// makes fewer fetches than the budget allows. With as many fetches, the choice by age alone is not better.
func TestFreshnessInTheFirstRounds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const first, seeds = 201, 5
	rule := recrawl.Rule{First: 30 * 24 * time.Hour, Min: 24 * time.Hour, Max: 180 * 24 * time.Hour}
	for _, share := range []float64{0.25, 0.5} {
		var ours, uniform, used float64
		for _, w := range []simWeb{{1.2, 0.8, false}, {0.5, 1.5, false}, {1.2, 0.8, true}, {0.5, 1.5, true}} {
			for seed := uint64(first); seed < first+seeds; seed++ {
				r := w.run(seed, share, priority.Default(), rule, byScore(priority.Default(), rule))
				left, byAge := r.fetches, byValue(func(p *simPage, now schema.Time) float64 { return float64(now - p.LastFetched) })
				u := w.run(seed, share, priority.Default(), rule, func(pages []*simPage, now schema.Time, _ int64) []*simPage {
					n := left[0]
					left = left[1:]
					return byAge(pages, now, n)
				})
				ours, uniform = ours+r.early/4/seeds, uniform+u.early/4/seeds
				for _, n := range r.fetches[1:13] {
					used += float64(n) / (12 * 4 * seeds * share * simHosts * simPages)
				}
			}
		}
		t.Logf("budget %g: %.0f %% of it used in the first twelve rounds, mean freshness %.3f, by age alone %.3f", share, 100*used, ours, uniform)
		if ours < uniform-0.005 {
			t.Errorf("budget %g: mean freshness %.3f in the first twelve rounds, %.3f by age alone", share, ours, uniform)
		}
	}
}
