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
