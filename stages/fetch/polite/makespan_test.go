package polite

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// zipfSizes returns the number of pages of each host. The numbers follow Zipf's law, and none is
// above limit.
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

// load is a simulated crawl in virtual time.
type load struct {
	sizes   []int
	slots   int
	delay   time.Duration
	service float64                // mean time of a request, in seconds
	bandOf  func(host, k int) Band // band of row k of a host; nil if all rows are in one band
	// dead, if set, reports whether a host never answers. A request to such a host takes 10 s.
	dead func(host int) bool
}

// makespan simulates l and considers only the hosts that answer. took is the time until none of these
// hosts has URLs left, and bound is the lower bound of this time: max(longest host, total work ÷
// slots). Both are in seconds.
func makespan(tb testing.TB, l load) (took, bound float64) {
	clock := newClock()
	sizes, slots, delay, meanService := l.sizes, l.slots, l.delay, l.service
	s := New(Options{Config: testConfig(delay, 1), Clock: clock, Slots: slots})
	start := clock.now
	r := rand.New(rand.NewPCG(7, 7))
	var services []float64
	work, longest := 0.0, 0.0
	var last time.Time
	hostOf := map[string]int{}
	for i, n := range sizes {
		var of Rows = rows(len(services), n)
		if l.bandOf != nil {
			b := &banded{list: *rows(len(services), n)}
			for k := range n {
				b.bands = append(b.bands, l.bandOf(i, k))
			}
			slices.Sort(b.bands)
			of = b
		}
		name := fmt.Sprintf("h%05d", i)
		hostOf[name] = i
		if err := s.Add(name, of); err != nil {
			tb.Fatal(err)
		}
		if l.dead != nil && l.dead(i) {
			services = append(services, slices.Repeat([]float64{10}, n)...)
			continue
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
		grant, wait, more := s.pick(clock.now)
		if grant != nil && grant.Kind > Probe {
			drainAll(grant)
			continue
		}
		if grant != nil {
			free--
			grant.Written(clock.now, noAddr)
			d := time.Duration(services[grant.Item.ID] * float64(time.Second))
			heap.Push(&q, event{at: clock.now.Add(d), grant: grant})
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
		if grant == nil || free == 0 {
			e := heap.Pop(&q).(event)
			clock.now = e.at
			r := Result{Class: Success}
			if l.dead != nil && l.dead(hostOf[e.grant.Host]) {
				r.Class = Unanswered
			} else {
				last = clock.now
			}
			e.grant.Done(r)
			free++
		}
	}
	return last.Sub(start).Seconds(), bound
}

// banded is a Rows that gives each row a band.
type banded struct {
	list
	bands []Band
}

func (b *banded) Band() Band { return b.bands[len(b.bands)-len(b.list)] }

// zipfLoad is the load of BenchmarkMakespan. Tests use a fifth of it.
func zipfLoad(hosts, urls, slots int) load {
	return load{sizes: zipfSizes(hosts, urls, 750), slots: slots, delay: 2 * time.Second, service: 1.5}
}

func TestMakespanIsNearItsLowerBound(t *testing.T) {
	took, bound := makespan(t, zipfLoad(1000, 40_000, 40))
	if ratio := took / bound; ratio > 1.03 {
		t.Errorf("took %.0fs, lower bound %.0fs: %.3f, want at most 1.03", took, bound, ratio)
	}
}

// Of 1,000 hosts, 100 never answer. The other hosts must not take longer because of these hosts.
func TestDeadHostsCostTheOthersNothing(t *testing.T) {
	with := zipfLoad(1000, 40_000, 40)
	with.dead = func(host int) bool { return host%10 == 3 }
	without := with
	without.sizes = nil
	for i, n := range with.sizes {
		if !with.dead(i) {
			without.sizes = append(without.sizes, n)
		}
	}
	without.dead = nil
	alone, _ := makespan(t, without)
	took, bound := makespan(t, with)
	t.Logf("%.0fs, without dead hosts %.0fs, lower bound %.0fs", took, alone, bound)
	// The first request to each dead host takes 10 s, so the 100 dead hosts take 40 slots for 25 s.
	// No scheduler can avoid that.
	if took > 1.03*alone {
		t.Errorf("took %.0fs beside dead hosts, %.0fs without", took, alone)
	}
}

func TestMakespanOfMixedPriorities(t *testing.T) {
	for name, bandOf := range map[string]func(host, k int) Band{
		"mixed in every host": func(host, k int) Band { return Band(k*7+host) % bands },
		"by host":             func(host, _ int) Band { return Band(host) % bands },
		"large hosts last":    func(host, _ int) Band { return Band(max(0, 4-host/10)) },
	} {
		l := zipfLoad(1000, 40_000, 40)
		l.bandOf = bandOf
		took, bound := makespan(t, l)
		t.Logf("%s: %.3f", name, took/bound)
		if ratio := took / bound; ratio > 1.1 {
			t.Errorf("%s: took %.0fs, lower bound %.0fs: %.3f, want at most 1.1", name, took, bound, ratio)
		}
	}
}

// BenchmarkMakespan measures the figure "politeness makespan": the ratio of the time taken to the
// lower bound max(longest host, total work ÷ slots). The load is 200,000 URLs on 5,000 hosts, with
// Zipf sizes of at most 750, a mean service time of 1.5 s, a delay of 2 s and 200 slots.
func BenchmarkMakespan(b *testing.B) {
	l := zipfLoad(5000, 200_000, 200)
	for b.Loop() {
		took, bound := makespan(b, l)
		b.ReportMetric(took, "virtual-s")
		b.ReportMetric(bound, "virtual-s-floor")
		b.ReportMetric(took/bound, "makespan/floor")
	}
}

// BenchmarkMakespanHosts measures the time per grant and the memory per host. Neither may grow with
// the number of hosts.
func BenchmarkMakespanHosts(b *testing.B) {
	for _, hosts := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			clock := newClock()
			s := New(Options{Config: testConfig(2*time.Second, 1), Clock: clock, Slots: 200})
			for i := range hosts {
				if err := s.Add(fmt.Sprintf("www.h%07d.example.org", i), endless{}); err != nil {
					b.Fatal(err)
				}
			}
			grant := func() {
				for {
					grant, wait, _ := s.pick(clock.now)
					if grant == nil {
						clock.add(wait)
						continue
					}
					_, _ = grant.Written(clock.now, noAddr)
					grant.Sent(clock.now)
					clock.add(7500 * time.Microsecond) // time between two grants, with 200 slots and requests of 1.5 s
					grant.Done(Result{Class: Success})
					return
				}
			}
			for range hosts { // each host answers once
				grant()
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				grant()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(hosts), "B/host")
			runtime.KeepAlive(s)
		})
	}
}

// endless is a Rows that never becomes empty.
type endless struct{}

func (endless) Len() int           { return 1 }
func (endless) Pop() (int64, bool) { return 0, true }
func (endless) Band() Band         { return Medium }

// The planner packs slow domains together. It predicts that a partition takes as long as its
// longest host, or as long as all fetches take on all slots, whichever is longer. The prediction
// must hold.
func TestMakespanOfPackedPartitions(t *testing.T) {
	for name, sizes := range map[string][]int{
		"few long hosts":                  slices.Repeat([]int{500}, 50),
		"long hosts for every slot":       slices.Repeat([]int{150}, 266),
		"long hosts beside many short":    append(slices.Repeat([]int{300}, 30), slices.Repeat([]int{5}, 2000)...),
		"hosts of one page and two pages": append(slices.Repeat([]int{1}, 10_000), slices.Repeat([]int{2}, 5000)...),
	} {
		took, bound := makespan(t, load{sizes: sizes, slots: 200, delay: 2 * time.Second, service: 1.5})
		t.Logf("%s: %.3f", name, took/bound)
		if ratio := took / bound; ratio > 1.03 {
			t.Errorf("%s: took %.0fs, lower bound %.0fs: %.3f, want at most 1.03", name, took, bound, ratio)
		}
	}
}
