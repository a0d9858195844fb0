package jobs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// callLog is an Observer that records the calls of its methods.
type callLog struct{ lines []string }

func (o *callLog) StageStarted(s StageStart) {
	line := fmt.Sprintf("%s begins: %d of %d tasks", s.Stage, s.Tasks-len(s.Missing), s.Tasks)
	if s.Stage == stages.Fetch {
		line += fmt.Sprintf(", %d of %d URLs", s.Recorded, s.URLs)
	}
	o.lines = append(o.lines, line)
}
func (o *callLog) TaskDone(stages.Task, error) {}
func (o *callLog) StageDone(stage stages.Stage, failed int) {
	o.lines = append(o.lines, fmt.Sprintf("%s ends, %d failed", stage, failed))
}
func (o *callLog) RoundDone(s *manifest.Sealed) {
	o.lines = append(o.lines, fmt.Sprintf("round %d is done", s.Round))
}

func TestAnObserverIsToldWhatIsDoneAndOfEachRoundAsItEnds(t *testing.T) {
	f := newFixture(t)
	p := f.begin() // the plan has 3 partitions of 2 URLs
	recorded, err := roaring.BitmapOf(0).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	f.put(layout.Checkpoint("2026-11", 0, 1), &manifest.Checkpoint{Plan: p.ID, Partition: 1, Epoch: 1, Recorded: recorded, Released: true})
	task := stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Partition: 2}
	f.put(layout.Result("2026-11", 0, "fetch", 2), &manifest.Result{Task: task.String(), Stage: "fetch", Partition: 2, Plan: p.ID})
	o := &callLog{}
	f.driver.Observer = o
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("fetch begins: 1 of %d tasks, %d of %d URLs", len(p.Partitions), p.Partitions[2].URLs+1, p.URLs)
	if len(o.lines) == 0 || o.lines[0] != want {
		t.Errorf("at first the observer got %q, want %q", o.lines, want)
	}
	if n := len(o.lines); o.lines[n-2] != "publish ends, 0 failed" || o.lines[n-1] != "round 0 is done" {
		t.Errorf("in the end the observer got %q", o.lines)
	}
	// A second run reports the finished round again.
	o.lines = nil
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil || !slices.Equal(o.lines, []string{"round 0 is done"}) {
		t.Errorf("%v, the observer got %q", err, o.lines)
	}
}

func TestStatusCarriesWhatACheckpointSaysThatItsHolderDoes(t *testing.T) {
	f := newFixture(t)
	p := f.begin()
	f.put(layout.Checkpoint("2026-11", 0, 0), &manifest.Checkpoint{
		Plan: p.ID, Epoch: 1, Counts: []manifest.Count{{Name: "outcome.timeout", N: 7}, {Name: "urls", N: 9}},
		Activity: &manifest.Activity{At: 5, Waits: []manifest.Wait{{Host: "h.test", Why: "robots.txt answered 503, asked again", Until: 9, URLs: 3}}},
	})
	f.put(layout.Checkpoint("2026-11", 0, 1), &manifest.Checkpoint{Plan: p.ID, Partition: 1, Epoch: 1})
	st := f.stage(&StatusReader{Bucket: f.bucket, Flags: " --store x"}, stages.Fetch)
	if len(st.Fetching) != 2 {
		t.Fatalf("%+v", st)
	}
	one, idle := st.Fetching[0], st.Fetching[1]
	if one.Activity == nil || one.Activity.Waits[0].Host != "h.test" || one.GiveUp != "crawlbatch retry --month 2026-11 --give-up --partition 0 --store x" ||
		len(one.Outcomes) != 1 || one.Outcomes[0] != (manifest.Count{Name: "timeout", N: 7}) {
		t.Errorf("status carries %+v", one)
	}
	if idle.Activity != nil || idle.GiveUp != "" {
		t.Errorf("of a checkpoint without activity it carries %+v", idle)
	}
}
