package worker

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// A fetch task reads those results of the previous round that may have rows of its bucket. Partition 0
// of a round also holds the sitemaps of buckets without URLs.
func TestAFetchTaskReadsTheResultsThatMayKnowItsDomains(t *testing.T) {
	plan := func(buckets int, of ...int) *manifest.Plan {
		p := &manifest.Plan{Buckets: buckets}
		for _, b := range of {
			p.Partitions = append(p.Partitions, manifest.PlanPartition{Bucket: b})
		}
		return p
	}
	for name, c := range map[string]struct {
		last, now *manifest.Plan
		part      int
		want      []bool
	}{
		"its bucket":                         {plan(3, 0, 1, 1, 2), plan(3, 0, 1, 2), 1, []bool{false, true, true, false}},
		"its bucket had no URLs":             {plan(3, 0, 2), plan(3, 0, 1, 2), 1, []bool{true, false}},
		"another bucket has none now":        {plan(3, 0, 1, 2), plan(3, 0, 2), 0, []bool{true, true, false}},
		"a bucket has none now and before":   {plan(3, 0, 2), plan(3, 2), 0, []bool{true, true}},
		"another number of buckets":          {plan(2, 0, 1), plan(3, 0, 1, 2), 2, []bool{false, true}},
		"a bucket that shares two":           {plan(2, 0, 1), plan(3, 0, 1, 2), 1, []bool{true, true}},
		"twice as many buckets":              {plan(2, 0, 0, 1, 1), plan(4, 0, 1, 2, 3), 2, []bool{false, false, true, true}},
		"half as many buckets":               {plan(4, 0, 1, 2, 3), plan(2, 0, 1), 1, []bool{false, false, true, true}},
		"twice as many, one had no URLs":     {plan(3, 0, 2), plan(6, 0, 1, 2, 3, 4, 5), 2, []bool{true, false}},
		"twice as many, one has none now":    {plan(3, 0, 1, 2), plan(6, 0, 1, 3, 4, 5), 0, []bool{true, true, false}},
		"the second partition of its bucket": {plan(3, 0, 1, 2), plan(3, 1, 1, 2), 1, []bool{false, true, false}},
	} {
		for n, want := range c.want {
			if got := mayKnow(c.last, n, c.now, c.part); got != want {
				t.Errorf("%s: partition %d of the round before: %t", name, n, got)
			}
		}
	}
}
