package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// startedStore makes a store with a plan of two partitions without URLs, and the fetch results
// of these partitions.
func startedStore(t *testing.T) (Runner, *manifest.Plan) {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &manifest.Plan{ID: "p", Crawl: "2026-11", Buckets: 1, Partitions: []manifest.PlanPartition{{Partition: 0}, {Partition: 1}}}
	create(t, b, layout.PlanManifest("2026-11", 0, "p"), p)
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"})
	ledgertest.Make(t, b, "2026-11")
	if _, err := roundstate.Begin(t.Context(), b, "2026-11", 0, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	return Runner{
		Bucket: b, Config: config.Default(), Version: "test", Scratch: t.TempDir(), Clock: stages.SystemClock{},
		Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{},
	}, p
}

func create(t *testing.T, b store.Bucket, key string, d manifest.Document) {
	t.Helper()
	if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
		t.Fatal(err)
	}
}

// commitResult commits a result of a task.
func commitResult(t *testing.T, b store.Bucket, of stages.Task, files ...manifest.File) {
	t.Helper()
	create(t, b, roundstate.ResultKey(of), &manifest.Result{Task: of.String(), Stage: string(of.Stage), Partition: of.Partition, Plan: "p", Files: files})
}

func task(stage stages.Stage, partition int) stages.Task {
	return stages.Task{Stage: stage, Crawl: "2026-11", Partition: partition}
}

func attempts(t *testing.T, b store.Bucket, task stages.Task) []manifest.Attempt {
	t.Helper()
	var all []manifest.Attempt
	for o, err := range b.List(context.Background(), layout.Attempts(task.Crawl, task.Round, string(task.Stage), task.Partition)) {
		if err != nil {
			t.Fatal(err)
		}
		var a manifest.Attempt
		if _, _, err := manifest.Load(t.Context(), b, o.Key, &a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func TestAStageWaitsForTheOneBefore(t *testing.T) {
	r, _ := startedStore(t)
	err := r.Run(t.Context(), task(stages.Merge, 0))
	if !errors.Is(err, roundstate.ErrNotReady) || !strings.HasPrefix(err.Error(), "merge@2026-11.0:0: ") {
		t.Errorf("%v", err)
	}
	if a := attempts(t, r.Bucket, task(stages.Merge, 0)); len(a) > 0 {
		t.Errorf("waiting was recorded as a failure: %v", a)
	}
}

func TestAResultThatChangedAfterItWasFrozenIsRefused(t *testing.T) {
	r, p := startedStore(t)
	for n := range 2 {
		commitResult(t, r.Bucket, task(stages.Fetch, n))
	}
	if _, err := roundstate.Freeze(t.Context(), r.Bucket, p, stages.Merge, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	key := layout.Result("2026-11", 0, "fetch", 0)
	if err := r.Bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	commitResult(t, r.Bucket, task(stages.Fetch, 0), manifest.File{Key: "forged"})
	err := r.Run(t.Context(), task(stages.Merge, 0))
	if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "fetch@2026-11.0:0") {
		t.Errorf("%v", err)
	}
	a := attempts(t, r.Bucket, task(stages.Merge, 0))
	if len(a) != 1 || a[0].Class != "permanent" || a[0].Task != "merge@2026-11.0:0" {
		t.Errorf("recorded as %+v", a)
	}
}

func TestAFaultInAStageFailsItsTaskNotTheProcess(t *testing.T) {
	r, _ := startedStore(t)
	r.Config = nil // a missing config makes every stage panic
	for n := range 2 {
		commitResult(t, r.Bucket, task(stages.Merge, n))
	}
	for range 2 {
		if err := r.Run(t.Context(), task(stages.Dedup, 0)); err == nil || !strings.Contains(err.Error(), "fault in the program") {
			t.Fatalf("%v", err)
		}
	}
	a := attempts(t, r.Bucket, task(stages.Dedup, 0))
	if len(a) != 2 || a[0].Class != manifest.ClassFault || a[1].Attempt != 2 {
		t.Errorf("two failures are recorded as %+v", a)
	}
	left, err := os.ReadDir(r.Scratch)
	if err != nil || len(left) > 0 {
		t.Errorf("scratch is left behind: %v, %v", left, err)
	}
}

func TestATaskWithAResultIsDoneAtOnce(t *testing.T) {
	r, _ := startedStore(t)
	commitResult(t, r.Bucket, task(stages.Publish, 1))
	if err := r.Run(t.Context(), task(stages.Publish, 1)); err != nil {
		t.Error(err)
	}
	if err := r.Run(t.Context(), task(stages.Publish, 2)); !errors.Is(err, stages.ErrPermanent) {
		t.Errorf("a partition that the plan does not have: %v", err)
	}
}
