package reducecheck

import (
	"math/rand/v2"
	"testing"
)

// TestComponentsAreThoseOfAllPairs compares each pair of pages to compute the components as they
// are defined, and requires that connect finds the same components.
func TestComponentsAreThoseOfAllPairs(t *testing.T) {
	joined := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 5))
		k := int(seed % 5)
		var l likeness
		for i := range 120 {
			if i == 10 || i == 30 {
				l.sealed = i
			}
			digest, fingerprint := [20]byte{byte(i), byte(i >> 8), 1}, random.Uint64()
			long := random.IntN(4) > 0
			if i > 0 && random.IntN(3) > 0 {
				of := random.IntN(i)
				fingerprint = l.fingerprint[of]
				for range random.IntN(5) {
					fingerprint ^= 1 << random.IntN(64)
				}
				if fingerprint == l.fingerprint[of] && random.IntN(2) > 0 {
					digest, long = l.digest[of], l.long[of]
				}
			}
			l.add(digest, int64(fingerprint), long)
		}
		// By definition, a component starts with one page, and grows by the pages that are similar
		// to one of its pages.
		want := make([]int, l.count())
		for i := range want {
			want[i] = -1
		}
		for i := l.sealed; i < l.count(); i++ {
			if want[i] >= 0 {
				continue
			}
			want[i] = i
			for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
				for j := range want {
					from := queue[0]
					near := l.digest[from] == l.digest[j] || l.long[from] && l.long[j] && l.distance(int32(from), int32(j)) <= k
					if want[j] < 0 && near && (from >= l.sealed || j >= l.sealed) {
						want[j] = i
						queue = append(queue, j)
					}
				}
			}
		}
		if err := l.connect(t.Context(), t.TempDir(), k); err != nil {
			t.Fatal(err)
		}
		size := map[int]int{}
		for i := range want {
			size[want[i]]++
		}
		for i := range want {
			if want[i] < 0 {
				continue // page i is of a sealed round and resembles no page of this round
			}
			for j := range i {
				if same := l.find(int32(i)) == l.find(int32(j)); same != (want[i] == want[j]) {
					t.Fatalf("seed %d: %d and %d in one component: %v", seed, i, j, same)
				}
			}
			if l.isClustered(i) != (size[want[i]] > 1) {
				t.Fatalf("seed %d: %d is clustered: %v", seed, i, l.isClustered(i))
			}
			if i >= l.sealed && size[want[i]] > 1 {
				joined++
			}
		}
	}
	if joined < 500 {
		t.Errorf("only %d pages were in clusters", joined)
	}
}
