package reducecheck

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestPagesTakeLittleMemory measures the memory in which the check of clusters keeps 200,000 pages, of
// which one in ten is a copy of another page.
func TestPagesTakeLittleMemory(t *testing.T) {
	const pages, most = 200_000, 4 << 20
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	l, err := newLikeness(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for i := range uint64(pages) {
		p := features{A: i, Fingerprint: i * 0x9e3779b97f4a7c15, Long: true}
		if i%10 == 9 {
			p.A--
			p.Fingerprint -= 0x9e3779b97f4a7c15
		}
		if err := l.add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.connect(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if held := live() - before; held > most {
		t.Errorf("%d bytes are held for %d pages, want at most %d", held, pages, most)
	}
	if l.isClustered(7) || !l.isClustered(8) || l.find(8) != l.find(9) || l.find(8) == l.find(19) || l.isClustered(pages) {
		t.Error("the clusters are not the copies with their originals")
	}
}

// TestComponentsAreThoseOfAllPairs computes the components by their definition, by comparing each pair of
// pages, and requires that connect finds the same components.
func TestComponentsAreThoseOfAllPairs(t *testing.T) {
	joined := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 5))
		k := int(seed % 5)
		l, err := newLikeness(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		var pages []features
		for i := range 120 {
			if i == 10 || i == 30 {
				l.sealed = int64(i)
			}
			p := features{A: uint64(i), C: 1, Fingerprint: random.Uint64(), Long: random.IntN(4) > 0}
			if i > 0 && random.IntN(3) > 0 {
				of := pages[random.IntN(i)]
				p.Fingerprint = of.Fingerprint
				for range random.IntN(5) {
					p.Fingerprint ^= 1 << random.IntN(64)
				}
				if p.Fingerprint == of.Fingerprint && random.IntN(2) > 0 {
					p = of
				}
			}
			pages = append(pages, p)
			if err := l.add(p); err != nil {
				t.Fatal(err)
			}
		}
		// By definition, a component starts with one page, and grows by the pages that are similar
		// to one of its pages.
		want, sealed := make([]int, len(pages)), int(l.sealed)
		for i := range want {
			want[i] = -1
		}
		for i := sealed; i < len(pages); i++ {
			if want[i] >= 0 {
				continue
			}
			want[i] = i
			for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
				for j := range want {
					from := queue[0]
					if want[j] < 0 && pages[from].alike(&pages[j], k) && (from >= sealed || j >= sealed) {
						want[j] = i
						queue = append(queue, j)
					}
				}
			}
		}
		if err := l.connect(t.Context(), k); err != nil {
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
			if l.isClustered(int64(i)) != (size[want[i]] > 1) {
				t.Fatalf("seed %d: %d is clustered: %v", seed, i, l.isClustered(int64(i)))
			}
			for j := range i {
				same := i == j || l.isClustered(int64(i)) && l.isClustered(int64(j)) && l.find(int64(i)) == l.find(int64(j))
				if same != (want[i] == want[j]) {
					t.Fatalf("seed %d: %d and %d in one component: %v", seed, i, j, same)
				}
			}
			if i >= sealed && size[want[i]] > 1 {
				joined++
			}
		}
	}
	if joined < 500 {
		t.Errorf("only %d pages were in clusters", joined)
	}
}
