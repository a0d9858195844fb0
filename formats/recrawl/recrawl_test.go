package recrawl

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

const day = 24 * time.Hour

var monthly = Rule{First: 30 * day, Min: day, Max: 180 * day}

// perDay returns a rate per millisecond.
func perDay(changes float64) float64 { return changes / float64(day.Milliseconds()) }

// observe returns the history after the given numbers of intervals of equal length.
func observe(interval time.Duration, changed, unchanged int) (h schema.ChangeHistory) {
	for n := range changed + unchanged {
		h = Observe(h, interval.Milliseconds(), n >= unchanged)
	}
	return h
}

func TestExponentialsAndLogarithmsAreExact(t *testing.T) {
	for x := -50.0; x < 720; x += 0.0371 {
		if got, want := exp(x), math.Exp(-x); math.Abs(got-want) > 1e-15*want+1e-300 {
			t.Fatalf("e^-%g = %g, want %g", x, got, want)
		}
	}
	for x := 1e-12; x < 1e20; x *= 1.037 {
		if got, want := log1p(x), math.Log1p(x); math.Abs(got-want) > 1e-15*want {
			t.Fatalf("ln(1 + %g) = %g, want %g", x, got, want)
		}
	}
	for x := 1e-9; x < 100; x *= 1.037 {
		if got, want := g(x, exp(x)), x/math.Expm1(x); math.Abs(got-want) > 1e-8 {
			t.Fatalf("g(%g) = %g, want %g", x, got, want)
		}
	}
}

// The value of an estimate is the mean of the value over a Gamma distribution of the rate, computed here
// by adding up a million parts.
func TestTheValueIsTheMeanOverTheRates(t *testing.T) {
	for _, k := range []float64{0.25, 0.9, 1, 1.0000005, 1.1, 3, 16} {
		for _, since := range []float64{0.0005, 0.002, 0.1, 1, 5, 40} {
			e := Estimate{Rate: 1, shape: k}
			sum, weights := 0.0, 0.0
			const parts = 100_000
			for n := range parts { // by the logarithm of the rate, from e^-40 to e^5
				log := -40 + 45*(float64(n)+0.5)/parts
				rate := math.Exp(log)
				weight := math.Exp(k*log - k*rate)
				x := rate * since
				sum += weight * -(math.Expm1(-x) + x*math.Exp(-x)) / rate
				weights += weight
			}
			if got, want := e.Value(since), sum/weights; math.Abs(got-want) > 2e-3*want {
				t.Errorf("shape %g, %g after the fetch: %g, want %g", k, since, got, want)
			}
		}
	}
	if got, want := (Estimate{1, 1e9}).Value(2), Value(1, 2); math.Abs(got-want) > 1e-6 {
		t.Errorf("an estimate without error gives %g, want %g", got, want)
	}
	for _, x := range []float64{0.9e-3, 1.1e-3} { // on both sides of the series
		if got, want := Value(1, x), x*x/2-x*x*x/3+x*x*x*x/8; math.Abs(got-want) > 1e-6*want {
			t.Errorf("Value(1, %g) = %g, want %g", x, got, want)
		}
	}
}

// The bits of the results are fixed: a compiler that fuses a product and a sum, or a machine with another
// exponential, would change some of them.
func TestResultsHaveTheSameBitsOnEachMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	sum := fnv.New64a()
	for range 5000 {
		var h schema.ChangeHistory
		for range r.IntN(20) {
			h = Observe(h, r.Int64N(200*day.Milliseconds()), r.IntN(2) == 0)
		}
		interval, reason := monthly.Interval(h, 0)
		fmt.Fprintf(sum, "%x %x %d %s\n", math.Float64bits(monthly.Estimate(h).Rate), math.Float64bits(monthly.Gain(h, interval, false)), interval, reason)
	}
	if got, want := fmt.Sprintf("%x", sum.Sum64()), "850578df628ee346"; got != want {
		t.Errorf("the digest of the results is %s, want %s", got, want)
	}
}

func TestRateWithoutAChangeIsThePosteriorMean(t *testing.T) {
	for n := range 10 {
		h := observe(20*day, 0, n)
		want := perDay(shape / (30*share + 20*float64(n)))
		if got := monthly.Estimate(h).Rate; math.Abs(got-want) > 1e-12*want {
			t.Errorf("after %d intervals without a change, the rate is %g, want %g", n, got, want)
		}
	}
}

// With a prior that weighs nothing, equal intervals give the maximum-likelihood estimate of Cho and
// Garcia-Molina, −ln(1 − X/n)/I. The naive X/(n·I) is far below it.
func TestRateApproachesTheMaximumOfTheLikelihood(t *testing.T) {
	weak := Rule{First: time.Second, Min: time.Second, Max: time.Hour}
	for unchanged := 1; unchanged <= 15; unchanged++ {
		interval := 1000 * day
		h := schema.ChangeHistory{ChangeWeight: unit * int64(16-unchanged), ChangedMS: int64(16-unchanged) * interval.Milliseconds(), UnchangedMS: int64(unchanged) * interval.Milliseconds()}
		want := -math.Log(float64(unchanged)/16) / float64(interval.Milliseconds())
		got := weak.Estimate(h).Rate
		// The prior adds a quarter of a change.
		if got < want || got > want*(1+0.8/float64(16-unchanged)) {
			t.Errorf("with %d of 16 intervals unchanged, the rate is %g, want a little more than %g", unchanged, got, want)
		}
	}
}

// Pages of known rates are fetched at irregular times. The mean of the estimates of many pages must not
// be biased by more than the forgetting explains, for pages that change rarely and often between
// fetches.
func TestRateIsNotBiased(t *testing.T) {
	const seed = 7
	for _, changes := range []float64{0.05, 0.3, 1, 2} { // expected changes in a mean interval
		r := rand.New(rand.NewPCG(seed, uint64(changes*100)))
		rate, logs, naive := perDay(changes/10), 0.0, 0.0
		const pages = 400
		for range pages {
			var h schema.ChangeHistory
			found, total := 0.0, 0.0
			for range 400 {
				interval := time.Duration((0.5 + r.Float64()) * 10 * float64(day)).Milliseconds()
				changed := r.Float64() < 1-math.Exp(-rate*float64(interval))
				h = Observe(h, interval, changed)
				total += float64(interval)
				if changed {
					found++
				}
			}
			logs += math.Log(monthly.Estimate(h).Rate/rate) / pages
			naive += math.Log(found/total/rate) / pages
		}
		t.Logf("seed %d, %g changes an interval: the estimate is %.1f %% off, the naive one %.1f %%", seed, changes, 100*(math.Exp(logs)-1), 100*(math.Exp(naive)-1))
		if math.Abs(logs) > 0.08 {
			t.Errorf("%g changes an interval: the estimate is off by the factor %.3f", changes, math.Exp(logs))
		}
	}
}

func TestAHistoryForgetsAndStaysBounded(t *testing.T) {
	quiet := observe(100*day, 0, 30)
	busy := quiet
	for range 60 {
		busy = Observe(busy, day.Milliseconds(), true)
	}
	if d, _ := monthly.Interval(quiet, 0); d != monthly.Max {
		t.Errorf("a page without a change in 3000 days waits %v", d)
	}
	if d, _ := monthly.Interval(busy, 0); d > 12*day {
		t.Errorf("a page that has changed 60 times since waits %v: %+v", d, busy)
	}
	always := observe(day, 5000, 0)
	if always.ChangeWeight > memory*unit || always.ChangedMS > (memory+1)*day.Milliseconds() {
		t.Errorf("the history of a page that always changes grows: %+v", always)
	}
	// Fetches that find no change a moment after the last one say nothing, and unlearn nothing.
	before, after := observe(20*day, 10, 5), observe(20*day, 10, 5)
	for range 1000 {
		after = Observe(after, 1, false)
	}
	a, _ := monthly.Interval(before, 0)
	b, _ := monthly.Interval(after, 0)
	if b < a || b > a+time.Minute {
		t.Errorf("the interval was %v and is %v", a, b)
	}
}

func TestIntervals(t *testing.T) {
	news := Rule{First: time.Hour, Min: 15 * time.Minute, Max: 7 * day}
	for _, tc := range []struct {
		name   string
		rule   Rule
		h      schema.ChangeHistory
		least  time.Duration
		most   time.Duration
		reason schema.DueReason
	}{
		{"fetched once", monthly, schema.ChangeHistory{}, 30 * day, 30 * day, schema.DueFirst},
		{"never changed, for 30 days", monthly, observe(30*day, 0, 1), 75 * day, 85 * day, schema.DueRate},
		{"never changed, for 400 days", monthly, observe(100*day, 0, 4), 180 * day, 180 * day, schema.DueMax},
		{"changes each day", monthly, observe(day, 40, 0), day, day, schema.DueMin},
		{"changes within two of three months", monthly, observe(30*day, 10, 5), 27 * day, 31 * day, schema.DueRate},
		{"news that always changes", news, observe(15*time.Minute, 40, 0), 15 * time.Minute, 15 * time.Minute, schema.DueMin},
		{"news that never changes", news, observe(time.Hour, 0, 15000), 7 * day, 7 * day, schema.DueMax},
	} {
		got, reason := tc.rule.Interval(tc.h, 0)
		if got < tc.least || got > tc.most || reason != tc.reason {
			t.Errorf("%s: %v because of %s, want %v to %v because of %s", tc.name, got, reason, tc.least, tc.most, tc.reason)
		}
	}
}

// At the interval, the value of a fetch is the price, unless the page changes too often.
func TestTheValueAtTheIntervalIsThePrice(t *testing.T) {
	wide := Rule{First: 30 * day, Min: time.Second, Max: 36500 * day}
	last := time.Duration(0)
	for _, unchanged := range []int64{1, 3, 10, 30, 100, 1000, 10_000} { // days before one change
		h := schema.ChangeHistory{ChangeWeight: 8 * unit, ChangedMS: 8 * day.Milliseconds(), UnchangedMS: unchanged * day.Milliseconds()}
		interval, reason := wide.Interval(h, 0)
		e := wide.Estimate(h)
		value, often := e.Value(float64(interval.Milliseconds())), e.Value(peak/e.Rate) < wide.Price()
		switch {
		case reason != schema.DueRate || interval < last || often != (unchanged <= 100):
			t.Errorf("%d days: %v because of %s after %v, changes often: %v", unchanged, interval, reason, last, often)
		case !often && (math.Abs(value/wide.Price()-1) > 1e-6 || math.Abs(wide.Gain(h, interval, false)-0.5) > 1e-6):
			t.Errorf("%d days: the value is %g, the price %g", unchanged, value, wide.Price())
		case often && math.Abs(e.Rate*float64(interval.Milliseconds())-peak) > 1e-6:
			t.Errorf("%d days: %g expected changes", unchanged, e.Rate*float64(interval.Milliseconds()))
		}
		if later := wide.Gain(h, 2*interval, false); later <= wide.Gain(h, interval, false) || wide.Gain(h, interval, true) < later {
			t.Errorf("%d days: the gain does not rise with time up to the gain of an announced change", unchanged)
		}
		last = interval
	}
}

func TestHistoriesOfOlderRowsAreAssumed(t *testing.T) {
	month := (30 * day).Milliseconds()
	for _, tc := range []struct {
		fetches, changes int32
		want             schema.ChangeHistory
	}{
		{0, 0, schema.ChangeHistory{}},
		{1, 0, schema.ChangeHistory{}},
		{5, 1, schema.ChangeHistory{ChangeWeight: unit, ChangedMS: month, UnchangedMS: 3 * month}},
		{3, 7, schema.ChangeHistory{ChangeWeight: 2 * unit, ChangedMS: 2 * month}}, // a damaged row
		{33, 16, schema.ChangeHistory{ChangeWeight: 8 * unit, ChangedMS: 8 * month, UnchangedMS: 8 * month}},
	} {
		if got := Assume(tc.fetches, tc.changes, month); got != tc.want {
			t.Errorf("%d fetches, %d changes: %+v, want %+v", tc.fetches, tc.changes, got, tc.want)
		}
	}
	if h := Assume(math.MaxInt32, math.MaxInt32, (3650 * day).Milliseconds()); h.ChangeWeight != memory*unit || h.UnchangedMS != 0 || h.ChangedMS < 0 {
		t.Errorf("%+v", h)
	}
}

// Rows come from tables that anything may have written.
func TestNoHistoryBreaksTheIntervals(t *testing.T) {
	for _, a := range []int64{math.MinInt64, -1, 0, 1, 1000, math.MaxInt64} {
		for _, b := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			for _, c := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
				h := schema.ChangeHistory{ChangeWeight: a, ChangedMS: b, UnchangedMS: c}
				d, _ := monthly.Interval(h, 0)
				if gain := monthly.Gain(h, day, false); d < monthly.Min || d > monthly.Max || !(gain >= 0 && gain <= 1) {
					t.Errorf("%+v: %v, gain %g", h, d, gain)
				}
			}
		}
	}
}
