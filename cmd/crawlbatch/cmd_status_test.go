package main

import (
	"bytes"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

func TestStatusOfARunningFetchStageIsReadable(t *testing.T) {
	fetch := jobs.StageStatus{
		Stage: stages.Fetch, Tasks: 23, Done: 1, Running: 1, Recorded: 12345,
		Usage: manifest.Usage{WallMS: 61_000, Puts: 7, Gets: 8, Lists: 1, BytesWritten: 2_500_000, BytesRead: 999},
		Fetching: []jobs.FetchStatus{
			{Partition: 0, Planned: 50000, Recorded: 10345, Epoch: 3, ElapsedMS: 61_200},
			{Partition: 2, Planned: 2000, Recorded: 2000, Epoch: 1, Released: true, Complete: true},
		},
	}
	for n := range 20 {
		fetch.Fetching = append(fetch.Fetching, jobs.FetchStatus{Partition: 3 + n, Planned: 10, Epoch: 1, Released: true})
	}
	var out bytes.Buffer
	err := printStatus(&out, &jobs.Status{Crawl: "2026-11", Store: "./crawl-data", Rounds: []jobs.RoundStatus{
		{State: "running", URLs: 1_050_000, Partitions: 23, Plan: "p", Stages: []jobs.StageStatus{fetch, {Stage: stages.Merge, Tasks: 23}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"│ fetch │    23 │    1 │       1 │      0 │   7 │   8 │    1 │  2.5 MB │ 999 bytes │      1m1s │",
		"│ merge │    23 │    0 │         │      0 │   0 │   0 │    0 │ 0 bytes │   0 bytes │        0s │",
		"fetch: 12,345 of 1,050,000 URLs recorded",
		"  partition 0: 10,345 of 50,000, epoch 3, held, 1m1s of its window",
		"  partition 2: 2,000 of 2,000, epoch 1, complete, result missing, 0s of its window",
		"  partition 3: 0 of 10, epoch 1, released, 0s of its window",
		"  and 2 more: -o json lists all",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}
}

func TestThousandsAreSetApart(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -123: "-123", -1234: "-1,234"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
