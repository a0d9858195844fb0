package dedup

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// shardedWorlds calls check with worlds of 2 and 5 buckets, some of them with sorters that spill.
func shardedWorlds(t *testing.T, check func(name string, w world, cfg Config)) {
	t.Helper()
	defer func(memory int64) { sortMemory = memory }(sortMemory)
	for seed := range uint64(5) {
		for _, buckets := range []int{2, 5} {
			w := randomWorld(seed, 5, buckets)
			cfg := Config{MaxDistance: int(seed), MinWords: 50}
			if sortMemory = 48 << 20; seed == 0 {
				w = crowdedWorld(uint64(buckets))
				w.buckets, sortMemory, cfg.MaxDistance = buckets, 64<<10, 3
			}
			check(fmt.Sprintf("seed %d, %d buckets", seed, buckets), w, cfg)
		}
	}
}

// TestShardsGiveTheSameRows compares the rows and counts of a round of several buckets, whose digest and
// similar have several tasks, with those of a round of one bucket, in which dedup does everything.
func TestShardsGiveTheSameRows(t *testing.T) {
	chained := 0
	shardedWorlds(t, func(name string, w world, cfg Config) {
		rows, representatives, result := w.run(t, cfg)
		w.buckets = 1
		all, represented, one := w.run(t, cfg)
		sort := func(rows []schema.Duplicate) []schema.Duplicate {
			slices.SortFunc(rows, func(a, b schema.Duplicate) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
			return rows
		}
		slices.SortFunc(representatives, compareRepresentatives)
		slices.SortFunc(represented, compareRepresentatives)
		if diff := cmp.Diff(all[0], sort(slices.Concat(rows...))) + cmp.Diff(represented, representatives) + cmp.Diff(one.Counts, result.Counts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, d := range all[0] {
			if d.Via != "" && d.Via != d.Representative {
				chained++
			}
		}
	})
	if chained < 100 {
		t.Errorf("only %d rows have a via of their own", chained)
	}
}

func compareRepresentatives(a, b schema.Representative) int {
	return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL)
}
