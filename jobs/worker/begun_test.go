package worker

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// taking is a bucket that notes, at the first swap of a key, whether the record that an attempt began exists.
type taking struct {
	store.Bucket
	key, begun string
	recorded   *bool
}

func (b taking) Unwrap() store.Bucket { return b.Bucket }

func (b taking) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if key == b.key && !*b.recorded {
		_, _, err := b.Get(ctx, b.begun, manifest.MaxBytes)
		*b.recorded = err == nil
	}
	return b.Bucket.Swap(ctx, key, body, size, old)
}

// An attempt that waits for another one sends no request, so it leaves no beginning if it never ends. Once an
// attempt takes its partition, it has one: a process may be killed right after that.
func TestAnAttemptAtAFetchTaskBeginsWhenItTakesItsPartition(t *testing.T) {
	r, _ := startedStore(t)
	fetched := task(stages.Fetch, 0)
	begun := layout.Begun(fetched.Crawl, fetched.Round, string(fetched.Stage), 0, 1)
	recorded := false
	b := r.Bucket
	r.Bucket = taking{b, layout.Checkpoint(fetched.Crawl, fetched.Round, 0), begun, &recorded}
	locker, _ := store.As[store.Locker](b)
	lock, ok, err := locker.Lock(layout.Checkpoint(fetched.Crawl, fetched.Round, 0))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		time.AfterFunc(50*time.Second, func() {
			if there, err := manifest.Exists(t.Context(), b, begun); there || err != nil {
				t.Errorf("an attempt that waits has a beginning: %t, %v", there, err)
			}
		})
		if err := r.Run(ctx, fetched); !errors.Is(err, stages.ErrInterrupted) {
			t.Error(err)
		}
	})
	lock.Release()
	if err := r.Run(t.Context(), fetched); err == nil {
		t.Error("an attempt fetched a partition that the store lacks")
	}
	var began manifest.Begun
	if _, _, err := manifest.Load(t.Context(), b, begun, &began); err != nil || !recorded {
		t.Fatalf("the beginning was recorded before the partition was taken: %t, %v", recorded, err)
	}
	if a := attempts(t, b, fetched); len(a) != 2 || a[0].Epoch != 0 || a[1].Epoch != 1 || a[1].Began != began.At || a[1].Machine != began.Machine {
		t.Errorf("began %+v, ended %+v", began, a)
	}
}

// faster is a store without locks, in which another attempt takes a partition just before the first swap of its
// checkpoint.
type faster struct {
	store.Bucket
	take func()
}

func (b *faster) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if take := b.take; take != nil && strings.HasSuffix(key, "/checkpoint.json") {
		b.take = nil
		take()
	}
	return b.Bucket.Swap(ctx, key, body, size, old)
}

// Two attempts find a partition free. The one that is slower to take it waits, so it has no beginning any more.
func TestAnAttemptThatIsTooSlowToTakeItsPartitionHasNotBegun(t *testing.T) {
	r, p := startedStore(t)
	b := r.Bucket
	fetched := task(stages.Fetch, 0)
	key := layout.Checkpoint(fetched.Crawl, fetched.Round, 0)
	begun := func() bool {
		t.Helper()
		there, err := manifest.Exists(t.Context(), b, layout.Begun(fetched.Crawl, fetched.Round, string(fetched.Stage), 0, 1))
		if err != nil {
			t.Error(err)
		}
		return there
	}
	raced := false
	synctest.Test(t, func(t *testing.T) {
		r.Bucket = &faster{r.Bucket, func() {
			if raced = true; !begun() {
				t.Error("an attempt that takes its partition has no beginning")
			}
			_, err := manifest.Create(t.Context(), b, key, &manifest.Checkpoint{Plan: p.ID, Epoch: 1, Holder: "other", LeaseMS: time.Hour.Milliseconds()})
			if err != nil {
				t.Error(err)
			}
		}}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		time.AfterFunc(50*time.Second, func() {
			if begun() {
				t.Error("an attempt that waits has a beginning")
			}
		})
		if err := r.Run(ctx, fetched); !errors.Is(err, stages.ErrInterrupted) || !raced {
			t.Errorf("raced: %t, %v", raced, err)
		}
	})
}
