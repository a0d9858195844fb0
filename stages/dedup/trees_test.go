package dedup

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTreesHaveTheirEdges joins random pairs, and checks that the trees have exactly the edges that
// joined two trees. The shapes are random trees, chains and stars.
func TestTreesHaveTheirEdges(t *testing.T) {
	shapes := map[string]func(r *rand.Rand, i int) int{
		"random": func(r *rand.Rand, i int) int { return r.IntN(i) },
		"chain":  func(_ *rand.Rand, i int) int { return i - 1 },
		"star":   func(*rand.Rand, int) int { return 0 },
	}
	for name, before := range shapes {
		for _, n := range []int{2, 3, 10, 1000} {
			for width, made := range map[int]trees{32: newTreesOf[uint32](uint64(n)), 64: newTreesOf[uint64](uint64(n))} {
				t.Run(fmt.Sprintf("%s/%d/%d", name, n, width), func(t *testing.T) { checkTrees(t, n, made, before) })
			}
		}
	}
	if _, narrow := newTrees(1 << 20).(*treesOf[uint32]); !narrow {
		t.Error("a million vertices take 16 bytes each")
	}
	newTrees(0).plant()
}

func checkTrees(t *testing.T, n int, made trees, before func(r *rand.Rand, i int) int) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	names := r.Perm(n) // so that parents do not have lower numbers
	near := make([]map[uint64]bool, n)
	for i := range near {
		near[i] = map[uint64]bool{}
	}
	var edges []pair
	for i := 1; i < n; i++ {
		if i%100 == 50 {
			continue // another tree begins
		}
		a, b := uint64(names[i]), uint64(names[before(r, i)])
		if !made.join(a, b) || made.join(b, a) {
			t.Fatalf("%d and %d were joined before, or are not joined after", a, b)
		}
		if made.tree(a) != made.tree(b) {
			t.Fatalf("%d and %d are joined, and in the trees %d and %d", a, b, made.tree(a), made.tree(b))
		}
		near[a][b], near[b][a] = true, true
		edges = append(edges, pair{a, b})
	}
	tree := make([]uint64, n)
	lone := make([]bool, n)
	for i := range tree {
		tree[i], lone[i] = made.tree(uint64(i)), len(near[i]) == 0
	}
	for _, e := range edges {
		made.link(e.A, e.B)
	}
	made.plant()
	for range 3 {
		root := uint64(r.IntN(n))
		if lone[root] {
			continue // a vertex without edges has no parent
		}
		made.reroot(root)
		for i := range n {
			v, steps := uint64(i), 0
			for ; !lone[i] && made.parent(v) != v; v = made.parent(v) {
				if steps++; !near[v][made.parent(v)] || steps > n {
					t.Fatalf("among the parents of %d, the step from %d to %d is not an edge", i, v, made.parent(v))
				}
			}
			if tree[i] == tree[root] && v != root {
				t.Fatalf("the parents of %d lead to %d, not to the root %d", i, v, root)
			}
		}
	}
}
