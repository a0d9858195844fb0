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

// stuck takes no write until its context ends.
type stuck struct {
	store.Bucket
	after error // what it says then, if it is not the context's error
}

func (s stuck) Create(ctx context.Context, _ string, _ io.ReaderAt, _ int64) (store.Version, error) {
	<-ctx.Done()
	if s.after != nil {
		return "", s.after
	}
	return "", ctx.Err()
}

func (s stuck) Swap(ctx context.Context, _ string, _ []byte, _ store.Version) (store.Version, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestACreateIsGivenUpAfterItsLimit(t *testing.T) {
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
		began := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := store.WithLimit(stuck{}, time.Minute).Swap(ctx, "k", nil, ""); err == nil || time.Since(began) != time.Hour {
			t.Errorf("Swap ended after %v: %v", time.Since(began), err)
		}
	})
}
