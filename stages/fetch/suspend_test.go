package fetch

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages/fetch/lease/leasetest"
)

// A machine may be suspended, and its wall clock may be set. The monotonic clock notices
// neither.

// swaps records when the checkpoint was last swapped.
type swaps struct {
	store.Bucket
	last atomic.Int64 // nanoseconds, UTC
}

func (s *swaps) Swap(ctx context.Context, key string, body []byte, old store.Version) (store.Version, error) {
	s.last.Store(time.Now().UnixNano())
	return s.Bucket.Swap(ctx, key, body, old)
}

func TestAMachineThatWakesUpSwapsBeforeItAsksAnything(t *testing.T) {
	for name, step := range map[string]int64{"suspended": 3600, "set back": -3600} {
		t.Run(name, func(t *testing.T) {
			base := time.Now()
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 60)...)
				clock, bucket := leasetest.NewClock(base), &swaps{Bucket: l.bucket}
				env := l.env(bucket, t.TempDir())
				env.Clock = clock
				cfg := l.cfg
				var before, unproven atomic.Int64 // the last swap before the step; the requests between the step and the next swap
				time.AfterFunc(31*time.Second, func() {
					before.Store(bucket.last.Load())
					clock.Step.Store(step)
				})
				l.web.server.Handler = seen(l.web.server.Handler, func() {
					if bucket.last.Load() == before.Load() {
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
				if n := unproven.Load(); step > 0 && n > 0 {
					t.Errorf("%d requests were sent after an hour's sleep, by a right of before it", n)
				}
				for i, h := range l.web.hits()[1:] {
					if gap := h.at.Sub(l.web.hits()[i].at); gap > 10*time.Second {
						t.Errorf("fetching stood still for %v", gap)
					}
				}
			})
		})
	}
}
