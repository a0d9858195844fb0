package worker

import (
	"fmt"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

// standing is a clock that stands still.
type standing struct {
	stages.Clock
	at time.Time
}

func (s standing) Now() time.Time { return s.at }

// The time for which an attempt waits for another one is no machine time, and an attempt that only found
// its partition held leaves no record.
func TestAWaitForAnotherAttemptIsNotCounted(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	r := Runner{Bucket: b, Clock: standing{at: now}}
	task := stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}
	record := func(err error) (all []string) {
		m := &meter{counter: store.Count(b), clock: r.Clock, began: now.Add(-time.Hour), cpu: func() time.Duration { return 0 }}
		m.waited.Store(int64(50 * time.Minute))
		if got := m.usage().WallMS; got != 10*60_000 {
			t.Errorf("%d ms are counted", got)
		}
		if err := r.recordAttempt(t.Context(), task, err, m); err != nil {
			t.Fatal(err)
		}
		for o, err := range b.List(t.Context(), layout.AttemptsDir(task.Crawl, task.Round, string(task.Stage))) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, o.Key)
		}
		return all
	}
	if got := record(fmt.Errorf("held: %w", lease.ErrHeld)); len(got) != 0 {
		t.Errorf("records %q", got)
	}
	got := record(stages.ErrInterrupted)
	if len(got) != 1 {
		t.Fatalf("records %q", got)
	}
	var a manifest.Attempt
	if _, _, err := manifest.Load(t.Context(), b, got[0], &a); err != nil || a.Usage == nil || a.Usage.WallMS != 10*60_000 {
		t.Errorf("%+v, %v", a.Usage, err)
	}
}
