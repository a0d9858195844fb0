// Package recrawl estimates how often a page changes, and says when to fetch it again.
//
// A page is taken to change as a Poisson process. Each fetch tells only whether the page has changed
// since the fetch before, so the estimate depends on the lengths of the intervals with a change and of
// those without one. The naive estimate, changes divided by time, is too low for a page that changes
// several times between two fetches (Cho and Garcia-Molina, "Estimating Frequency of Change", ACM TOIT
// 3(3), 2003). Rate corrects this with the likelihood of the observations. A Gamma prior keeps the
// estimate finite if every fetch found a change, and above 0 if none did.
//
// The value of a fetch is the expected time by which it makes the copy fresher. A crawl with a limited
// number of fetches is freshest if it fetches each page as soon as its value reaches one threshold, the
// multiplier of the budget (Cho and Garcia-Molina, "Effective Page Refresh Policies for Web Crawlers",
// ACM TODS 28(4), 2003; Azar, Horvitz, Lubetzky, Peres and Shahaf, "Tractable near-optimal policies for
// crawling", PNAS 115(32), 2018). An estimated rate is uncertain, so the value is its mean over the
// posterior. With the value of the estimate itself, a crawl would give up pages that seem to change
// often after few fetches, and never learn more about them.
//
// Rule applies the policy: it sets the due time by a multiplier that follows from the config. If a
// budget leaves less, the plan takes the due pages of the highest value (Worth). The value of the last
// page taken is then the multiplier.
//
// Every result has the same bits on each machine. Go may fuse x*y + z into one rounding, and does so on
// arm64, but not across an explicit conversion (The Go Programming Language Specification,
// "Floating-point operators"). Each product or quotient that is added to something is therefore
// converted. The package computes exponentials itself, because math.Exp is written in assembly on some
// machines.
// Package recrawl imports package schema and the standard library only.
package recrawl

import (
	"math"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

const (
	// shape and share describe the Gamma prior of the rates. It weighs as much as shape observed changes in
	// share of Rule.First. Both are small, because the rates of pages differ by orders of magnitude.
	shape = 1.0 / 4
	share = 1.0 / 16

	// memory is the number of changes that a history remembers. Each change takes 1/memory from the
	// earlier observations, so that a page may change its habits. Fetches without a change take nothing:
	// a sitemap that announces changes every day would otherwise make a page forget them.
	memory = 16

	unit = 1000 // one observed change in schema.ChangeHistory.ChangeWeight

	// peak is λI at the shortest interval I that any multiplier gives. It solves e^x = 1 + x + x².
	peak = 1.7932821329007607
)

// Observe returns the history after a fetch that came the given number of milliseconds after the
// fetch before. An interval below one millisecond counts as one.
func Observe(h schema.ChangeHistory, interval int64, changed bool) schema.ChangeHistory {
	interval = max(interval, 1)
	if !changed {
		h.UnchangedMS += interval
		h.SameMS += interval
		return h
	}
	h.SameMS = 0
	h.ChangeWeight += unit - h.ChangeWeight/memory
	h.ChangedMS += interval - h.ChangedMS/memory
	h.UnchangedMS -= h.UnchangedMS / memory
	return h
}

// Assume returns the history of a page of which only the number of its fetches and changes is known. It
// assumes that all intervals had the given length, in milliseconds.
func Assume(fetches, changes int32, interval int64) (h schema.ChangeHistory) {
	intervals := int64(fetches) - 1
	if intervals < 1 || interval < 1 {
		return h
	}
	changed, kept := min(int64(changes), intervals), min(intervals, memory)
	h.ChangeWeight = unit * changed * kept / intervals
	h.ChangedMS = h.ChangeWeight * interval / unit
	h.UnchangedMS = kept*interval - h.ChangedMS
	return h
}

// Rule holds the settings of frontier.recrawl.
type Rule struct {
	First time.Duration // time from the first fetch of a page until the second
	Min   time.Duration // least interval
	Max   time.Duration // largest interval; no page waits longer, even if it never changes

	prior prior   // what is assumed about a page without a history; zero: a wide distribution about First
	price float64 // Price, or 0 if nothing has computed it yet
}

// prior is a Gamma distribution of the rates of pages.
type prior struct {
	shape float64
	time  float64 // shape divided by the mean rate, milliseconds
	known bool    // it comes from at least enough pages
}

// Peers are pages that are likely to change about as often as each other, such as those of one host.
type Peers struct {
	pages int64
	h     schema.ChangeHistory
}

const (
	// peerShape is the weight of a prior that comes from many peers, in observed changes. A prior from
	// halfway pages has half the way from shape to it.
	peerShape = 1.0 / 2
	halfway   = 4

	// enough is the number of peers from which Interval may give a page without observed changes another
	// first interval than Rule.First. It is at least Rule.First divided by sooner.
	enough = 8
	sooner = 16

	maxPeers = 1 << 16 // more peers hardly change the estimate
)

// Add adds a page with the given history. A page whose fetches could not be compared does not count.
func (p *Peers) Add(h schema.ChangeHistory) {
	if h == (schema.ChangeHistory{}) || p.pages == maxPeers {
		return
	}
	p.pages++
	p.h.ChangeWeight += h.ChangeWeight
	p.h.ChangedMS += h.ChangedMS
	p.h.UnchangedMS += h.UnchangedMS
}

// Among returns the rule for pages that have the given peers. Its prior has the rate of the peers as a whole
// (empirical Bayes). It weighs little, because the rates of pages of one host still differ: half a change, and
// at most the time r.First, or a page of a host that never changes would have to change often before it is
// noticed. Among may be called again with the result, for a narrower circle of peers.
func (r Rule) Among(p *Peers) Rule {
	if p.pages == 0 {
		return r
	}
	if r.price == 0 {
		r.price = r.Price()
	}
	n := float64(p.pages)
	weight := shape + float64((peerShape-shape)*n)/(n+halfway)
	r.prior = prior{weight, min(weight/r.Estimate(p.h).Rate, float64(ms(r.First))), r.prior.known || p.pages >= enough}
	return r
}

// Estimate is what a history tells about the rate of change of a page: a Gamma distribution.
type Estimate struct {
	Rate  float64 // mean of the distribution, changes per millisecond
	shape float64 // shape of the distribution; 1/√shape is the relative error of Rate
}

// Estimate returns the estimate for a page. Without an observed change, it is the posterior distribution
// itself. Otherwise it approximates the distribution of the logarithm of the rate near its maximum. The
// intervals with a change count with their mean length, which is exact if they have the same length.
func (r Rule) Estimate(h schema.ChangeHistory) Estimate {
	shape, time := shape, float64(ms(r.First))*share
	if r.prior.shape > 0 {
		shape, time = r.prior.shape, r.prior.time
	}
	time += float64(max(h.UnchangedMS, 0))
	if h.ChangeWeight <= 0 {
		return Estimate{shape / time, shape}
	}
	changes := float64(h.ChangeWeight) / unit
	mean := float64(max(h.ChangedMS, 0)) / changes
	// The derivative by the logarithm of the rate is 0 where shape + changes·g(rate·mean) = rate·time. The
	// left side is convex and falls with the rate, and the right side rises, so Newton's method finds the
	// solution from below.
	rate := shape / time
	for range 50 { // some five steps
		x := float64(rate * mean)
		e := exp(x)
		first, slope := g(x, e), -0.5 // slope is that of g
		if x > 1e-4 {
			slope = float64(first*(1-float64(x/(1-e)))) / x
		}
		step := (shape + float64(changes*first) - float64(rate*time)) / (time - float64(float64(changes*mean)*slope))
		if rate += step; step <= 1e-13*rate {
			break
		}
	}
	// The second derivative there is minus the shape of a Gamma distribution with this maximum.
	information := 1.0
	if x := float64(rate * mean); x > 1e-4 {
		e := exp(x)
		information = g(x, e) * x / (1 - e)
	}
	return Estimate{rate, shape + float64(changes*information)}
}

// Value returns the value of fetching a page, for the given number of milliseconds after its last fetch:
// the time by which the fetch is expected to make the copy fresher, in milliseconds. It rises with the
// time. It is the mean over the distribution of Value(rate, since).
func (e Estimate) Value(since float64) float64 {
	scale := e.shape / e.Rate
	s := max(since, 0) / scale
	if s < 1e-3 && e.shape*s < 1e-3 { // the difference below would lose its digits
		return scale * e.shape * s * s * (0.5 - float64((e.shape+1)*s)/3)
	}
	log, less := log1p(s), e.shape-1
	mean := log
	if less > 1e-6 || less < -1e-6 {
		mean = (1 - exp(float64(less*log))) / less
	}
	return scale * (mean - float64(s*exp(float64(e.shape*log))))
}

// Value returns the value of fetching a page that is known to change with the given rate per millisecond,
// since milliseconds after its last fetch: (1 − e^−x·(1 + x)) / rate, where x is rate·since.
func Value(rate, since float64) float64 {
	x := float64(rate * max(since, 0))
	if x < 1e-3 { // the difference below would lose its digits
		return float64(x*x) * (0.5 - x/3) / rate
	}
	return (1 - float64(exp(x)*(1+x))) / rate
}

// Price returns the multiplier: the value from which a fetch is worth its cost, in milliseconds. It is
// such that a page that is known to change once in r.First is fetched once in r.First.
func (r Rule) Price() float64 {
	return Value(1/float64(ms(r.First)), float64(ms(r.First)))
}

// Steady returns the least interval after a fetch that found no change. learned is the interval before. A
// page of which no change is known waits twice as long with each fetch. Another page waits for a third of
// the time for which it has been the same, and never shorter than before. If nothing is known about a page but that it
// was the same for a time t, it stays so for another t/3 with probability 3/4. This bound forgets changes of
// long ago: by the rates alone, a page that never changes any more would need hundreds of fetches until
// its interval is the largest.
func Steady(h schema.ChangeHistory, learned time.Duration) time.Duration {
	if h.ChangeWeight <= 0 {
		return 2 * learned
	}
	return max(time.Duration(h.SameMS/3)*time.Millisecond, learned)
}

// Interval returns the time between two fetches of a page with the given history, and what decided it.
// The time is not shorter than least, unless r.Max is: see Steady.
//
// It is the time after which the value of a fetch reaches Price. The shortest such interval is that of
// pages that change peak times in it. Azar's policy would fetch pages that change more often ever less,
// because no copy of them stays fresh. Interval fetches them after peak expected changes, since such
// pages also link to new pages. A page that changes more therefore never waits longer.
//
// A page of which no change was observed waits for r.First at least. If enough peers are known, they
// decide, but it waits for a sixteenth of r.First at least.
func (r Rule) Interval(h schema.ChangeHistory, least time.Duration) (time.Duration, schema.DueReason) {
	if h == (schema.ChangeHistory{}) && !r.prior.known {
		return min(max(r.First, r.Min), r.Max), schema.DueFirst
	}
	e, price := r.Estimate(h), r.price
	if price == 0 {
		price = r.Price()
	}
	interval, low := min(peak/e.Rate, float64(ms(r.Max))), float64(max(ms(r.Min), least.Milliseconds()))
	if interval > low {
		interval = e.reaches(price, low, interval)
	}
	reason := schema.DueRate
	first := r.First
	if r.prior.known {
		first /= sooner
	}
	if first := float64(ms(min(max(first, r.Min), r.Max))); h.ChangeWeight <= 0 && interval < first {
		interval = first // no change was observed, so little speaks for a shorter interval
		if !r.prior.known {
			reason = schema.DueFirst
		}
	}
	if least := float64(least.Milliseconds()); interval < least || interval == least && reason == schema.DueRate {
		interval, reason = least, schema.DueSteady
	}
	switch {
	case reason == schema.DueFirst:
	case interval <= float64(ms(r.Min)):
		return r.Min, schema.DueMin
	case interval >= float64(ms(r.Max)):
		return r.Max, schema.DueMax
	}
	return time.Duration(interval) * time.Millisecond, reason
}

// reaches returns the time between low and high after which the value reaches the price. It is high if the value
// is less until then, and low if it is more.
func (e Estimate) reaches(price, low, high float64) float64 {
	// Most pages do not change, and for most of these low decides. The margin is for rounding: the value rises
	// with the time, but its digits may not.
	atLow := e.Value(low) - price
	if atLow > 1e-6*price {
		return low
	}
	atHigh := e.Value(high) - price
	if atHigh <= 0 {
		return high
	}
	return zero(low, high, atLow, atHigh, func(since float64) float64 { return e.Value(since) - price })
}

// Gain returns the value of a fetch as a share from 0 to 1: value / (value + Price). It orders pages as
// their values do. since is the time since the last fetch. If a sitemap or feed announces a change, the
// value is that after at least r.Max.
func (r Rule) Gain(h schema.ChangeHistory, since time.Duration, announced bool) float64 {
	if announced {
		since = max(since, r.Max)
	}
	value := r.Estimate(h).Value(float64(ms(since)))
	return value / (value + r.Price())
}

// Worth returns the value of a fetch on a logarithmic scale: 0 for Price, 1 for a hundred times Price or
// more, -1 for a hundredth or less. since is the time since the last fetch. If a sitemap or feed announces
// a change, the value is that after at least r.Max.
//
// From r.Max on, the value counts as Price times since / r.Max at least, even if the page never changes, or
// changes too often to stay fresh. So no rate of change keeps a page from being fetched: a page that waits
// long enough reaches 1.
func (r Rule) Worth(h schema.ChangeHistory, since time.Duration, announced bool) float64 {
	if announced {
		since = max(since, r.Max)
	}
	ratio := r.Estimate(h).Value(float64(ms(since))) / r.Price()
	if floor := float64(since) / float64(max(r.Max, 1)); floor >= 1 {
		ratio = max(ratio, floor)
	}
	const most = 100
	switch {
	case ratio >= most:
		return 1
	case ratio <= 1.0/most:
		return -1
	case ratio < 1:
		return -log1p(1/ratio-1) / log1p(most-1)
	}
	return log1p(ratio-1) / log1p(most-1)
}

// zero returns the zero of a rising function between low and high, where it has the given values, by the method of false position with
// the modification Illinois (Dowell and Jarratt, BIT 11, 1971). The result has six digits at least.
func zero(low, high, atLow, atHigh float64, f func(float64) float64) float64 {
	if atLow >= 0 {
		return low
	}
	if atHigh <= 0 {
		return high
	}
	last, x, side := high, high, 0
	for range 100 {
		x = high - float64(float64(high-low)*atHigh)/(atHigh-atLow)
		if x <= low || x >= high { // the difference is below the precision
			x = low + float64((high-low)/2)
		}
		y := f(x)
		if y == 0 || math.Abs(x-last) <= 1e-7*x {
			break
		}
		switch last = x; {
		case y < 0:
			if low, atLow = x, y; side < 0 {
				atHigh /= 2
			}
			side = -1
		default:
			if high, atHigh = x, y; side > 0 {
				atLow /= 2
			}
			side = 1
		}
	}
	return x
}

func ms(d time.Duration) int64 { return max(d.Milliseconds(), 1) }

// g returns x / (e^x − 1): the share of x changes that are expected to be the first since a fetch. e is e^−x.
func g(x, e float64) float64 {
	if x < 1e-4 {
		return 1 - float64(x/2) // the next term is below 1e-9
	}
	return float64(x*e) / (1 - e)
}

const (
	// ln2High has 32 bits, so its products with whole numbers below 2^20 are exact.
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// taylor holds 1/n! for n from 13 to 0. The next term of the series is below 1e-17.
var taylor = func() (c [14]float64) {
	c[13] = 1
	for n := 1; n < 14; n++ {
		c[13-n] = c[14-n] / float64(n)
	}
	return c
}()

// odd holds 1/n for odd n from 29 to 1.
var odd = func() (c [15]float64) {
	for i := range c {
		c[i] = 1 / float64(29-2*i)
	}
	return c
}()

// exp returns e^−x for x > −700.
func exp(x float64) float64 {
	if x > 700 {
		return 0
	}
	k := math.Floor(float64(x/math.Ln2) + 0.5)
	rest := (x - float64(k*ln2High)) - float64(k*ln2Low) // from −ln 2 / 2 to ln 2 / 2
	sum := 0.0
	for i := range taylor { // a range over the values would copy them
		sum = taylor[i] - float64(rest*sum)
	}
	return sum * math.Float64frombits(uint64(1023-int64(k))<<52) // 2^−k
}

// log1p returns the logarithm of 1 + x for x ≥ 0.
func log1p(x float64) float64 {
	k := 0
	if x > 1 {
		var m float64 // from 0.5 to 1
		m, k = math.Frexp(1 + x)
		x, k = float64(2*m)-1, k-1
	}
	z := x / (2 + x) // the logarithm of 1 + x is 2·artanh(z); z is at most 1/3
	square, sum := float64(z*z), 0.0
	for i := range odd { // the next term is below 1e-16
		sum = float64(square*sum) + odd[i]
	}
	return float64(float64(k)*math.Ln2) + float64(2*z*sum)
}
