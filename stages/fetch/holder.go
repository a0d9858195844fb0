package fetch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// holder is an attempt's hold on its partition: the checkpoint object, whose
// swaps alone decide who fetches and what counts. Its methods may be called by
// several goroutines at a time.
type holder struct {
	bucket  store.Bucket
	key     string
	clock   stages.Clock
	log     *slog.Logger
	watcher stages.Watcher // may be nil
	task    stages.Task
	lease   time.Duration
	total   time.Duration // of one request
	unlock  func()        // of the store's lock, if it has locks

	swapping  sync.Mutex // held while a swap is under way
	doc       manifest.Checkpoint
	version   store.Version
	unsettled *manifest.Checkpoint // sent, and not known to have been swapped in
	first     time.Time            // when it was sent first

	mu    sync.Mutex
	until time.Time // the right's end; zero once it is lost
	sent  time.Time // when the last acknowledged swap was sent
	lost  bool
}

// predecessor is what a new holder finds.
type predecessor struct {
	exists   bool
	released bool
	seen     time.Time // when this attempt saw its checkpoint first
	recorded *roaring.Bitmap
}

// errComplete: the task's checkpoint says that it is complete.
var errComplete = errors.New("the fetch task is complete")

// takeOver waits until the partition is free and takes it with the next epoch. It
// returns errComplete, with the checkpoint in the holder, when nothing is left to
// do.
func takeOver(ctx context.Context, env *stages.Env, task stages.Task, plan string, attempt string, cfg *Config) (*holder, predecessor, error) {
	h := &holder{
		bucket: env.Bucket, key: layout.Checkpoint(task.Crawl, task.Round, task.Partition), clock: env.Clock, log: env.Log,
		watcher: env.Watcher, task: task,
		lease: cfg.Checkpoint.Lease, total: cfg.Timeouts.Total, unlock: func() {},
	}
	for {
		before, err := h.wait(ctx, plan)
		if err != nil {
			return h, before, err
		}
		if !before.exists {
			if err := h.refuseGap(ctx, task, plan); err != nil {
				h.unlock()
				return h, before, err
			}
		}
		err = h.take(ctx, env.Version, plan, task.Partition, attempt)
		if err == nil {
			return h, before, nil
		}
		h.unlock()
		h.unlock = func() {}
		if !errors.Is(err, stages.ErrTaken) {
			return h, before, err
		}
		h.lost, h.unsettled = false, nil // another was faster: stand by for it
	}
}

// refuseGap refuses a partition whose checkpoint is gone: an attempt has one before
// it writes anything else.
func (h *holder) refuseGap(ctx context.Context, task stages.Task, plan string) error {
	for o, err := range h.bucket.List(ctx, layout.FetchDir(task.Crawl, task.Round, task.Partition)+"segments/"+plan+"-") {
		if err != nil {
			return fmt.Errorf("list segments: %w", err)
		}
		// Another attempt may have taken the partition since it was looked at.
		if there, err := manifest.Exists(ctx, h.bucket, h.key); err != nil || there {
			return err
		}
		return fmt.Errorf("%q is gone, though %q was written under it: restore it from a copy, or what was fetched is fetched again once the partition's folder and WARC files are removed: %w",
			h.key, o.Key, stages.ErrPermanent)
	}
	return nil
}

// take swaps in the next epoch.
func (h *holder) take(ctx context.Context, version, plan string, partition int, attempt string) error {
	next := h.doc
	next.Version = version
	next.Plan, next.Partition = plan, partition
	next.Epoch++
	next.Counter = 0
	next.Holder = attempt
	next.Released = false
	next.Stalled++
	if next.Trying != nil {
		next.Suspects = accuse(next.Suspects, *next.Trying)
		next.Trying = nil
	}
	next.LeaseMS = h.lease.Milliseconds()
	return h.swap(ctx, func(d *manifest.Checkpoint) error { *d = next; return nil })
}

// wait stands by until the partition may be taken: its checkpoint is absent or
// released, the store's lock on it is free, or it has not changed for its holder's
// lease and a tenth on this attempt's own clock.
func (h *holder) wait(ctx context.Context, plan string) (predecessor, error) {
	locker, locks := store.As[store.Locker](h.bucket)
	var seen time.Time
	var standing held
	unwatch := func() {}
	defer func() { unwatch() }()
	for first := true; ; first = false {
		var doc manifest.Checkpoint
		version, _, err := manifest.Load(ctx, h.bucket, h.key, &doc)
		absent := errors.Is(err, store.ErrNotFound)
		if err != nil && !absent {
			return predecessor{}, err
		}
		now := h.clock.Now()
		if first || version != h.version {
			seen = now
		}
		h.doc, h.version = doc, version
		before := predecessor{exists: !absent, released: doc.Released, seen: seen}
		if !absent {
			if before.recorded, err = h.check(&doc, plan); err != nil {
				return before, err
			}
			if doc.Complete {
				return before, errComplete
			}
		}
		free := absent || doc.Released
		if locks {
			unlock, ok, err := locker.Lock(h.key)
			if err != nil {
				return before, fmt.Errorf("lock %q: %w", h.key, err)
			}
			if ok {
				// Its holder may have swapped before it died: look again, locked.
				latest, _, err := manifest.Load(ctx, h.bucket, h.key, &manifest.Checkpoint{})
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					unlock()
					return before, err
				}
				if latest == version {
					h.unlock = unlock
					return before, nil
				}
				unlock()
				continue
			}
			free = false
		}
		lease := max(time.Duration(doc.LeaseMS)*time.Millisecond, h.lease)
		if free || !locks && now.Sub(seen) >= lease+lease/10 {
			return before, nil
		}
		if locks {
			standing.set("another process of this machine fetches this partition; gone on with when it ends", time.Time{})
		} else {
			standing.set(fmt.Sprintf("another attempt holds this partition (epoch %d); unless it renews its lease, taken over", doc.Epoch), seen.Add(lease+lease/10))
		}
		if first {
			unwatch = stages.Watched(h.watcher, h.task, standing.activity)
			h.log.Info("standing by: another attempt fetches this partition", "holder", doc.Holder, "epoch", doc.Epoch)
		}
		if err := h.clock.Sleep(ctx, min(lease/20, 5*time.Second)); err != nil {
			return before, fmt.Errorf("standing by for %q: %w", h.key, stages.ErrInterrupted)
		}
	}
}

// check refuses a checkpoint that is not of the plan, and reads its bitmap.
func (h *holder) check(doc *manifest.Checkpoint, plan string) (*roaring.Bitmap, error) {
	if doc.Plan != plan {
		return nil, fmt.Errorf("%q is of plan %q, the round was started with %q: remove it only if you know that nothing of it is needed: %w",
			h.key, doc.Plan, plan, stages.ErrPermanent)
	}
	rows, err := doc.RecordedRows()
	if err != nil {
		return nil, fmt.Errorf("%q: %w", h.key, err)
	}
	return rows, nil
}

// swap changes the checkpoint. After an error that says that the store did not
// answer, the change may have been made or not; the next swap, of whatever, settles
// that first, by the same bytes. An error that wraps stages.ErrTaken says that
// another attempt has the checkpoint: this one stops for good.
func (h *holder) swap(ctx context.Context, change func(*manifest.Checkpoint) error) error {
	h.swapping.Lock()
	defer h.swapping.Unlock()
	if h.unsettled != nil {
		if err := h.send(ctx); err != nil {
			return err
		}
	}
	next := h.doc
	if err := change(&next); err != nil {
		return err
	}
	next.Counter++
	h.unsettled, h.first = &next, h.clock.Now()
	return h.send(ctx)
}

// send swaps the unsettled checkpoint in. It stays unsettled if no answer comes.
// The right runs from when it was sent first, since that may be what took effect.
// The caller holds swapping.
func (h *holder) send(ctx context.Context) error {
	next := h.unsettled
	version, err := manifest.Swap(ctx, h.bucket, h.key, next, h.version)
	if errors.Is(err, manifest.ErrTooLarge) {
		h.unsettled = nil // it was not sent
		return fmt.Errorf("%q: %w", h.key, err)
	}
	if errors.Is(err, store.ErrConflict) {
		var found manifest.Checkpoint
		v, _, lerr := manifest.Load(ctx, h.bucket, h.key, &found)
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		if found.Epoch != next.Epoch || found.Holder != next.Holder || found.Counter != next.Counter {
			h.lose()
			return fmt.Errorf("%q was taken over by %q with epoch %d: %w", h.key, found.Holder, found.Epoch, stages.ErrTaken)
		}
		version, err = v, nil // it was this swap whose answer was lost
	}
	if err != nil {
		return err
	}
	h.doc, h.version, h.unsettled = *next, version, nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.lost {
		h.sent, h.until = h.first, h.first.Add(h.lease)
	}
	return nil
}

func (h *holder) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost, h.until = true, time.Time{}
}

// mayWrite reports whether a request that is written now ends within the right.
func (h *holder) mayWrite(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lost && left(h.until, now) >= h.total
}

// left is how long it is from now until a time, by the monotonic or by the wall
// clock, whichever has gone on further: the monotonic clock stands still while the
// machine is suspended, the wall clock may be set back. One that is set forward
// only ends the right early, and it is renewed.
func left(until, now time.Time) time.Duration {
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// ends is when the right ends, unless it is renewed; zero once it is lost.
func (h *holder) ends() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// recorded reads the rows that are recorded.
func (h *holder) recorded() (*roaring.Bitmap, error) {
	h.swapping.Lock()
	defer h.swapping.Unlock()
	return h.check(&h.doc, h.doc.Plan)
}

func (h *holder) suspects() []manifest.Suspect {
	h.swapping.Lock()
	defer h.swapping.Unlock()
	return h.doc.Suspects
}

// stalled is how many attempts in a row, this one included, have recorded nothing.
func (h *holder) stalled() int {
	h.swapping.Lock()
	defer h.swapping.Unlock()
	return h.doc.Stalled
}

// renewed is when the last acknowledged swap was sent.
func (h *holder) renewed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent
}
