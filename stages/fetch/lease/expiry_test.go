package lease

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease/leasetest"
)

// These tests suspend the machine or set its wall clock. The monotonic clock shows neither.

// testLease is a lease with the right to fetch until a given time.
func testLease(clock stages.Clock, until time.Time) *Lease {
	return &Lease{Options: Options{Duration: 3 * time.Minute, Request: 30 * time.Second}, clock: clock, log: slog.New(slog.DiscardHandler), until: until, sent: until.Add(-3 * time.Minute)}
}

func TestRequestsInFlightAreAbortedWhenTheRightEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := testLease(stages.SystemClock{}, start.Add(10*time.Second))
		f := NewFlights(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.WatchExpiry(ctx, f) }()
		flight := f.Context()
		<-flight.Done()
		if at := time.Since(start); at != 10*time.Second {
			t.Errorf("aborted after %v, the right ran 10s", at)
		}
		l.mu.Lock()
		l.until = time.Now().Add(time.Minute) // the lease has ended, but nobody took the partition, so the holder renews it and continues
		l.mu.Unlock()
		time.Sleep(30 * time.Second)
		if err := f.Context().Err(); err != nil {
			t.Errorf("a request under the new right: %v", err)
		}
		cancel()
		<-ended
	})
}

func TestTheRightEndsByWhicheverClockHasGoneOnFurther(t *testing.T) {
	sent := time.Now()
	l := testLease(stages.SystemClock{}, sent.Add(3*time.Minute))
	for name, c := range map[string]struct {
		monotonic time.Duration
		wall      int64 // seconds by which the wall clock is ahead of the monotonic clock
		want      bool
	}{
		"within":                      {2 * time.Minute, 0, true},
		"in the last request's time":  {151 * time.Second, 0, false},
		"woken after an hour":         {time.Minute, 3600, false},
		"clocks that differ a little": {2 * time.Minute, 5, true},
		"woken early enough":          {time.Minute, 60, false}, // the lease has not ended, but the clocks disagree, so the holder must not trust them
		"set forward a little":        {time.Minute, 6, false},
		"set back a little":           {time.Minute, -6, false},
		"set back, within":            {time.Minute, -3600, false},
		"set back, and over":          {151 * time.Second, -3600, false},
		"woken after a day, set back": {4 * time.Minute, -86400, false},
	} {
		now := leasetest.WithWall(sent.Add(c.monotonic), c.wall)
		if elapsed := now.Sub(sent); elapsed != c.monotonic {
			t.Fatalf("the test's clock: %v have passed, want %v", elapsed, c.monotonic)
		}
		if got := l.MayWrite(now); got != c.want {
			t.Errorf("%s: may write %t, want %t", name, got, c.want)
		}
	}
}

func TestRequestsInFlightAreAbortedWhenTheMachineWakesUpWithoutARight(t *testing.T) {
	base := time.Now()
	synctest.Test(t, func(t *testing.T) {
		clock := leasetest.NewClock(base)
		l := testLease(clock, clock.Now().Add(3*time.Minute))
		f := NewFlights(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.WatchExpiry(ctx, f) }()
		time.Sleep(time.Minute)
		flight := f.Context()
		clock.Step.Store(3600)
		woken := time.Now()
		<-flight.Done()
		if took := time.Since(woken); took > 2*time.Second {
			t.Errorf("aborted %v after the machine woke up", took)
		}
		cancel()
		<-ended
	})
}
