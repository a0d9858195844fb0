package dedup

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// shardedWorlds calls check with worlds of 1, 2 and 5 buckets, some of them with sorters that spill.
func shardedWorlds(t *testing.T, check func(name string, w world, cfg Config)) {
	t.Helper()
	defer func(memory int64) { sortMemory = memory }(sortMemory)
	for seed := range uint64(5) {
		for _, buckets := range []int{1, 2, 5} {
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

// TestShardsGiveTheSameBytes compares the files and counts of a round whose digest and similar have
// tasks with those of a round in which dedup does everything.
func TestShardsGiveTheSameBytes(t *testing.T) {
	chained := 0
	shardedWorlds(t, func(name string, w world, cfg Config) {
		rows, _, one := w.run(t, cfg)
		w.sharded = true
		_, _, sharded := w.run(t, cfg)
		if diff := cmp.Diff(one, sharded); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, bucket := range rows {
			for _, d := range bucket {
				if d.Via != "" && d.Via != d.Representative {
					chained++
				}
			}
		}
	})
	if chained < 100 {
		t.Errorf("only %d rows have a via of their own", chained)
	}
}

// TestOnlyViaChangedWithFormat9 compares the rows of a round of format 8 with those of a newer round.
func TestOnlyViaChangedWithFormat9(t *testing.T) {
	vias := map[int]uint64{}
	shardedWorlds(t, func(name string, w world, cfg Config) {
		w.format = 8
		before, represented, result := w.run(t, cfg)
		w.format, w.sharded = 9, true
		after, representatives, now := w.run(t, cfg)
		for format, rows := range map[int][][]schema.Duplicate{8: before, 9: after} {
			h := fnv.New64a()
			for _, bucket := range rows {
				for i := range bucket {
					fmt.Fprint(h, bucket[i].Via)
					bucket[i].Via = ""
				}
			}
			vias[format] = 31*vias[format] + h.Sum64()
		}
		if diff := cmp.Diff(before, after) + cmp.Diff(represented, representatives) + cmp.Diff(result.Counts, now.Counts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	})
	if vias[8] == vias[9] {
		t.Error("via does not differ either, so format 9 is not needed")
	}
}
