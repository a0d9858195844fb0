package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

func TestHistogramsAreExactToAShare(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var h histogram
	var all []int64
	for range 20_000 {
		v := int64(math.Exp(r.Float64() * 30))
		h.add(v)
		all = append(all, v)
	}
	h.add(math.MaxInt64)
	all = append(all, math.MaxInt64)
	slices.Sort(all)
	for _, q := range []float64{0.0001, 0.1, 0.5, 0.9, 0.99, 1} {
		want := all[max(1, int(math.Ceil(q*float64(len(all)))))-1]
		if got := h.quantile(q); math.Abs(float64(got-want)) > within*float64(want) {
			t.Errorf("quantile %g: %d, want %d", q, got, want)
		}
	}
}

func TestTopsAreExactToTheirBound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	top, exact := newTop(100, 0, sum, largest), map[string]int64{}
	for range 200_000 {
		k := fmt.Sprint(int(math.Exp(r.Float64() * 9)))
		exact[k]++
		top.add(k, 1, exact[k])
	}
	if len(top.entries) > 200 || top.dropped == 0 {
		t.Fatalf("%d keys, dropped %d", len(top.entries), top.dropped)
	}
	var keys []string
	for k := range exact {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return exact[keys[i]] > exact[keys[j]] })
	for i, k := range keys {
		e := top.entries[k]
		if e == nil && exact[k] > top.dropped {
			t.Errorf("key %s has %d rows and is missing; dropped at most %d", k, exact[k], top.dropped)
		}
		if e != nil && (e.values[0] > exact[k] || e.values[0]+e.missed < exact[k]) {
			t.Errorf("key %s: %d, missed %d, exact %d", k, e.values[0], e.missed, exact[k])
		}
		if i < 10 && (e == nil || e.missed > exact[k]/100) {
			t.Errorf("frequent key %s: %+v, exact %d", k, e, exact[k])
		}
	}
}

func TestTimelinesDoNotDependOnTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var times []int64
	for range 5000 {
		times = append(times, begin+int64(r.Float64()*9e8))
	}
	make := func(times []int64) string {
		l := newTimeline(100, 1)
		for i, at := range times {
			l.at(0, at)[0]++
			if i%2 == 0 {
				l.at(1, at)[0]--
				l.at(1, at)[0]++
			}
		}
		text := fmt.Sprint(l.step)
		for _, p := range l.sorted() {
			if p.round == 0 {
				text += fmt.Sprint(" ", p.at, l.points[p])
			}
		}
		if len(l.points) > 100 {
			t.Errorf("%d points", len(l.points))
		}
		return text
	}
	first := make(times)
	slices.Reverse(times)
	if second := make(times); first != second {
		t.Errorf("in reverse order:\n%s\n%s", first, second)
	}
	rounds := newTimeline(10, 1)
	for i := range 50 {
		rounds.at(i, begin)[0]++
	}
	if len(rounds.points) != 50 {
		t.Errorf("%d points of 50 rounds", len(rounds.points))
	}
}
