package worker

import (
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

func TestTasksOfManyBucketsGetTheResultsTheyRead(t *testing.T) {
	r, _ := started(t)
	p := &manifest.Plan{ID: "p", Crawl: "2026-11", Round: 1, Buckets: 2, Partitions: []manifest.PlanPartition{
		{Partition: 0, Bucket: 0}, {Partition: 1, Bucket: 0}, {Partition: 2, Bucket: 1},
	}}
	for _, s := range []stages.Stage{stages.Fetch, stages.Merge, stages.Dedup, stages.Rank} {
		for n := range s.Tasks(p) {
			done(t, r.Bucket, stages.Task{Stage: s, Crawl: "2026-11", Round: 1, Partition: n})
		}
	}
	for _, c := range []struct {
		stage stages.Stage
		task  int
		from  stages.Stage
		want  []bool // which results it gets
	}{
		{stages.Merge, 1, stages.Fetch, []bool{false, true, false}},
		{stages.Dedup, 0, stages.Merge, []bool{true, true, true}},
		{stages.Rank, 1, stages.Merge, []bool{true, true, true}},
		{stages.Frontier, 1, stages.Merge, []bool{true, true, true}}, // redirects lead anywhere
		{stages.Frontier, 1, stages.Rank, []bool{true, true}},        // priorities compare hosts of all buckets
		{stages.Publish, 2, stages.Merge, []bool{false, false, true}},
		{stages.Publish, 2, stages.Rank, []bool{false, true}},
		{stages.Publish, 2, stages.Dedup, []bool{true}},
	} {
		frozen, err := Freeze(t.Context(), r.Bucket, p, c.stage, "test")
		if err != nil {
			t.Fatal(err)
		}
		in, err := gather(t.Context(), r.Bucket, p, stages.Task{Stage: c.stage, Crawl: "2026-11", Round: 1, Partition: c.task}, frozen)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, result := range in.Results[c.from] {
			got = append(got, result != nil)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:%d reads of %s %v, want %v", c.stage, c.task, c.from, got, c.want)
		}
	}
}
