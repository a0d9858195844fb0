package store_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// stuck is a store whose writes hang until their context ends.
type stuck struct {
	store.Bucket
	after error // error of a write when its context ends; nil means the context's error
}

func (s stuck) Create(ctx context.Context, _ string, _ io.ReaderAt, _ int64) (store.Version, error) {
	<-ctx.Done()
	if s.after != nil {
		return "", s.after
	}
	return "", ctx.Err()
}

func (s stuck) Swap(ctx context.Context, _ string, _ io.ReaderAt, _ int64, _ store.Version) (store.Version, error) {
	return s.Create(ctx, "", nil, 0)
}

func TestAWriteIsGivenUpAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := store.WithLimit(stuck{}, time.Minute)
		began := time.Now()
		_, err := b.Create(t.Context(), "k", strings.NewReader(""), 64<<20)
		if took := time.Since(began); took != time.Minute+256*time.Second {
			t.Errorf("took %v", took)
		}
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `create "k"`) {
			t.Errorf("%v", err)
		}
		began = time.Now()
		_, err = store.SwapBytes(t.Context(), b, "k", []byte("body"), "v")
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), `swap "k"`) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestALimitHidesNeitherTheCallersEndNorALostRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := store.CreateBytes(ctx, store.WithLimit(stuck{}, time.Minute), "k", nil); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if _, err := store.CreateBytes(t.Context(), store.WithLimit(stuck{after: store.ErrExists}, time.Minute), "k", nil); !errors.Is(err, store.ErrExists) {
			t.Errorf("%v", err)
		}
		if _, err := store.SwapBytes(t.Context(), store.WithLimit(stuck{after: store.ErrConflict}, time.Minute), "k", nil, ""); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%v", err)
		}
	})
}
