package stages_test

import (
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

func TestOnlyRoundsOfSeveralBucketsDivideDedup(t *testing.T) {
	for _, c := range []struct {
		format, buckets                 int
		digest, similar, cluster, dedup int
	}{
		{0, 5, 0, 0, 0, 1}, {8, 1, 0, 0, 0, 1}, {8, 5, 0, 0, 0, 1}, // planned before format 9
		{9, 1, 0, 0, 0, 1}, {9, 2, 2, 2, 1, 2}, {9, 500, 64, 64, 1, 500},
		{13, 500, 64, 64, 1, 500}, {14, 2, 2, 2, 1, 2}, {14, 500, 16, 16, 1, 500}, // format 14 has fewer tasks of digest and similar
	} {
		p := &manifest.Plan{Header: manifest.Header{Format: c.format}, Buckets: c.buckets, Partitions: make([]manifest.PlanPartition, 3)}
		got := []int{stages.Digest.Tasks(p), stages.Similar.Tasks(p), stages.Cluster.Tasks(p), stages.Dedup.Tasks(p)}
		if want := []int{c.digest, c.similar, c.cluster, c.dedup}; !slices.Equal(got, want) {
			t.Errorf("format %d, %d buckets: %v tasks, want %v", c.format, c.buckets, got, want)
		}
		for _, s := range stages.Order {
			if has := slices.Contains(stages.Of(p), s); has != (s.Tasks(p) > 0) {
				t.Errorf("format %d, %d buckets: %s is among the stages: %v", c.format, c.buckets, s, has)
			}
		}
	}
}
