package lease

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages"
)

func directory(t *testing.T) (*dirstore.Store, string) {
	t.Helper()
	root := t.TempDir()
	d, err := dirstore.Open(root, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d, root
}

var opt = Options{
	Task: stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}, Plan: "p", Attempt: "new", Duration: time.Minute, Request: time.Second,
}

func acquire(t *testing.T, b store.Bucket) (*Lease, error) {
	t.Helper()
	l, _, err := Acquire(t.Context(), &stages.Env{Bucket: b, Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler)}, opt)
	if err == nil {
		t.Cleanup(l.Close)
	}
	return l, err
}

// TestACheckpointThatIsRemovedDuringATakeIsMissed creates the object `taken` after an attempt has
// found no checkpoint. To the attempt, it looks as if another attempt had taken the partition and
// somebody had then removed the checkpoint.
func TestACheckpointThatIsRemovedDuringATakeIsMissed(t *testing.T) {
	d, _ := directory(t)
	b := &between{Bucket: d, swap: 1, do: func() {
		if _, err := manifest.Create(t.Context(), d, layout.Taken("2026-11", 0, 0), &manifest.Taken{Plan: "p"}); err != nil {
			t.Error(err)
		}
	}}
	for n := range 2 { // the second attempt does not find a checkpoint either
		if _, err := acquire(t, b); !errors.Is(err, stages.ErrPermanent) {
			t.Errorf("attempt %d: %v", n, err)
		}
		if there, err := manifest.Exists(t.Context(), d, layout.Checkpoint("2026-11", 0, 0)); err != nil || there {
			t.Errorf("attempt %d leaves a checkpoint: %t, %v", n, there, err)
		}
	}
}

// TestOnlyADeathCountsAsOne compares a predecessor that died with a predecessor whose lock was
// removed.
func TestOnlyADeathCountsAsOne(t *testing.T) {
	key := layout.Checkpoint("2026-11", 0, 0)
	for _, died := range []bool{true, false} {
		d, root := directory(t)
		before := manifest.Checkpoint{Plan: "p", Epoch: 3, Holder: "old", Stalled: 2, Trying: &manifest.Trying{Row: 7}, Activity: &manifest.Activity{Waits: []manifest.Wait{{Host: "h.test"}}}}
		if _, err := manifest.Swap(t.Context(), d, key, &before, ""); err != nil {
			t.Fatal(err)
		}
		lock, ok, err := d.Lock(key)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if died {
			lock.Abandon()
		} else {
			t.Cleanup(lock.Release)
			if err := os.RemoveAll(filepath.Join(root, store.Reserved)); err != nil {
				t.Fatal(err)
			}
		}
		l, err := acquire(t, d)
		if err != nil {
			t.Fatal(err)
		}
		stalled, suspects := 2, 0
		if died {
			stalled, suspects = 3, 1
		}
		if now := l.Checkpoint(); now.Stalled != stalled || len(now.Suspects) != suspects || now.Trying != nil || now.Activity == nil || now.Activity.Reported() || now.Activity.Began == 0 {
			t.Errorf("died=%t: %d without progress, suspects %v, trying %v, activity %v", died, now.Stalled, now.Suspects, now.Trying, now.Activity)
		}
	}
}

// heldCheckpoint is a checkpoint whose holder has reported.
func heldCheckpoint() *manifest.Checkpoint {
	return &manifest.Checkpoint{Plan: "p", Epoch: 3, Counter: 1, Holder: "old", LeaseMS: 60_000, Activity: &manifest.Activity{At: 2000, Began: 1000, Left: 1, Machine: "pod-7"}}
}

// An attempt that takes only a free partition fails at once if another process has its lock.
func TestAnAttemptThatMustNotWaitNamesTheHolder(t *testing.T) {
	key := layout.Checkpoint("2026-11", 0, 0)
	d, _ := directory(t)
	if _, err := manifest.Swap(t.Context(), d, key, heldCheckpoint(), ""); err != nil {
		t.Fatal(err)
	}
	lock, ok, err := d.Lock(key)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer lock.Release()
	free := opt
	free.IfFree = true
	_, _, err = Acquire(t.Context(), &stages.Env{Bucket: d, Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler)}, free)
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "attempt 3 on pod-7 since 1970-01-01T00:00:01Z fetches it") {
		t.Error(err)
	}
}

// unlocked is a store without locks.
type unlocked struct{ store.Bucket }

// Without locks, only a renewal shows that the holder lives. The time until then is reported as waited.
func TestWithoutLocksARenewalShowsThatThePartitionIsHeld(t *testing.T) {
	for name, alive := range map[string]bool{"the holder renews": true, "the holder died": false} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d, err := dirstore.Open(root, dirstore.Options{})
				if err != nil {
					t.Fatal(err)
				}
				key := layout.Checkpoint("2026-11", 0, 0)
				held := heldCheckpoint()
				version, err := manifest.Swap(t.Context(), d, key, held, "")
				if err != nil {
					t.Fatal(err)
				}
				renewed := make(chan error, 1)
				go func() {
					time.Sleep(20 * time.Second)
					var err error
					if alive {
						held.Counter++
						_, err = manifest.Swap(t.Context(), d, key, held, version)
					}
					renewed <- err
				}()
				free, waited := opt, time.Duration(0)
				free.IfFree = true
				l, _, err := Acquire(t.Context(), &stages.Env{
					Bucket: unlocked{d}, Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Waited: func(d time.Duration) { waited += d },
				}, free)
				if err := <-renewed; err != nil {
					t.Fatal(err)
				}
				if alive && (!errors.Is(err, ErrHeld) || waited < 20*time.Second || waited > 30*time.Second) || !alive && (err != nil || waited < 66*time.Second || waited > 75*time.Second) {
					t.Errorf("%v after %s", err, waited)
				}
				if err == nil {
					l.Close()
				}
			})
		})
	}
}
