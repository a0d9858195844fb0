package inlinks

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// The weight of a URL does not depend on the order in which sitemaps state their priorities.
func TestTheWeightFarthestFromTheDefaultCounts(t *testing.T) {
	of := func(p float64) int32 { return Weight(&p) }
	if of(1) != 50 || of(0) != -50 || of(0.5) != 0 || of(7) != 50 || Weight(nil) != 0 {
		t.Errorf("weights %d %d %d %d", of(1), of(0), of(0.5), of(7))
	}
	all := []int32{-50, -20, 0, 20, 50}
	for _, a := range all {
		for _, b := range all {
			x, y := schema.TargetLinks{}, schema.TargetLinks{}
			x.Weight, y.Weight = a, b
			again := y
			Add(&x, &y)
			y = again
			z := schema.TargetLinks{}
			z.Weight = a
			Add(&y, &z)
			want := a
			if max(b, -b) > max(a, -a) || max(b, -b) == max(a, -a) && b > a {
				want = b
			}
			if x.Weight != want || y.Weight != want {
				t.Errorf("%d and %d: %d, %d", a, b, x.Weight, y.Weight)
			}
		}
	}
}
