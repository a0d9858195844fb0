package fetch

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages/fetch/lease/leasetest"
)

// These tests suspend the machine or set its wall clock. The monotonic clock shows neither.

// swaps is a bucket that notes when the checkpoint was last swapped. It can call a function that
// suspends the machine before the attempt gets the answer to a swap.
type swaps struct {
	store.Bucket
	last  atomic.Int64 // time of the last swap in UTC, in nanoseconds
	pause atomic.Pointer[func()]
}

func (s *swaps) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	s.last.Store(time.Now().UnixNano())
	v, err := s.Bucket.Swap(ctx, key, body, size, old)
	if pause := s.pause.Swap(nil); pause != nil {
		(*pause)()
	}
	return v, err
}

func TestAMachineThatWakesUpSwapsBeforeItAsksAnything(t *testing.T) {
	for name, c := range map[string]struct {
		step int64 // step of the wall clock, in seconds
		late bool  // whether the step comes during a swap
	}{
		"suspended": {3600, false}, "set back": {-3600, false}, "suspended for less than the right": {60, false},
		"suspended in a swap": {3600, true}, "suspended in a swap for less than the right": {60, true}, "set back in a swap": {-60, true},
	} {
		t.Run(name, func(t *testing.T) {
			base := time.Now()
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 60)...)
				clock, bucket := leasetest.NewClock(base), &swaps{Bucket: l.bucket}
				env := l.env(bucket, t.TempDir())
				env.Clock = clock
				cfg := l.cfg
				// stepped is the time of the step, and before is the time of the last swap before it.
				// unproven counts the requests between the step and the next swap. A request at the
				// very moment of the step may have been written before it, so it does not count.
				var before, stepped, unproven atomic.Int64
				step := func() {
					stepped.Store(time.Now().UnixNano())
					before.Store(bucket.last.Load())
					clock.Step.Store(c.step)
				}
				time.AfterFunc(31*time.Second, func() {
					if c.late {
						bucket.pause.Store(&step)
					} else {
						step()
					}
				})
				l.web.server.Handler = seen(l.web.server.Handler, func() {
					if bucket.last.Load() == before.Load() && time.Now().UnixNano() > stepped.Load() {
						unproven.Add(1)
					}
				})
				r, err := runWith(t.Context(), env, &Input{Task: l.task, Plan: l.plan}, cfg, l.parser, hooks{tune: l.web.tune})
				if err != nil {
					t.Fatal(err)
				}
				for u, f := range l.outcomes(r) {
					if f.Outcome != schema.OK {
						t.Errorf("%s: %s", u, f.Outcome)
					}
				}
				if n := unproven.Load(); before.Load() == 0 || n > 0 {
					t.Errorf("%d requests were sent after the step of the clock, without a swap after it", n)
				}
				for i, h := range l.web.hits()[1:] {
					if gap := h.at.Sub(l.web.hits()[i].at); gap > 10*time.Second {
						t.Errorf("no request was sent for %v", gap)
					}
				}
			})
		})
	}
}
