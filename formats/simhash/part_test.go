package simhash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// leastForest returns the least spanning forest of pairs.
func leastForest(n int, pairs []pair) []pair {
	pairs = slices.Clone(pairs)
	slices.SortFunc(pairs, comparePairs)
	return forestOf(n, pairs)
}

// TestPartsGiveTheLeastForest compares the reports of all parts of a search, for each number of parts,
// with brute force.
func TestPartsGiveTheLeastForest(t *testing.T) {
	for name, population := range populations {
		for k := range simhash.MaxDistance + 1 {
			if k > 3 && testing.Short() {
				continue // thousands of scratch files
			}
			for _, n := range []int{2, 400} {
				fps := sorted(population(rand.New(rand.NewPCG(uint64(n), uint64(k))), n))
				want := allPairs(fps, k)
				if k == 0 {
					want = nil
				}
				comparePart(t, fmt.Sprintf("%s/%d/%d", name, n, k), fps, k, leastForest(len(fps), want), nil)
			}
		}
	}
}

// TestPartsFindPlantedPairs looks for pairs at distances of 0 to 6, among fingerprints of which a tenth share half of
// their bits.
func TestPartsFindPlantedPairs(t *testing.T) {
	most, n := 6, 5000
	if testing.Short() {
		most, n = 3, 2000
	}
	fps := planted(2, plantedSize(t, n))
	near := allPairs(fps, most)
	for k := 1; k <= most; k++ {
		pairs := slices.DeleteFunc(slices.Clone(near), func(p pair) bool { return simhash.Distance(fps[p.a], fps[p.b]) > k })
		forest := leastForest(len(fps), pairs)
		if len(forest) == 0 {
			t.Fatalf("distance %d: no pairs are planted", k)
		}
		comparePart(t, fmt.Sprintf("distance %d", k), fps, k, forest, nil)
	}
}

func TestPartsFindNoPairsOfOldFingerprints(t *testing.T) {
	for name, population := range populations {
		fps := sorted(population(rand.New(rand.NewPCG(5, 5)), 600))
		old := func(i int) bool { return fps[i]%3 > 0 }
		pairs := slices.DeleteFunc(allPairs(fps, 3), func(p pair) bool { return old(int(p.a)) && old(int(p.b)) })
		comparePart(t, name, fps, 3, leastForest(len(fps), pairs), old)
	}
}

// comparePart searches in 1, 2 and 5 parts, and compares the forest of their reports with the wanted one.
func comparePart(t *testing.T, name string, fps []uint64, k int, want []pair, old func(i int) bool) {
	t.Helper()
	for _, of := range []int{1, 2, 5} {
		for _, memory := range []int{0, max(100, len(fps)/100)} {
			if memory > 0 && k > 3 {
				continue // a search for a larger distance makes thousands of scratch files
			}
			var reports []pair
			most := 0
			for part := range of {
				found := findPart(t, fps, k, memory, false, old, simhash.Part{Index: part, Of: of})
				most = max(most, len(found))
				reports = append(reports, found...)
			}
			if got := leastForest(len(fps), reports); !slices.Equal(got, want) {
				t.Errorf("%s, %d parts, memory for %d: a forest of %d pairs, want %d", name, of, memory, len(got), len(want))
			}
			for _, p := range reports {
				if simhash.Distance(fps[p.a], fps[p.b]) > k || old != nil && old(int(p.a)) && old(int(p.b)) {
					t.Fatalf("%s, %d parts: %v is no pair", name, of, p)
				}
			}
			if of > 1 && len(reports) > 1000 && most == len(reports) {
				t.Errorf("%s: one of %d parts reports all %d pairs", name, of, most)
			}
		}
	}
}

// TestPartsDivideTheKeys checks that each key is in one part, and that the parts have about equally many.
func TestPartsDivideTheKeys(t *testing.T) {
	fps := sorted(populations["even"](rand.New(rand.NewPCG(3, 3)), 4000))
	for _, mask := range []uint64{0xffffffff << 32, 0xffffffff, 0xffff0000_0000ffff} {
		sizes := make([]int, 5)
		for _, f := range fps {
			in := 0
			for i := range sizes {
				if (simhash.Part{Index: i, Of: len(sizes)}).Has(f & mask) {
					sizes[i]++
					in++
				}
			}
			if in != 1 {
				t.Fatalf("%#x is in %d parts", f, in)
			}
		}
		if slices.Min(sizes)*10 < slices.Max(sizes)*9 {
			t.Errorf("mask %#x: the parts have %v keys", mask, sizes)
		}
	}
}
