package parse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// TestLinksOfRealPagesAreComparedClosely removes targets of each page's links, and adds others.
// formats/README.md shows the figures of the log.
func TestLinksOfRealPagesAreComparedClosely(t *testing.T) {
	p := newParser(t)
	var sets [][]string
	var all []string
	docs := parsetest.Documents(t)
	for i := range docs {
		parsed := p.Parse(&docs[i])
		var set []string
		for _, l := range parsed.Links {
			set = append(set, l.Target)
		}
		slices.Sort(set)
		sets, all = append(sets, slices.Compact(set)), append(all, set...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	random := rand.New(rand.NewPCG(3, 4))
	for _, d := range []int{1, 2, 3, 5, 10, 20, 50, 100} {
		var off []int
		for range 20 {
			for _, set := range sets {
				last := slices.Clone(set)
				random.Shuffle(len(last), func(i, j int) { last[i], last[j] = last[j], last[i] })
				removed := random.IntN(min(d, len(last)) + 1)
				now := slices.Clone(last[removed:])
				for n := range d - removed {
					now = append(now, fmt.Sprintf("%s?new=%d", all[random.IntN(len(all))], n))
				}
				a, r := schema.SketchLinks(slices.Values(now)).Compare(schema.SketchLinks(slices.Values(last)))
				if int(*a-*r) != d-2*removed {
					t.Fatalf("%d of %d removed, %d added: estimated as %d and %d", removed, len(last), d-removed, *a, *r)
				}
				off = append(off, max(int(*r)-removed, removed-int(*r)))
			}
		}
		slices.Sort(off)
		exact, _ := slices.BinarySearch(off, 1)
		at95 := off[len(off)*95/100]
		t.Logf("%d pages, %d changed targets: %.1f %% exact; both numbers are off by at most %d in 95 %%, %d in all", len(sets), d, 100*float64(exact)/float64(len(off)), at95, off[len(off)-1])
		if at95 > 1+d/12 || d <= 3 && exact < len(off)*97/100 {
			t.Errorf("%d changed targets: the estimates are worse than documented", d)
		}
	}
}
