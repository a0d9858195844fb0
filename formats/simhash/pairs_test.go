package simhash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// allPairs finds the near pairs by comparing every fingerprint with every other fingerprint.
func allPairs(fps []uint64, k int) []simhash.Pair {
	var pairs []simhash.Pair
	for i, a := range fps {
		for j := i + 1; j < len(fps); j++ {
			if d := simhash.Distance(a, fps[j]); d <= k {
				pairs = append(pairs, simhash.Pair{A: i, B: j, Distance: d})
			}
		}
	}
	return pairs
}

func byPosition(a, b simhash.Pair) int {
	if a.A != b.A {
		return a.A - b.A
	}
	return a.B - b.B
}

func collect(t testing.TB, fps []uint64, k int) []simhash.Pair {
	t.Helper()
	var pairs []simhash.Pair
	if err := simhash.Pairs(fps, k, func(p simhash.Pair) bool {
		pairs = append(pairs, p)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return pairs
}

func sorted(fps []uint64) []uint64 {
	slices.Sort(fps)
	return slices.Compact(fps)
}

// populations generates fingerprints with different distributions over the 64 bits.
var populations = map[string]func(r *rand.Rand, n int) []uint64{
	"even": func(r *rand.Rand, n int) []uint64 {
		fps := make([]uint64, n)
		for i := range fps {
			fps[i] = r.Uint64()
		}
		return fps
	},
	"families": func(r *rand.Rand, n int) []uint64 { // chains of fingerprints that are near a few others
		var fps []uint64
		for len(fps) < n {
			f := r.Uint64()
			for range 1 + r.IntN(20) {
				fps = append(fps, f)
				for range r.IntN(5) {
					f ^= 1 << r.IntN(64)
				}
			}
		}
		return fps[:n]
	},
	"one ball": func(r *rand.Rand, n int) []uint64 { // all fingerprints within 4 bits of one fingerprint
		fps := make([]uint64, n)
		for i := range fps {
			fps[i] = 0x0123456789abcdef
			for range r.IntN(5) {
				fps[i] ^= 1 << r.IntN(64)
			}
		}
		return fps
	},
	"one template": func(r *rand.Rand, n int) []uint64 { // fingerprints that share most bits
		fps := make([]uint64, n)
		for i := range fps {
			fps[i] = 0xffff<<40 | r.Uint64()&0x0f0f0000_00f0ff0f
		}
		return fps
	},
	"few bits": func(r *rand.Rand, n int) []uint64 {
		fps := make([]uint64, n)
		for i := range fps {
			fps[i] = r.Uint64() & 0x8000_0011_0100_0421
		}
		return fps
	},
}

func TestPairsAreThoseOfComparingEachWithEach(t *testing.T) {
	for name, population := range populations {
		for _, n := range []int{0, 1, 2, 100, 700} {
			for k := range simhash.MaxDistance + 1 {
				t.Run(fmt.Sprintf("%s/%d/%d", name, n, k), func(t *testing.T) {
					fps := sorted(population(rand.New(rand.NewPCG(uint64(n), uint64(k))), n))
					want, got := allPairs(fps, k), collect(t, fps, k)
					again := collect(t, fps, k)
					if !slices.Equal(got, again) {
						t.Error("the same fingerprints gave their pairs in another order")
					}
					slices.SortFunc(got, byPosition)
					if diff := cmp.Diff(len(want), len(got)); diff != "" || !slices.Equal(want, got) {
						t.Errorf("%d pairs of %d fingerprints, want %d: %v", len(got), len(fps), len(want), diff)
					}
				})
			}
		}
	}
}

func TestPairsOfALargeTemplate(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 fingerprints are compared each with each")
	}
	fps := sorted(populations["one template"](rand.New(rand.NewPCG(7, 7)), 10_000))
	want, got := allPairs(fps, 3), collect(t, fps, 3)
	slices.SortFunc(got, byPosition)
	if len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("%d pairs, want %d", len(got), len(want))
	}
}

func TestPairsStopWhenToldTo(t *testing.T) {
	fps := sorted(populations["one ball"](rand.New(rand.NewPCG(1, 1)), 2000))
	calls := 0
	if err := simhash.Pairs(fps, 3, func(simhash.Pair) bool { calls++; return calls < 5 }); err != nil || calls != 5 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestPairsRefusesWhatItCannotSearch(t *testing.T) {
	none := func(simhash.Pair) bool { return true }
	for name, err := range map[string]error{
		"distance 8":  simhash.Pairs([]uint64{1, 2}, 8, none),
		"distance -1": simhash.Pairs([]uint64{1, 2}, -1, none),
		"not sorted":  simhash.Pairs([]uint64{2, 1}, 3, none),
		"repeated":    simhash.Pairs([]uint64{1, 1}, 3, none),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkPairs(b *testing.B) {
	for _, name := range []string{"even", "families", "one template"} {
		for _, n := range []int{100_000, 1_000_000, 10_000_000} {
			for _, k := range []int{3, 5, 7} {
				if name == "one template" && n > 100_000 || k == 7 && n > 1_000_000 {
					continue
				}
				b.Run(fmt.Sprintf("%s/n=%d/k=%d", name, n, k), func(b *testing.B) {
					fps := sorted(populations[name](rand.New(rand.NewPCG(1, 2)), n))
					b.ReportAllocs()
					pairs := 0
					for b.Loop() {
						pairs = 0
						if err := simhash.Pairs(fps, k, func(simhash.Pair) bool { pairs++; return true }); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(pairs), "pairs")
				})
			}
		}
	}
}
