// Package lease gives an attempt the exclusive right to fetch a partition. An attempt takes a
// partition by swapping in a checkpoint with the next epoch, and renews its right by further swaps.
// The lease tells whether a request may still be written.
//
// The attempt that swapped the checkpoint last holds the partition, and only the files in that
// checkpoint count. The lease runs from the moment at which the last acknowledged swap was sent.
// The holder measures the lease by its own clock, so clocks of different machines are never
// compared.
//
// A checkpoint also tells at which URLs, robots.txt files and sitemaps earlier attempts died: its suspects.
// Package lease imports packages stages, segments, status and formats.
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// Options holds the partition, the attempt and the durations of a lease.
type Options struct {
	Task     stages.Task
	Plan     string
	Attempt  string        // name of the attempt, different from all other attempts
	Duration time.Duration // length of the lease
	Request  time.Duration // the longest time that a request may take
	// IfFree makes Acquire fail with ErrHeld if another attempt is seen to hold the partition. It still
	// waits for an attempt that may have died, until its lease ends.
	IfFree bool
}

// Lease is an attempt's lease on a partition. It is safe for concurrent use.
type Lease struct {
	Options
	bucket  store.Bucket
	key     string // key of the checkpoint
	clock   stages.Clock
	log     *slog.Logger
	watcher stages.Watcher // may be nil
	waited  func(time.Duration)
	version string       // version of crawlbatch
	locker  store.Locker // nil if the store has no locks

	swapping  sync.Mutex // held during a swap
	doc       manifest.Checkpoint
	stored    store.Version
	unsettled *manifest.Checkpoint // checkpoint that was sent but not yet acknowledged; nil if none
	first     time.Time            // when unsettled was first sent

	mu    sync.Mutex
	until time.Time  // when the right to fetch ends; zero after the right was lost
	sent  time.Time  // when the last acknowledged swap was sent
	lock  store.Lock // the store's lock; nil if the store has no locks
	lost  bool
	at    manifest.Position // position of the last acknowledged checkpoint
}

// Key returns the key of the checkpoint in the store.
func (l *Lease) Key() string { return l.key }

// Close frees the store's lock. It does not end the lease: the lease ends when a swap releases it
// or when its time is over.
func (l *Lease) Close() {
	lock, doc := l.heldLock(), l.Checkpoint()
	switch {
	case lock == nil:
	case doc.Released || doc.Complete || doc.Holder != l.Attempt && !lock.Inherited():
		lock.Release()
	default:
		lock.Abandon() // the lease was not released
	}
}

// Checkpoint returns the last acknowledged checkpoint. The caller must not change it.
func (l *Lease) Checkpoint() manifest.Checkpoint {
	l.swapping.Lock()
	defer l.swapping.Unlock()
	return l.doc
}

// Position returns the position of the last acknowledged checkpoint. It does not wait for a swap
// under way.
func (l *Lease) Position() manifest.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// Swap changes the checkpoint. If the store did not answer, it may or may not have made the change.
// The next Swap then first sends the same bytes again. If the error wraps stages.ErrTaken, another
// attempt has taken the partition, and the caller must stop for good.
func (l *Lease) Swap(ctx context.Context, change func(*manifest.Checkpoint) error) error {
	l.swapping.Lock()
	defer l.swapping.Unlock()
	if err := l.reclaim(); err != nil {
		return err
	}
	if l.unsettled != nil {
		if err := l.send(ctx); err != nil {
			return err
		}
	}
	next := l.doc
	if err := change(&next); err != nil {
		return err
	}
	next.Counter++
	l.unsettled, l.first = &next, l.clock.Now()
	return l.send(ctx)
}

// send swaps in the unsettled checkpoint. If the store does not answer, the checkpoint stays
// unsettled. The lease runs from the first time at which this checkpoint was sent, because the
// store may have accepted the first try. The caller holds the mutex swapping.
func (l *Lease) send(ctx context.Context) error {
	next := l.unsettled
	version, err := manifest.Swap(ctx, l.bucket, l.key, next, l.stored)
	if errors.Is(err, manifest.ErrTooLarge) {
		l.unsettled = nil // the swap was not sent
		return fmt.Errorf("%q: %w", l.key, err)
	}
	if errors.Is(err, store.ErrConflict) {
		var found manifest.Checkpoint
		v, _, lerr := manifest.Load(ctx, l.bucket, l.key, &found)
		if lerr == nil {
			lerr = l.checkFound(&found, next)
		}
		switch {
		case errors.Is(lerr, store.ErrNotFound), errors.Is(lerr, manifest.ErrCorrupt):
			l.lose()
			return fmt.Errorf("%q was removed or damaged while this attempt held the partition: %w: %s: %w", l.key, lerr, remedy, stages.ErrPermanent)
		case lerr != nil:
			return errors.Join(err, lerr)
		}
		version, err = v, nil // the store had made an earlier swap whose answer was lost
	}
	if err != nil {
		return err
	}
	l.doc, l.stored, l.unsettled = *next, version, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = next.Position()
	if !l.lost {
		l.sent, l.until = l.first, l.first.Add(l.Duration)
	}
	return nil
}

// checkFound compares the checkpoint found in the store with the one that this attempt sent. It
// returns nil if they are equal. If the found one is older than the last checkpoint that this
// attempt knows, somebody put it back. Otherwise another attempt has the partition. Its epoch may
// be lower than the sent one: the previous holder then renewed its lease while this attempt tried
// to take the partition.
func (l *Lease) checkFound(found, sent *manifest.Checkpoint) error {
	if found.Holder == sent.Holder && found.Position() == sent.Position() {
		return nil
	}
	l.lose()
	seen := &l.doc
	if found.Position().Compare(seen.Position()) < 0 && (found.Epoch < seen.Epoch || found.Holder == seen.Holder) {
		return fmt.Errorf("%q is checkpoint %v, but the store already had checkpoint %v: an older one was put back: %s: %w",
			l.key, found.Position(), seen.Position(), remedy, stages.ErrPermanent)
	}
	return fmt.Errorf("%q was taken over by %q with epoch %d: %w", l.key, found.Holder, found.Epoch, stages.ErrTaken)
}

func (l *Lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.until = true, time.Time{}
}

// maxDisagreement limits the difference between the monotonic clock and the wall clock after an
// acknowledged swap. A larger difference means that the machine was suspended or its wall clock was
// set.
const maxDisagreement = 5 * time.Second

// MayWrite reports whether a request that is written now ends before the lease does. It also checks
// the store's lock.
func (l *Lease) MayWrite(now time.Time) bool { return l.remaining(now) >= l.Request }

// MayBegin is MayWrite without the check of the store's lock.
func (l *Lease) MayBegin(now time.Time) bool { return l.remainingByClocks(now) >= l.Request }

// remaining returns how much time the lease has left; zero or less means that it has ended. It also
// ends if somebody removed the file of the store's lock, because another process may then take the
// lock.
func (l *Lease) remaining(now time.Time) time.Duration {
	if lock := l.heldLock(); lock != nil && !lock.Stands() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lock == lock && !l.lost {
			l.until = l.sent
		}
		return 0
	}
	return l.remainingByClocks(now)
}

// remainingByClocks returns the remaining time of the lease by the clocks. If the two clocks
// disagree, it returns zero until the next swap is acknowledged.
func (l *Lease) remainingByClocks(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost || disagreement(l.sent, now) > maxDisagreement {
		return 0
	}
	return timeLeft(l.until, now)
}

// timeLeft returns the time from now until the end of the lease. It uses the monotonic or the wall
// clock, whichever advanced further: the monotonic clock stops while the machine is suspended, and
// the wall clock may be set back. If the wall clock is set forward, the lease ends early, and the
// next renewal restores it.
func timeLeft(until, now time.Time) time.Duration {
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// disagreement returns the difference between the time that the monotonic clock measured from one
// reading to the other, and the time that the wall clock measured.
func disagreement(from, to time.Time) time.Duration {
	return (to.Sub(from) - to.Round(0).Sub(from.Round(0))).Abs()
}

// reclaim takes the store's lock again if somebody removed the lock's file. If another process
// holds the lock now, reclaim returns nil: the next swap shows whether that process has taken the
// partition. Until then, this attempt keeps renewing the lease but has no right to fetch. The
// caller holds the mutex swapping.
func (l *Lease) reclaim() error {
	gone := l.heldLock()
	if gone == nil || gone.Stands() {
		return nil
	}
	lock, ok, err := l.locker.Lock(l.key)
	if err != nil {
		return fmt.Errorf("lock %q again: %w", l.key, err)
	}
	if !ok {
		return nil
	}
	l.log.Warn("another program removed the lock of this partition; the lock was taken again; do not change the store's own folder while the store is in use", "folder", store.Reserved)
	l.mu.Lock()
	l.lock, l.until = lock, l.sent
	l.mu.Unlock()
	gone.Release()
	return nil
}

// heldLock returns the store's lock, or nil if the store has no locks.
func (l *Lease) heldLock() store.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lock
}

// hold sets the store's lock, or removes it if lock is nil.
func (l *Lease) hold(lock store.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lock = lock
}

// isLost reports whether this attempt has lost the partition: another attempt took it, or its
// checkpoint was removed, damaged or put back.
func (l *Lease) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// renewed returns when the last acknowledged swap was sent.
func (l *Lease) renewed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}
