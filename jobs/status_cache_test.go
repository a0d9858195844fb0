package jobs

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// stillClock is a clock that only the test moves.
type stillClock struct{ now time.Time }

func (c *stillClock) Now() time.Time                             { return c.now }
func (c *stillClock) Sleep(context.Context, time.Duration) error { return nil }

// take writes what a fetch attempt writes that holds a partition and has recorded some of its rows.
func (f *fixture) take(p *manifest.Plan, partition int, c manifest.Checkpoint, rows ...uint32) {
	f.t.Helper()
	recorded, err := roaring.BitmapOf(rows...).ToBytes()
	if err != nil {
		f.t.Fatal(err)
	}
	c.Plan, c.Partition, c.Recorded, c.LeaseMS = p.ID, partition, recorded, 180_000
	key := layout.Checkpoint("2026-11", 0, partition)
	_ = f.bucket.Delete(f.t.Context(), key) // the first checkpoint replaces nothing
	f.put(key, &c)
	if there, err := manifest.Exists(f.t.Context(), f.bucket, layout.Taken("2026-11", 0, partition)); err == nil && !there {
		f.put(layout.Taken("2026-11", 0, partition), &manifest.Taken{Plan: p.ID, Partition: partition})
	}
}

// commit writes the result of a fetch task and the record of its attempt.
func (f *fixture) commit(p *manifest.Plan, partition int) {
	f.t.Helper()
	f.put(layout.Result("2026-11", 0, "fetch", partition), &manifest.Result{
		Task: fmt.Sprintf("fetch@2026-11.0:%d", partition), Stage: "fetch", Partition: partition, Plan: p.ID, Counts: []manifest.Count{{Name: "outcome.ok", N: 2}},
	})
	f.recordEnded(stages.Fetch, partition, 1, manifest.ClassDone, "", manifest.Usage{Puts: 1})
}

// A watched crawl of 40 partitions: each step changes the store, and costs only what the change costs.
// Each Read answers what a new reader answers that asks for everything.
func TestAWatchCostsInProportionToWhatChanges(t *testing.T) {
	f := newFixture(t)
	var urls []string
	for n := range 40 {
		urls = append(urls, fmt.Sprintf("http://h%d.test/1", n), fmt.Sprintf("http://h%d.test/2", n))
	}
	if _, _, err := f.plan(false, urls...); err != nil {
		t.Fatal(err)
	}
	p := f.beginPlanned()
	if len(p.Partitions) != 40 {
		t.Fatalf("%d partitions", len(p.Partitions))
	}
	counted := store.Count(f.bucket)
	clock := &stillClock{time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	r := &StatusReader{Bucket: counted, Clock: clock}
	const least = 3 // the ledger, the plan, and sealed.json, which does not exist
	for _, step := range []struct {
		name        string
		change      func()
		gets, lists int64 // -1: not bounded
	}{
		{"the first look", func() {
			for n := range 5 {
				f.commit(p, n)
			}
			f.take(p, 5, manifest.Checkpoint{Epoch: 1}, 0)
			f.take(p, 6, manifest.Checkpoint{Epoch: 1, Released: true}, 0)
		}, -1, -1},
		// The held checkpoint is as it was a moment ago. The released one may be taken at any time.
		{"nothing changed", func() {}, least + 1, 2},
		{"the time until the holder may renew", func() { clock.now = clock.now.Add(20 * time.Second) }, least + 2, 2},
		{"a partition is taken", func() { f.take(p, 7, manifest.Checkpoint{Epoch: 1}) }, least + 1 + 2, 2}, // also whether it has a result
		{"a partition is complete", func() {
			clock.now = clock.now.Add(20 * time.Second)
			f.take(p, 5, manifest.Checkpoint{Epoch: 1, Complete: true, Released: true}, 0, 1)
		}, least + 3, 2},
		{"it has a result", func() { f.commit(p, 5) }, least + 1 + 2, 2},                      // the result, the record of the attempt, and the released checkpoint
		{"a minute", func() { clock.now = clock.now.Add(time.Minute) }, least + 2 + 3 + 2, 2}, // the checkpoints, what the ledger names, the head and active.json
		{"the rest", func() {
			for n := 6; n < 40; n++ {
				f.commit(p, n)
				f.take(p, n, manifest.Checkpoint{Epoch: 1, Complete: true, Released: true}, 0, 1)
			}
		}, -1, -1},
		{"completion seen", func() { clock.now = clock.now.Add(20 * time.Second) }, -1, -1},
		{"the last result", func() {}, -1, -1},
		{"a finished stage", func() {}, least, 5 + 5}, // the other stages may have begun
		{"again", func() {}, least, 2},                // the stage whose turn it is
	} {
		step.change()
		before := counted.Counts()
		got, err := r.Read(t.Context(), "2026-11")
		if err != nil {
			t.Fatal(err)
		}
		after := counted.Counts()
		if gets, lists := after.Gets-before.Gets, after.Lists-before.Lists; step.gets >= 0 && (gets > step.gets || lists > step.lists) {
			t.Errorf("%s: %d GETs and %d LISTs, want at most %d and %d", step.name, gets, lists, step.gets, step.lists)
		}
		if step.name == "the rest" || step.name == "it has a result" || step.name == "completion seen" {
			continue // the reader learns of a completed task when it reads the checkpoint next
		}
		want, err := (&StatusReader{Bucket: f.bucket}).Read(t.Context(), "2026-11")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", step.name, d)
		}
	}
}

// `run` in a cluster looks at the checkpoints of the running fetch tasks each minute. A look costs one LIST and what
// the checkpoints of taken partitions cost, also if most partitions wait. It answers what a new reader answers.
func TestALookAtFetchTasksReadsOnlyTheCheckpointsOfTakenPartitions(t *testing.T) {
	f := newFixture(t)
	var urls []string
	for n := range 40 {
		urls = append(urls, fmt.Sprintf("http://h%d.test/1", n), fmt.Sprintf("http://h%d.test/2", n))
	}
	if _, _, err := f.plan(false, urls...); err != nil {
		t.Fatal(err)
	}
	p := f.beginPlanned()
	missing := roundstate.Tasks(p, stages.Fetch)
	counted := store.Count(f.bucket)
	r := &StatusReader{Bucket: counted}
	for _, step := range []struct {
		name        string
		change      func()
		gets, lists int64
		found       int
	}{
		{"the first look", func() { f.take(p, 5, manifest.Checkpoint{Epoch: 1}, 0) }, 40, 0, 1},
		{"nothing changed", func() {}, 1, 1, 1},
		{"two partitions are taken", func() {
			f.take(p, 6, manifest.Checkpoint{Epoch: 1})
			f.take(p, 7, manifest.Checkpoint{Epoch: 1})
		}, 3, 1, 3},
		{"a checkpoint tells more", func() { f.take(p, 7, manifest.Checkpoint{Epoch: 1}, 0) }, 3, 1, 3},
		{"another attempt", func() { f.take(p, 6, manifest.Checkpoint{Epoch: 2, Released: true}) }, 3, 1, 3},
		{"a task has a result", func() { missing = slices.Delete(missing, 5, 6) }, 2, 1, 2},
		{"one more is taken", func() { f.take(p, 8, manifest.Checkpoint{Epoch: 1}) }, 3, 1, 3},
	} {
		step.change()
		before := counted.Counts()
		got, err := r.Fetching(t.Context(), p, missing)
		if err != nil {
			t.Fatal(err)
		}
		after := counted.Counts()
		if gets, lists := after.Gets-before.Gets, after.Lists-before.Lists; gets != step.gets || lists != step.lists {
			t.Errorf("%s: %d GETs and %d LISTs, want %d and %d", step.name, gets, lists, step.gets, step.lists)
		}
		want, err := (&StatusReader{Bucket: f.bucket}).Fetching(t.Context(), p, missing)
		if d := cmp.Diff(want, got); err != nil || d != "" || len(got) != step.found {
			t.Errorf("%s: %d tasks, want %d; %v %s", step.name, len(got), step.found, err, d)
		}
	}
}
