package worker

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// steps is a clock that advances one second with each reading.
type steps struct{ now time.Time }

func (s *steps) Now() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

func (s *steps) Sleep(ctx context.Context, d time.Duration) error {
	s.now = s.now.Add(d)
	return ctx.Err()
}

func TestEveryAttemptRecordsWhatItCostTheStore(t *testing.T) {
	r, _ := startedStore(t)
	r.Clock = &steps{now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	counted := store.Count(r.Bucket)
	r.Bucket = counted
	merged := task(stages.Merge, 0)
	// A missing input makes the first attempt fail after some reads.
	commitResult(t, r.Bucket, task(stages.Fetch, 0), manifest.File{Dataset: "fetches", Key: "gone", Bytes: 1})
	commitResult(t, r.Bucket, task(stages.Fetch, 1))
	before := counted.Counts()
	if err := r.Run(t.Context(), merged); err == nil {
		t.Fatal("merge ran without its inputs")
	}
	after := counted.Counts()
	a := attempts(t, r.Bucket, merged)
	if len(a) != 1 || a[0].Class != manifest.ClassFailed || a[0].Error == "" || a[0].Usage == nil {
		t.Fatalf("recorded as %+v", a)
	}
	u := *a[0].Usage
	// The recorded usage does not count the two PUTs of the records of the beginning and the end.
	if u.Gets != after.Gets-before.Gets || u.Puts != after.Puts-before.Puts-2 || u.BytesRead != after.BytesIn-before.BytesIn {
		t.Errorf("usage %+v; the store saw %+v, then %+v", u, before, after)
	}
	if u.WallMS <= 0 || u.WallMS%1000 != 0 {
		t.Errorf("wall time %d ms was not measured with the task's clock", u.WallMS)
	}
}

func TestADoneAttemptIsRecordedAndAReRunOfADoneTaskIsNot(t *testing.T) {
	r, _ := startedStore(t)
	for n := range 2 {
		commitResult(t, r.Bucket, task(stages.Merge, n))
	}
	reduced := task(stages.Dedup, 0)
	for range 2 {
		if err := r.Run(t.Context(), reduced); err != nil {
			t.Fatal(err)
		}
	}
	a := attempts(t, r.Bucket, reduced)
	if len(a) != 1 || a[0].Class != manifest.ClassDone || a[0].Failure() || a[0].Error != "" {
		t.Fatalf("recorded as %+v", a)
	}
	// An attempt puts start.json, inputs.json, the parts and the result.
	if u := a[0].Usage; u.Puts < 4 || u.BytesWritten == 0 || u.Failed != 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestAnInterruptedAttemptIsRecordedThoughItsContextHasEnded(t *testing.T) {
	r, _ := startedStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx, task(stages.Merge, 1)); !errors.Is(err, stages.ErrInterrupted) {
		t.Fatal(err)
	}
	if a := attempts(t, r.Bucket, task(stages.Merge, 1)); len(a) != 1 || a[0].Class != manifest.ClassInterrupted || a[0].Failure() {
		t.Errorf("recorded as %+v", a)
	}
}

func TestErrorsHaveTheClassThatRetryIsAskedFor(t *testing.T) {
	for want, err := range map[string]error{
		manifest.ClassDone:             nil,
		manifest.ClassFailed:           errors.New("boom"),
		manifest.ClassTaken:            fmt.Errorf("x: %w", stages.ErrTaken),
		manifest.ClassInterrupted:      fmt.Errorf("x: %w", stages.ErrInterrupted),
		manifest.ClassPermanent:        fmt.Errorf("x: %w", stages.ErrPermanent),
		manifest.ClassFault:            fmt.Errorf("%w: index out of range", stages.ErrFault),
		manifest.ClassStoreDenied:      fmt.Errorf("x: %w", store.ErrDenied),
		manifest.ClassStoreUnavailable: fmt.Errorf("%w: %w", store.ErrUnavailable, stages.ErrInterrupted),
		manifest.ClassDiskFull:         fmt.Errorf("scratch: %w", syscall.ENOSPC),
		manifest.ClassCorrupt:          fmt.Errorf("%w: %w", table.ErrCorrupt, stages.ErrPermanent),
	} {
		if got := classOf(err); got != want {
			t.Errorf("%v is of class %s, want %s", err, got, want)
		}
	}
	if got := classOf(fmt.Errorf("scratch: %w", syscall.EDQUOT)); got != manifest.ClassDiskFull {
		t.Errorf("a disk quota that is used up has the class %s", got)
	}
}
