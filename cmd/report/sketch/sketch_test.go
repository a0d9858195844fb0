package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

const begin = 1_793_491_200_000 // 2026-11-01

func TestHistogramsAreExactToAShare(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var h Histogram
	var all []int64
	for range 20_000 {
		v := int64(math.Exp(r.Float64() * 30))
		h.Add(v)
		all = append(all, v)
	}
	h.Add(math.MaxInt64)
	all = append(all, math.MaxInt64)
	slices.Sort(all)
	for _, q := range []float64{0.0001, 0.1, 0.5, 0.9, 0.99, 1} {
		want := all[max(1, int(math.Ceil(q*float64(len(all)))))-1]
		if got := h.Quantile(q); math.Abs(float64(got-want)) > Within*float64(want) {
			t.Errorf("quantile %g: %d, want %d", q, got, want)
		}
	}
}

func TestTopsAreExactToTheirBound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	top, exact := NewTop(100, 0, Sum, Largest), map[string]int64{}
	for range 200_000 {
		k := fmt.Sprint(int(math.Exp(r.Float64() * 9)))
		exact[k]++
		top.Add(k, 1, exact[k])
	}
	if len(top.Entries) > 200 || top.dropped == 0 {
		t.Fatalf("%d keys, dropped %d", len(top.Entries), top.dropped)
	}
	var keys []string
	for k := range exact {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return exact[keys[i]] > exact[keys[j]] })
	for i, k := range keys {
		e := top.Entries[k]
		if e == nil && exact[k] > top.dropped {
			t.Errorf("key %s has %d rows and is missing; dropped at most %d", k, exact[k], top.dropped)
		}
		if e != nil && (e.Values[0] > exact[k] || e.Values[0]+e.Missed < exact[k]) {
			t.Errorf("key %s: %d, missed %d, exact %d", k, e.Values[0], e.Missed, exact[k])
		}
		if i < 10 && (e == nil || e.Missed > exact[k]/100) {
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
		l := NewTimeline(100, 1)
		for i, at := range times {
			l.At(0, at)[0]++
			if i%2 == 0 {
				l.At(1, at)[0]--
				l.At(1, at)[0]++
			}
		}
		text := fmt.Sprint(l.Step)
		for _, p := range l.Sorted() {
			if p.Round == 0 {
				text += fmt.Sprint(" ", p.At, l.Points[p])
			}
		}
		if len(l.Points) > 100 {
			t.Errorf("%d points", len(l.Points))
		}
		return text
	}
	first := make(times)
	slices.Reverse(times)
	if second := make(times); first != second {
		t.Errorf("in reverse order:\n%s\n%s", first, second)
	}
	rounds := NewTimeline(10, 1)
	for i := range 50 {
		rounds.At(i, begin)[0]++
	}
	if len(rounds.Points) != 50 {
		t.Errorf("%d points of 50 rounds", len(rounds.Points))
	}
}
