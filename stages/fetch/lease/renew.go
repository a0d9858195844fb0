package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// Patience is the time for which an attempt waits for a store that does not answer or is full, or
// for room on its disk. For renewals, it counts from the end of the lease.
const Patience = 30 * time.Minute

// maxSleep bounds one sleep while an attempt waits for a deadline of the lease. Timers stop while
// the machine is suspended, so a longer sleep could end too late.
const maxSleep = time.Second

// toldAfter is the number of failed renewals in a row after which KeepRenewed logs a warning.
const toldAfter = 3

// RenewIfDue renews the lease if a third of its time has passed. An attempt calls it while it loads
// its state, which may take longer than the lease; later KeepRenewed does this work. If the store
// does not answer, RenewIfDue returns nil, and the next call tries again.
func (l *Lease) RenewIfDue(ctx context.Context) error {
	if l.renewsIn(l.clock.Now()) > 0 {
		return nil
	}
	err := l.Swap(ctx, func(*manifest.Checkpoint) error { return nil })
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull) {
		return nil
	}
	return err
}

// renewsIn returns the time until the lease is due for renewal; zero or less means now.
func (l *Lease) renewsIn(now time.Time) time.Duration {
	return min(timeLeft(l.renewed().Add(l.Duration/3), now), l.remaining(now))
}

// KeepRenewed renews the lease until ctx ends. The lease therefore lasts while no checkpoint is due
// or an upload takes long. KeepRenewed calls update on each checkpoint before the swap. The first
// renewal comes after the given time at the latest, because people wait for the first update. If
// KeepRenewed returns an error, the attempt ends.
func (l *Lease) KeepRenewed(ctx context.Context, first time.Duration, update func(*manifest.Checkpoint)) error {
	every := l.Duration / 3
	failed := 0
	begun, updated := l.clock.Now(), false
	for {
		wait := l.renewsIn(l.clock.Now())
		if !updated {
			wait = min(wait, timeLeft(begun.Add(first), l.clock.Now()))
		}
		if wait > 0 {
			if err := l.clock.Sleep(ctx, min(wait, maxSleep)); err != nil {
				return nil //nolint:nilerr // ctx has ended
			}
			continue // a checkpoint may have been swapped meanwhile
		}
		err := l.Swap(ctx, func(d *manifest.Checkpoint) error { update(d); return nil })
		updated = updated || err == nil
		switch {
		case err == nil && l.remaining(l.clock.Now()) <= 0:
			// Either another process has the store's lock and has not swapped yet, or the clocks
			// disagreed after the swap.
			if failed++; failed == toldAfter {
				l.log.Warn("the lease was renewed, but gives no right to fetch yet; the renewal is tried again")
			}
			if l.clock.Sleep(ctx, min(max(every/10, 100*time.Millisecond), maxSleep)) != nil {
				return nil
			}
		case err == nil:
			if failed >= toldAfter {
				l.log.Info("the lease is renewed again")
			}
			failed = 0
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull):
			// The attempt can afford to wait for the store, because no request is written after the
			// lease has ended.
			if l.clock.Now().Sub(l.renewed()) > l.Duration+Patience {
				return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
			}
			if failed++; failed == toldAfter {
				l.log.Warn("the lease could not be renewed; the renewal is tried again", "error", err)
			}
			if l.clock.Sleep(ctx, max(every/10, 100*time.Millisecond)) != nil {
				return nil
			}
		default:
			return err
		}
	}
}

// WatchExpiry runs until ctx ends. When the lease ends without renewal, it aborts the requests in
// flight. Usually there are none, because no request begins that could outlast the lease. But a
// process that was suspended may still have requests in flight when it wakes up.
func (l *Lease) WatchExpiry(ctx context.Context, f *Flights) {
	for {
		if wait := l.remaining(l.clock.Now()); wait > 0 {
			if l.clock.Sleep(ctx, min(wait, maxSleep)) != nil {
				return
			}
			continue // the lease may have been renewed during the sleep
		}
		if l.isLost() {
			return // the attempt ends
		}
		l.log.Warn("the right to fetch has ended: requests in flight are aborted, and fetching waits until the lease is renewed")
		f.AbortAll()
		for l.remaining(l.clock.Now()) <= 0 {
			if l.isLost() || l.clock.Sleep(ctx, 100*time.Millisecond) != nil {
				return
			}
		}
	}
}
