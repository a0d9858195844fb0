package schema

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The order of insertion does not change a set of spellings. A set that has overflowed stays in
// this state.
func TestSpellingsAreASet(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e", "f", "g"}
	for n := range len(all) + 1 {
		want := all[:min(n, MaxSpellings+1)]
		for range 50 {
			var one, other Spellings
			for _, i := range rand.Perm(n) {
				if rand.IntN(2) == 0 {
					one = one.Add(all[i])
				} else {
					other = other.Add(all[i]).Add(all[i]).Add("")
				}
			}
			before := slices.Clone(one)
			got := one.Union(other)
			if !slices.Equal(got, want) || got.Overflow() != (n > MaxSpellings) || !slices.Equal(one, before) {
				t.Fatalf("%q and %q are %q, want %q", one, other, got, want)
			}
		}
	}
}

// Two redirects of a URL to the same target may differ only in the target's spelling, so the order
// of edges must include the spelling.
func TestEdgesThatDifferHaveAnOrder(t *testing.T) {
	less := Edge{TargetBucket: 1, TargetSURT: "b", Target: "b", Source: "b", Kind: "b", Ordinal: 1, Spelling: "b"}
	for name, change := range map[string]func(*Edge){
		"bucket": func(e *Edge) { e.TargetBucket++ }, "SURT": func(e *Edge) { e.TargetSURT = "c" }, "target": func(e *Edge) { e.Target = "c" },
		"source": func(e *Edge) { e.Source = "c" }, "kind": func(e *Edge) { e.Kind = "c" }, "ordinal": func(e *Edge) { e.Ordinal++ },
		"spelling": func(e *Edge) { e.Spelling = "c" },
	} {
		more := less
		change(&more)
		if CompareEdges(&less, &more) >= 0 || CompareEdges(&more, &less) <= 0 {
			t.Errorf("edges that differ in the %s have no order", name)
		}
	}
}
