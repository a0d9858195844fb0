package simhash_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// pair holds the positions of two near fingerprints.
type pair struct{ a, b uint64 }

func comparePairs(x, y pair) int {
	if x.a != y.a {
		return int(x.a) - int(y.a)
	}
	return int(x.b) - int(y.b)
}

// allPairs finds the near pairs by comparing every fingerprint with every other fingerprint, on all
// processors.
func allPairs(fps []uint64, k int) []pair {
	found := make([][]pair, len(fps))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(fps)); i = next.Add(1) - 1 {
				for j, b := range fps[i+1:] {
					if simhash.Distance(fps[i], b) <= k {
						found[i] = append(found[i], pair{uint64(i), uint64(i) + 1 + uint64(j)})
					}
				}
			}
		})
	}
	workers.Wait()
	return slices.Concat(found...)
}

// forestOf removes each pair whose fingerprints earlier pairs have already joined.
func forestOf(n int, pairs []pair) []pair {
	parent := make([]uint64, n)
	for i := range parent {
		parent[i] = uint64(i)
	}
	root := func(i uint64) uint64 {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	var forest []pair
	for _, p := range pairs {
		if a, b := root(p.a), root(p.b); a != b {
			parent[max(a, b)] = min(a, b)
			forest = append(forest, p)
		}
	}
	return forest
}

// find returns the pairs that a search reports. old reports whether a fingerprint is old. If memory
// is 0, the search uses its default.
func find(t testing.TB, fps []uint64, k, memory int, every bool, old func(i int) bool) []pair {
	t.Helper()
	return findPart(t, fps, k, memory, every, old, simhash.Part{})
}

// findPart returns the pairs that a part of a search reports.
func findPart(t testing.TB, fps []uint64, k, memory int, every bool, old func(i int) bool, part simhash.Part) []pair {
	t.Helper()
	dir := t.TempDir()
	s, err := simhash.NewSearch(dir, k, part)
	if err != nil {
		t.Fatal(err)
	}
	if memory > 0 {
		s.SetMemory(memory)
	}
	if every {
		s.ReportEvery()
	}
	for i, f := range fps {
		if err := s.Add(f, uint64(i), old != nil && old(i)); err != nil {
			t.Fatal(err)
		}
	}
	var pairs []pair
	if err := s.Forest(t.Context(), func(a, b uint64) error {
		pairs = append(pairs, pair{a, b})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in scratch space: %v, %v", left, err)
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
	"families": func(r *rand.Rand, n int) []uint64 { // chains of fingerprints, each near a few others
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
	"mostly clear": func(r *rand.Rand, n int) []uint64 { // each bit is set in one of 16 fingerprints
		fps := make([]uint64, n)
		for i := range fps {
			fps[i] = r.Uint64() & r.Uint64() & r.Uint64() & r.Uint64()
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
					want, got := allPairs(fps, k), find(t, fps, k, 0, true, nil)
					forest := forestOf(len(fps), got)
					slices.SortFunc(got, comparePairs)
					if k > 0 && !slices.Equal(want, got) {
						t.Errorf("%d pairs of %d fingerprints, want %d", len(got), len(fps), len(want))
					}
					for _, memory := range []int{0, 200} {
						if memory > 0 && (k > 3 || n < memory) {
							continue // a search for a larger distance makes thousands of scratch files
						}
						few := find(t, fps, k, memory, false, nil)
						if got := forestOf(len(fps), few); !slices.Equal(forest, got) {
							t.Errorf("memory for %d: a forest of %d pairs, want %d", memory, len(got), len(forest))
						}
					}
				})
			}
		}
	}
}

func TestOldFingerprintsAreNoPairs(t *testing.T) {
	for name, population := range populations {
		fps := sorted(population(rand.New(rand.NewPCG(5, 5)), 600))
		old := func(i int) bool { return fps[i]%3 > 0 }
		want := slices.DeleteFunc(find(t, fps, 3, 0, true, nil), func(p pair) bool { return old(int(p.a)) && old(int(p.b)) })
		for _, memory := range []int{0, 50} {
			got := find(t, fps, 3, memory, false, old)
			if !slices.Equal(forestOf(len(fps), want), forestOf(len(fps), got)) {
				t.Errorf("%s, memory for %d: another forest", name, memory)
			}
			if slices.ContainsFunc(got, func(p pair) bool { return old(int(p.a)) && old(int(p.b)) }) {
				t.Errorf("%s, memory for %d: two old fingerprints are a pair", name, memory)
			}
		}
	}
}

// planted returns fingerprints. One in a hundred is at a distance of 0 to 6 from an earlier
// fingerprint. One in ten belongs to a kind whose members agree in half of their bits.
func planted(seed uint64, n int) []uint64 {
	r := rand.New(rand.NewPCG(seed, 9))
	fps := make([]uint64, n)
	for i := range fps {
		fps[i] = r.Uint64()
		switch {
		case i%10 == 3:
			fps[i] = fps[i]&0x0000ffff_ffff0000 | 0x1234_0000_0000_5678
		case i%100 == 1:
			fps[i] = fps[r.IntN(i)]
			for _, bit := range r.Perm(64)[:r.IntN(7)] {
				fps[i] ^= 1 << bit
			}
		}
	}
	return sorted(fps)
}

// TestPlantedPairsAreFoundExactly compares the search with brute force, for distances of 1 to 6. Up to
// a distance of 3, the search has memory for only 200 fingerprints or a hundredth of them.
func TestPlantedPairsAreFoundExactly(t *testing.T) {
	most, n := 6, 20_000
	if testing.Short() {
		most, n = 4, 4000
	}
	n = plantedSize(t, n)
	fps := planted(1, n)
	near := allPairs(fps, most)
	for k := 1; k <= most; k++ {
		want := slices.DeleteFunc(slices.Clone(near), func(p pair) bool { return simhash.Distance(fps[p.a], fps[p.b]) > k })
		memory := max(n/100, 200)
		if k > 3 {
			memory = 0 // a search for a larger distance makes thousands of scratch files
		}
		got := find(t, fps, k, memory, true, nil)
		joined := forestOf(len(fps), got)
		if forest := forestOf(len(fps), find(t, fps, k, memory, false, nil)); !slices.Equal(joined, forest) {
			t.Errorf("distance %d: a forest of %d pairs, want %d", k, len(forest), len(joined))
		}
		slices.SortFunc(got, comparePairs)
		if len(want) == 0 || !slices.Equal(want, got) {
			t.Errorf("distance %d: %d pairs, want %d", k, len(got), len(want))
		}
		t.Logf("distance %d: %d pairs of %d fingerprints, %d of them in the forest", k, len(got), len(fps), len(joined))
	}
}

// plantedSize returns the number of fingerprints to search, which CRAWLBATCH_PAIRS may set. For a million, brute
// force takes some 8 minutes of CPU.
func plantedSize(t *testing.T, n int) int {
	if asked := os.Getenv("CRAWLBATCH_PAIRS"); asked != "" {
		if _, err := fmt.Sscan(asked, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestASearchStopsWhenToldTo(t *testing.T) {
	s, err := simhash.NewSearch(t.TempDir(), 3, simhash.Part{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, f := range sorted(populations["one ball"](rand.New(rand.NewPCG(1, 1)), 2000)) {
		if err := s.Add(f, uint64(i), false); err != nil {
			t.Fatal(err)
		}
	}
	calls, enough := 0, errors.New("enough")
	if err := s.Forest(t.Context(), func(a, b uint64) error {
		if calls++; calls == 5 {
			return enough
		}
		return nil
	}); err != enough || calls != 5 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestASearchRefusesWhatItCannotSearch(t *testing.T) {
	for _, k := range []int{-1, 8} {
		if _, err := simhash.NewSearch(t.TempDir(), k, simhash.Part{}); err == nil {
			t.Errorf("distance %d: no error", k)
		}
	}
	for name, fps := range map[string][]uint64{"not sorted": {2, 1}, "repeated": {1, 1}} {
		s, err := simhash.NewSearch(t.TempDir(), 3, simhash.Part{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Add(fps[0], 0, false), s.Add(fps[1], 1, false)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// BenchmarkPairs measures a search. In the population "planted", 1 % of the fingerprints are in
// near pairs. CRAWLBATCH_PAIRS sets another number of fingerprints. CRAWLBATCH_PAIRS_PART=0/8 measures
// the first of 8 parts.
func BenchmarkPairs(b *testing.B) {
	var part simhash.Part
	if asked := os.Getenv("CRAWLBATCH_PAIRS_PART"); asked != "" {
		if _, err := fmt.Sscanf(asked, "%d/%d", &part.Index, &part.Of); err != nil {
			b.Fatal(err)
		}
	}
	populations := maps.Clone(populations)
	populations["planted"] = func(r *rand.Rand, n int) []uint64 {
		fps := make([]uint64, n)
		for i := range fps {
			fps[i] = r.Uint64()
			if i%100 == 1 {
				fps[i] = fps[r.IntN(i)] ^ 1<<r.IntN(64) ^ 1<<r.IntN(64)
			}
		}
		return fps
	}
	sizes, asked := []int{100_000, 1_000_000, 10_000_000}, os.Getenv("CRAWLBATCH_PAIRS")
	if asked != "" {
		sizes = sizes[:1]
		if _, err := fmt.Sscan(asked, &sizes[0]); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"planted", "families", "one template"} {
		for _, n := range sizes {
			for _, k := range []int{3, 5, 7} {
				if name == "one template" && n > 100_000 || k == 7 && n > 1_000_000 || (n > 10_000_000 || asked != "") && (k > 3 || name != "planted") {
					continue
				}
				b.Run(fmt.Sprintf("%s/n=%d/k=%d", name, n, k), func(b *testing.B) {
					fps := sorted(populations[name](rand.New(rand.NewPCG(1, 2)), n))
					b.ReportAllocs()
					pairs := 0
					for b.Loop() {
						s, err := simhash.NewSearch(b.TempDir(), k, part)
						if err != nil {
							b.Fatal(err)
						}
						for i, f := range fps {
							if err := s.Add(f, uint64(i), false); err != nil {
								b.Fatal(err)
							}
						}
						pairs = 0
						if err := s.Forest(b.Context(), func(uint64, uint64) error { pairs++; return nil }); err != nil {
							b.Fatal(err)
						}
						if err := s.Close(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(pairs), "pairs")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/fingerprint")
				})
			}
		}
	}
}
