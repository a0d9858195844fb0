package polite

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// zipfSizes gives the pages of each host: total shared out by rank, none above limit.
func zipfSizes(hosts, total, limit int) []int {
	sizes := func(c float64) (n []int, sum int) {
		for i := range hosts {
			k := min(limit, max(1, int(math.Round(c/float64(i+1)))))
			n, sum = append(n, k), sum+k
		}
		return n, sum
	}
	lo, hi := 0.0, float64(total)
	for range 60 {
		mid := (lo + hi) / 2
		if _, sum := sizes(mid); sum < total {
			lo = mid
		} else {
			hi = mid
		}
	}
	n, _ := sizes(hi)
	return n
}

// makespan crawls hosts of the sizes in virtual time and gives the time it took
// and the lower bound max(longest host, total work ÷ slots), in seconds.
func makespan(tb testing.TB, sizes []int, slots int, delay time.Duration, meanService float64) (took, bound float64) {
	clock := newClock()
	s := New(Options{Config: testConfig(delay, 1), Clock: clock})
	start := clock.now
	r := rand.New(rand.NewPCG(7, 7))
	var services []float64
	work, longest := 0.0, 0.0
	for i, n := range sizes {
		if err := s.Add(fmt.Sprintf("h%05d", i), rows(len(services), n)); err != nil {
			tb.Fatal(err)
		}
		chain := 0.0
		for k := range n {
			d := meanService * (0.2 + 1.6*r.Float64())
			services = append(services, d)
			work += d
			if k < n-1 {
				d = max(d, delay.Seconds())
			}
			chain += d
		}
		longest = max(longest, chain)
	}
	bound = max(longest, work/float64(slots))

	var q events
	free := slots
	for {
		turn, wait, more := s.pick(clock.now)
		if turn != nil {
			free--
			turn.Written(clock.now, noAddr)
			d := time.Duration(services[turn.Item.ID] * float64(time.Second))
			heap.Push(&q, event{at: clock.now.Add(d), turn: turn})
		} else if len(q) == 0 {
			if !more {
				break
			}
			clock.add(wait)
			continue
		} else if clock.now.Add(wait).Before(q[0].at) {
			clock.add(wait)
			continue
		}
		if turn == nil || free == 0 {
			e := heap.Pop(&q).(event)
			clock.now = e.at
			e.turn.Done(Result{Class: Success})
			free++
		}
	}
	return clock.now.Sub(start).Seconds(), bound
}

func TestMakespanIsNearItsLowerBound(t *testing.T) {
	took, bound := makespan(t, zipfSizes(1000, 40_000, 750), 40, 2*time.Second, 1.5)
	if ratio := took / bound; ratio > 1.05 {
		t.Errorf("took %.0fs, lower bound %.0fs: %.3f, want at most 1.05", took, bound, ratio)
	}
}

// BenchmarkMakespan is the figure "politeness makespan": 200k URLs on 5,000
// hosts, Zipf sizes capped at 750, mean service 1.5 s, delay 2 s, 200 slots.
func BenchmarkMakespan(b *testing.B) {
	sizes := zipfSizes(5000, 200_000, 750)
	for b.Loop() {
		took, bound := makespan(b, sizes, 200, 2*time.Second, 1.5)
		b.ReportMetric(took/bound, "makespan/bound")
	}
}
