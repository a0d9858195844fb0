package lease

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages"
)

// between is a bucket that calls a function just before one of its swaps. The function may change
// the store.
type between struct {
	store.Bucket
	swap int
	do   func()
}

func (b *between) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if b.swap--; b.swap == 0 {
		b.do()
	}
	return b.Bucket.Swap(ctx, key, body, size, old)
}

// TestAConflictTellsARenewalFromACheckpointThatWasPutBack changes the checkpoint just before an
// attempt swaps it. The attempt must distinguish a renewal by the other holder from an older
// checkpoint that was put back.
func TestAConflictTellsARenewalFromACheckpointThatWasPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		found *manifest.Checkpoint // what the attempt finds in the store; nil if nothing
		want  error
	}{
		"the holder renewed":               {&manifest.Checkpoint{Epoch: 3, Counter: 8, Holder: "old"}, stages.ErrTaken},
		"the holder released":              {&manifest.Checkpoint{Epoch: 3, Counter: 8, Holder: "old", Released: true}, stages.ErrTaken},
		"another newcomer took it":         {&manifest.Checkpoint{Epoch: 4, Counter: 1, Holder: "another"}, stages.ErrTaken},
		"an older one was put back":        {&manifest.Checkpoint{Epoch: 3, Counter: 6, Holder: "old"}, stages.ErrPermanent},
		"one of an epoch before":           {&manifest.Checkpoint{Epoch: 2, Counter: 90, Holder: "older"}, stages.ErrPermanent},
		"it was removed, or never written": {nil, stages.ErrPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dirstore.Open(t.TempDir(), dirstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			seen := manifest.Checkpoint{Epoch: 3, Counter: 7, Holder: "old"}
			version, err := manifest.Swap(t.Context(), d, "checkpoint", &seen, "")
			if err != nil {
				t.Fatal(err)
			}
			b := &between{Bucket: d, swap: 1, do: func() {
				if err := d.Delete(t.Context(), "checkpoint"); err != nil {
					t.Error(err)
				}
				if c.found != nil {
					if _, err := manifest.Swap(t.Context(), d, "checkpoint", c.found, ""); err != nil {
						t.Error(err)
					}
				}
			}}
			l := &Lease{Options: Options{Attempt: "new", Duration: time.Minute, Request: time.Second}, bucket: b, key: "checkpoint", clock: stages.SystemClock{}, log: slog.New(slog.DiscardHandler)}
			l.doc, l.stored = seen, version
			if err := l.take(t.Context(), Predecessor{Exists: true}); !errors.Is(err, c.want) || l.MayWrite(time.Now()) {
				t.Errorf("%v, want %v; may write: %t", err, c.want, l.MayWrite(time.Now()))
			}
		})
	}
}
