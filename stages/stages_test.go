package stages_test

import (
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

func TestOnlyRoundsOfSeveralBucketsDivideDedup(t *testing.T) {
	for _, c := range []struct {
		buckets                         int
		digest, similar, cluster, dedup int
	}{
		{1, 0, 0, 0, 1}, {2, 2, 2, 1, 2}, {500, 16, 16, 1, 500},
	} {
		p := &manifest.Plan{Buckets: c.buckets, Partitions: make([]manifest.PlanPartition, 3)}
		got := []int{stages.Digest.Tasks(p), stages.Similar.Tasks(p), stages.Cluster.Tasks(p), stages.Dedup.Tasks(p)}
		if want := []int{c.digest, c.similar, c.cluster, c.dedup}; !slices.Equal(got, want) {
			t.Errorf("%d buckets: %v tasks, want %v", c.buckets, got, want)
		}
		for _, s := range stages.Order {
			if has := slices.Contains(stages.Of(p), s); has != (s.Tasks(p) > 0) {
				t.Errorf("%d buckets: %s is among the stages: %v", c.buckets, s, has)
			}
		}
	}
}
