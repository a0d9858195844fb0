package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// moving is a clock that a test moves on.
type moving struct {
	stages.SystemClock
	by *atomic.Int64
}

func (m moving) Now() time.Time { return time.Now().Add(time.Duration(m.by.Load())) }

// swapping calls at instead of the first swap of the ledger.
type swapping struct {
	store.Bucket
	at   func(swap func() error) error
	done *atomic.Bool
}

func (s swapping) Unwrap() store.Bucket { return s.Bucket }

func (s swapping) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (v store.Version, err error) {
	swap := func() error {
		v, err = s.Bucket.Swap(context.WithoutCancel(ctx), key, body, size, old)
		return err
	}
	if key != layout.Ledger(crawl) || s.done.Swap(true) {
		return v, swap()
	}
	return v, s.at(swap)
}

// A run is stopped while the store swaps the ledger, and the swap takes effect after the run has ended.
func TestASwapThatLandsAfterTheRunGaveUpNamesAWholeCopy(t *testing.T) {
	for name, lands := range map[string]bool{"lands": true, "never lands": false} {
		t.Run(name, func(t *testing.T) {
			b := crawled(t, directory(t), 1)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var swap func() error
			r := request(t, swapping{b, func(s func() error) error {
				swap = s
				stop()
				return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
			}, new(atomic.Bool)})
			_, err := Run(ctx, r)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "whether views read the new copy is not known, so it stays: `crawlbatch compact --dry-run` says") {
				t.Fatalf("the stopped run: %v", err)
			}
			want := 0
			if lands {
				if want = 1; swap() != nil {
					t.Fatal("the swap failed")
				}
			}
			if _, n := opened(t, b); n != want {
				t.Errorf("views read the copies of %d rounds, want %d", n, want)
			}
			if l, err := ledger.Load(t.Context(), b, crawl); err != nil {
				t.Error(err)
			} else {
				for lost, err := range l.Losses(t.Context(), b) {
					t.Errorf("%v, %v", lost, err)
				}
			}
			r = request(t, b)
			r.Clock = fixed{now: time.Now().Add(25 * time.Hour)}
			if _, err := Drop(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if left := append(keys(t, b, "compacted/"), keys(t, b, layout.CompactionDir(crawl))...); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

// A run takes longer than a day. Another run or a drop then takes its parts for leftovers, after the run
// has seen that they are all there, and before it appends its entry.
func TestARunOfMoreThanADayNeverNamesDeletedParts(t *testing.T) {
	for name, c := range map[string]struct {
		other   func(context.Context, Request) (*Found, error)
		hours   time.Duration
		refused bool
	}{
		"a run meanwhile":                {Run, 25, true},
		"a drop meanwhile":               {Drop, 25, true},
		"a run after 20 hours":           {Run, 20, true},
		"a drop in the first hours":      {Drop, 1, false},
		"another run in the first hours": {Run, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := crawled(t, directory(t), 1)
			clock := moving{by: new(atomic.Int64)}
			r := request(t, swapping{b, func(swap func() error) error {
				clock.by.Store(int64(c.hours * time.Hour))
				other := request(t, b)
				other.Clock = clock
				if _, err := c.other(t.Context(), other); err != nil {
					t.Error(err)
				}
				return swap()
			}, new(atomic.Bool)})
			r.Clock = clock
			f, err := Run(t.Context(), r)
			if refused := errors.Is(err, ErrChanged); refused != c.refused || err != nil && !refused {
				t.Errorf("the slow run: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("another `crawlbatch compact` has ended since this one began %dh0m0s ago", c.hours)) {
				t.Errorf("the slow run: %v", err)
			}
			sealed, _ := opened(t, b) // every part that views read is there
			if !c.refused && !strings.Contains(sealed[0].Files[0].Key, f.Current) {
				t.Errorf("views read %q and not the copy of the slow run", sealed[0].Files[0].Key)
			}
			for _, key := range keys(t, b, "compacted/") {
				if c.refused && f != nil && layout.RevisionOf(key, crawl) == f.Current {
					t.Errorf("%q of the run that gave way is left over", key)
				}
			}
		})
	}
}

func keys(t *testing.T, b store.Bucket, prefix string) (all []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Key)
	}
	return all
}
