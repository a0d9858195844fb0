package schema_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// targets returns numbered targets.
func targets(from, to int) (urls []string) {
	for i := from; i < to; i++ {
		urls = append(urls, fmt.Sprintf("https://www.example.org/news/%d.html", i))
	}
	return urls
}

func sketch(targets []string) schema.LinkSketch { return schema.SketchLinks(slices.Values(targets)) }

func TestSketchesOfRandomSetsTellTheirDifference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		at, kept, added, removed := random.IntN(1<<40), random.IntN(300), random.IntN(40), random.IntN(40)
		last := targets(at, at+removed+kept)
		now := targets(at+removed, at+removed+kept+added)
		random.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
		if kept > 0 {
			now = append(now, now[random.IntN(len(now))]) // a page may link twice to a target
		}
		a, r := sketch(now).Compare(sketch(last))
		within := int32(0)
		if d := added + removed; d > 3 {
			within = int32(3 + d/10)
		} else if d > 1 {
			within = 1
		}
		if *a-*r != int32(added-removed) || max(*a-int32(added), int32(added)-*a) > within || min(*a, *r) < 0 {
			t.Fatalf("%d kept, %d added, %d removed: estimated as %d and %d", kept, added, removed, *a, *r)
		}
	}
}

func TestSketchesOfLargeSetsStayWithinBounds(t *testing.T) {
	for _, c := range []struct{ removed, kept, added, within int }{
		{0, 10_000, 0, 0}, {0, 0, 10_000, 0}, {10_000, 0, 0, 0}, {500, 9_000, 500, 400}, {0, 9_000, 900, 400}, {5_000, 0, 5_000, 2_500},
	} {
		a, r := sketch(targets(c.removed, c.removed+c.kept+c.added)).Compare(sketch(targets(0, c.removed+c.kept)))
		if off := int(*a) - c.added; max(off, -off) > c.within || int(*a-*r) != c.added-c.removed {
			t.Errorf("%+v: estimated as %d and %d", c, *a, *r)
		}
	}
}

func TestUnknownSetsAreNotCompared(t *testing.T) {
	known := sketch(targets(0, 9))
	for _, other := range []schema.LinkSketch{"", "9", known[:len(known)-1], known + "00", "x" + known, "-" + known, schema.LinkSketch(strings.Repeat("0", 130))} {
		for _, of := range [][2]schema.LinkSketch{{known, other}, {other, known}} {
			if a, r := of[0].Compare(of[1]); a != nil || r != nil {
				t.Errorf("%q: compared as %d and %d", of, *a, *r)
			}
		}
	}
	if a, r := sketch(nil).Compare(known); *a != 0 || *r != 9 {
		t.Errorf("a page that lost all links: %d and %d", *a, *r)
	}
}
