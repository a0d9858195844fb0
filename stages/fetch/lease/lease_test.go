package lease

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/faultstore"
	"crawlbatch.io/crawlbatch/stages"
)

// TestASwapAfterOneOfUnknownOutcomeIsStoredOrNotBelieved loses the store's answer to a renewal. In
// the first case, the renewal has no effect; in the second case, it takes effect. Then the task
// makes its last swap. If the store acknowledges this swap, it must have the new checkpoint.
func TestASwapAfterOneOfUnknownOutcomeIsStoredOrNotBelieved(t *testing.T) {
	for name, fault := range map[string]faultstore.Fault{"without effect": faultstore.Before, "with effect": faultstore.After} {
		t.Run(name, func(t *testing.T) {
			d, err := dirstore.Open(t.TempDir(), dirstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			swaps := 0
			flaky := faultstore.New(d, faultstore.Faults{Choose: func(op faultstore.Op, _ string) faultstore.Fault {
				if op == faultstore.Swap {
					if swaps++; swaps == 2 {
						return fault
					}
				}
				return faultstore.None
			}})
			l := &Lease{Options: Options{Duration: time.Minute, Request: time.Second}, bucket: flaky, key: "checkpoint", clock: stages.SystemClock{}, log: slog.New(slog.DiscardHandler)}
			l.doc.Epoch, l.doc.Holder = 1, "me"
			renew := func(*manifest.Checkpoint) error { return nil }
			if err := l.Swap(t.Context(), renew); err != nil {
				t.Fatal(err)
			}
			if err := l.Swap(t.Context(), renew); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("a renewal whose answer was lost: %v", err)
			}
			err = l.Swap(t.Context(), func(d *manifest.Checkpoint) error {
				d.Files, d.Complete = []manifest.File{{Key: "segment"}}, true
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var stored manifest.Checkpoint
			version, _, err := manifest.Load(t.Context(), d, "checkpoint", &stored)
			if err != nil {
				t.Fatal(err)
			}
			if !stored.Complete || len(stored.Files) != 1 || version != l.stored || stored.Counter != l.doc.Counter {
				t.Errorf("acknowledged, and the store has %+v", stored)
			}
		})
	}
}

func TestASwapThatAnotherAttemptCameBeforeIsLost(t *testing.T) {
	d, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &Lease{Options: Options{Duration: time.Minute, Request: time.Second}, bucket: d, key: "checkpoint", clock: stages.SystemClock{}, log: slog.New(slog.DiscardHandler)}
	l.doc.Epoch, l.doc.Holder = 1, "me"
	renew := func(*manifest.Checkpoint) error { return nil }
	if err := l.Swap(t.Context(), renew); err != nil {
		t.Fatal(err)
	}
	// This checkpoint has the same epoch and a lower counter, so the holder must conclude that
	// another attempt wrote it.
	if _, err := manifest.Swap(t.Context(), d, "checkpoint", &manifest.Checkpoint{Epoch: 1, Holder: "another"}, l.stored); err != nil {
		t.Fatal(err)
	}
	if err := l.Swap(t.Context(), renew); !errors.Is(err, stages.ErrTaken) || l.MayWrite(time.Now()) {
		t.Errorf("%v, and may write: %t", err, l.MayWrite(time.Now()))
	}
}

func TestACheckpointThatIsTooLargeDoesNotKeepSmallerOnesFromBeingSwapped(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &Lease{Options: Options{Duration: time.Minute, Request: time.Second}, bucket: d, key: "checkpoint", clock: stages.SystemClock{}, log: slog.New(slog.DiscardHandler)}
	err = l.Swap(t.Context(), func(d *manifest.Checkpoint) error { d.Recorded = make([]byte, manifest.MaxBytes); return nil })
	if !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("a bitmap of %d bytes: %v", manifest.MaxBytes, err)
	}
	if err := l.Swap(t.Context(), func(d *manifest.Checkpoint) error { d.Released = true; return nil }); err != nil {
		t.Error(err)
	}
}
