package main

import (
	"bytes"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

func TestProgressCountsTheURLsOfTasksThatRanElsewhere(t *testing.T) {
	var said bytes.Buffer
	p := newProgress(&said, stages.SystemClock{})
	p.elsewhere = true
	plan := &manifest.Plan{Crawl: "2026-11", Partitions: []manifest.PlanPartition{{URLs: 5}, {URLs: 7}, {URLs: 11}}}
	p.StageStarted(plan, stages.Fetch, 2, 18)
	for _, n := range []int{1, 2} {
		p.TaskDone(stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Partition: n}, nil)
	}
	p.StageDone(stages.Fetch, 0)
	if !strings.Contains(said.String(), "fetch@2026-11.0: 18 URLs done in ") {
		t.Errorf("it said %q", said.String())
	}
}
