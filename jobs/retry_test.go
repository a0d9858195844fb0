package jobs

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

// runner runs real tasks on the fixture's store.
func (f *fixture) runner() worker.Runner {
	d := f.driver
	return worker.Runner{
		Bucket: f.bucket, Config: d.Config, Version: d.Version, Scratch: d.Scratch, Clock: d.Clock, Log: d.Log, Progress: stages.NoProgress{},
	}
}

func TestGivingUpDefersWhatWasNotFetchedAndAsksNoHost(t *testing.T) {
	f := newFixture(t) // hosts of the fixture do not answer, so a request would end as connect_error
	f.begin()
	f.driver.Runner = f.runner()
	n, err := f.driver.GiveUp(t.Context(), "2026-11", []int{1})
	if err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	for partition, done := range []bool{false, true, false} {
		r, _, err := roundstate.LoadResult(t.Context(), f.bucket, stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Partition: partition})
		if err != nil || (r != nil) != done {
			t.Fatalf("partition %d: %+v, %v", partition, r, err)
		}
		if done && r.Count("outcome."+string(schema.Deferred)) != 2 {
			t.Errorf("outcomes %+v", r.Counts)
		}
	}
	if n, err := f.driver.GiveUp(t.Context(), "2026-11", []int{1}); n != 0 || err != nil {
		t.Errorf("given up twice: %d, %v", n, err)
	}
	if _, err := f.driver.GiveUp(t.Context(), "2026-11", []int{3}); !errors.Is(err, ErrNoPartition) {
		t.Errorf("a missing partition: %v", err)
	}
	if len(f.fake.ran) > 0 {
		t.Errorf("the executor ran %q", f.fake.ran)
	}
}

func TestWhatCannotBeGivenUpForGoodIsPermanent(t *testing.T) {
	f := newFixture(t)
	p := f.begin()
	f.driver.Runner = f.runner()
	lost := p.Partitions[0].File.Key
	if err := f.bucket.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	_, err := f.driver.GiveUp(t.Context(), "2026-11", []int{0})
	if errors.Is(err, stages.ErrPermanent) || !errors.Is(err, ErrTasksFailed) {
		t.Errorf("%q is gone: %v", lost, err)
	}
	if _, err := store.CreateBytes(t.Context(), f.bucket, lost, []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.driver.GiveUp(t.Context(), "2026-11", []int{0}); !errors.Is(err, stages.ErrPermanent) || errors.Is(err, ErrTasksFailed) {
		t.Errorf("%q is damaged: %v", lost, err)
	}
}

// TestAPartitionThatIsNotThereIsRefused calls Retry before and after the round is sealed.
func TestAPartitionThatIsNotThereIsRefused(t *testing.T) {
	f := newFixture(t)
	f.begin()
	check := func(when string) {
		t.Helper()
		for _, stage := range []stages.Stage{stages.Fetch, stages.Merge} {
			for partition, want := range map[int]error{0: nil, 17: ErrNoPartition} {
				if when == "running" && want == nil {
					continue // Retry would accept this partition and run its task
				}
				if n, err := f.driver.Retry(t.Context(), "2026-11", RetryRequest{Stage: stage, Partitions: []int{partition}}); n != 0 || !errors.Is(err, want) {
					t.Errorf("%s, %s:%d: %d, %v; want %v", when, stage, partition, n, err, want)
				}
			}
		}
		if _, err := f.driver.GiveUp(t.Context(), "2026-11", []int{17}); !errors.Is(err, ErrNoPartition) {
			t.Errorf("%s, given up: %v", when, err)
		}
	}
	check("running")
	f.put(layout.Sealed("2026-11", 0), &manifest.Sealed{Crawl: "2026-11"})
	check("sealed")
}

// Beside a running attempt, giving up fails at once. It says who holds the partition and what to do, and
// leaves no record of an attempt, whose time would count.
func TestGivingUpBesideARunningAttemptFailsAtOnceAndCountsNothing(t *testing.T) {
	f := newFixture(t)
	p := f.begin()
	f.driver.Runner = f.runner()
	key := layout.Checkpoint("2026-11", 0, 1)
	f.put(key, &manifest.Checkpoint{Plan: p.ID, Partition: 1, Epoch: 1, Holder: "run", LeaseMS: 180_000, Activity: &manifest.Activity{At: 1, Began: 1, Machine: "pod-7"}})
	f.put(layout.Taken("2026-11", 0, 1), &manifest.Taken{Plan: p.ID, Partition: 1})
	locker, _ := store.As[store.Locker](f.bucket)
	lock, ok, err := locker.Lock(key)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	n, err := f.driver.GiveUp(t.Context(), "2026-11", []int{1})
	if n != 0 || !errors.Is(err, lease.ErrHeld) || !strings.Contains(err.Error(), "attempt 1 on pod-7 since ") || !strings.Contains(err.Error(), "`crawlbatch pause --month 2026-11`") {
		t.Errorf("%d, %v", n, err)
	}
	for o, err := range f.bucket.List(t.Context(), layout.AttemptsDir("2026-11", 0, "fetch")) {
		t.Errorf("it left %q, %v", o.Key, err)
	}
	lock.Release()
	if n, err := f.driver.GiveUp(t.Context(), "2026-11", []int{1}); n != 1 || err != nil {
		t.Errorf("after the attempt: %d, %v", n, err)
	}
}
