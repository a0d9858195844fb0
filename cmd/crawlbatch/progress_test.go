package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

func TestProgressCountsTheURLsOfTasksThatRanElsewhere(t *testing.T) {
	var said bytes.Buffer
	p := newProgress(&said, stages.SystemClock{}, nil, false)
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

func TestProgressIsReadAsTheLogIs(t *testing.T) {
	var said bytes.Buffer
	p := newProgress(&said, stages.SystemClock{}, slog.New(slog.NewJSONHandler(&said, nil)), true)
	plan := &manifest.Plan{Crawl: "2026-11", Partitions: []manifest.PlanPartition{{URLs: 1}}}
	p.StageStarted(plan, stages.Fetch, 1, 1)
	p.TaskDone(stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}, errors.New("no disk"))
	p.Add(stages.CountURLs, 1)
	p.StageDone(stages.Fetch, 1)
	var messages []string
	for dec := json.NewDecoder(&said); dec.More(); {
		var line struct{ Msg string }
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		line.Msg, _, _ = strings.Cut(line.Msg, " in 0s")
		messages = append(messages, line.Msg)
	}
	want := []string{"fetch@2026-11.0: 1 URL in 1 partition", "fetch@2026-11.0:0 failed: no disk", "fetch@2026-11.0: 1 URL done"}
	for i, w := range want {
		if i >= len(messages) || !strings.HasPrefix(messages[i], w) {
			t.Errorf("it said %q, want %q", messages, want)
			break
		}
	}
}
