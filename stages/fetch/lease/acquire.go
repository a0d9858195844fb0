package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
)

// Predecessor describes the checkpoint that an attempt finds when it acquires the partition.
type Predecessor struct {
	Exists   bool
	Released bool
	Seen     time.Time       // when this attempt first read this version of the checkpoint
	Recorded *roaring.Bitmap // planned rows that have an outcome; empty without a checkpoint
}

// ErrHeld means that another attempt fetches the partition. The error says which, and since when.
var ErrHeld = errors.New("its partition is taken")

// ErrComplete means that the fetch task is complete according to its checkpoint.
var ErrComplete = errors.New("the fetch task is complete")

// Acquire waits until the partition is free and takes it with the next epoch. If the task is
// already complete, it returns ErrComplete and a closed lease, from which the caller can read the
// checkpoint. On success the caller closes the lease.
func Acquire(ctx context.Context, env *stages.Env, opt Options) (*Lease, Predecessor, error) {
	l := &Lease{
		Options: opt, bucket: env.Bucket, key: layout.Checkpoint(opt.Task.Crawl, opt.Task.Round, opt.Task.Partition),
		clock: env.Clock, log: env.Log, watcher: env.Watcher, version: env.Version,
	}
	l.locker, _ = store.As[store.Locker](env.Bucket)
	if l.waited = env.Waited; l.waited == nil {
		l.waited = func(time.Duration) {}
	}
	for {
		untaken := func() {}
		before, err := l.wait(ctx)
		if err == nil {
			err = l.refuseLoss(ctx, before)
		}
		if err == nil {
			if env.Taking != nil {
				untaken = env.Taking()
			}
			err = l.take(ctx, before)
		}
		if err == nil {
			err = l.markTaken(ctx, before)
		}
		if err == nil {
			return l, before, nil
		}
		l.Close()
		l.hold(nil)
		if !errors.Is(err, stages.ErrTaken) {
			return l, before, err
		}
		untaken()
		l.lost, l.unsettled = false, nil // another attempt took the partition first, so this attempt waits for that attempt to end
	}
}

// remedy tells people what to do about a checkpoint that is lost, damaged or out of date. Fetching
// the partition from the start is no remedy: nobody knows which URLs were already fetched, so they
// would be fetched twice.
const remedy = "restore its last state (a version that the store keeps, or a copy made after the crawl stopped); " +
	"until then, this partition is not fetched, and no attempt deletes its files"

// refuseLoss returns an error if other objects prove that the partition's checkpoint was lost or
// replaced by an older one.
func (l *Lease) refuseLoss(ctx context.Context, before Predecessor) error {
	var evidence string
	var err error
	if before.Exists {
		evidence, err = segments.EvidenceOfPutBack(ctx, l.bucket, l.Task, &l.doc)
	} else {
		evidence, err = segments.Witness(ctx, l.bucket, l.Task, l.Plan)
	}
	if err != nil || evidence == "" {
		return err
	}
	// Another attempt may have swapped the checkpoint since this attempt read it.
	var now manifest.Checkpoint
	version, _, err := manifest.Load(ctx, l.bucket, l.key, &now)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case err == nil && version != l.stored:
		return fmt.Errorf("%q was swapped while it was compared with the partition's objects: %w", l.key, stages.ErrTaken)
	case before.Exists:
		return fmt.Errorf("%q is not the last checkpoint of the partition: %s: an older one was put back: %s: %w", l.key, evidence, remedy, stages.ErrPermanent)
	}
	return fmt.Errorf("%q is missing, but %q proves that it existed: %s: %w", l.key, evidence, remedy, stages.ErrPermanent)
}

// markTaken creates the object `taken`, which proves later that the partition has had a checkpoint.
// It runs after the first checkpoint and before the first request. If this attempt found no
// checkpoint but the object exists, somebody removed the checkpoint. In that case markTaken also
// removes the new checkpoint, so that later attempts notice the loss.
func (l *Lease) markTaken(ctx context.Context, before Predecessor) error {
	t := l.Task
	key := layout.Taken(t.Crawl, t.Round, t.Partition)
	there, err := manifest.Exists(ctx, l.bucket, key)
	if err == nil && there && !before.Exists {
		return l.untake(ctx, key)
	}
	if err != nil || there {
		return err
	}
	_, err = manifest.Create(ctx, l.bucket, key, &manifest.Taken{Header: manifest.Header{Version: l.version}, Plan: l.Plan, Partition: t.Partition})
	if errors.Is(err, store.ErrExists) {
		return nil // another version of crawlbatch created the object
	}
	return err
}

// untake removes the checkpoint that this attempt created, because the object key proves that the
// partition already had a checkpoint. If another attempt has taken the partition meanwhile, untake
// removes nothing and returns stages.ErrTaken.
func (l *Lease) untake(ctx context.Context, key string) error {
	_, version, err := l.bucket.Get(ctx, l.key, manifest.MaxBytes)
	if errors.Is(err, store.ErrNotFound) || err == nil && version != l.stored {
		return fmt.Errorf("%q was taken over by another attempt: %w", l.key, stages.ErrTaken)
	}
	if err == nil {
		err = l.bucket.Delete(ctx, l.key)
	}
	return errors.Join(fmt.Errorf("%q was removed before this attempt took the partition, as %q shows: %s: %w", l.key, key, remedy, stages.ErrPermanent), err)
}

// take swaps in a checkpoint with the next epoch. If the predecessor did not release the partition,
// it has died, and take counts its death. The exception is a predecessor that was alive: then
// somebody removed the lock file, and the new lock is not inherited.
func (l *Lease) take(ctx context.Context, before Predecessor) error {
	lock := l.heldLock()
	alive := before.Exists && !before.Released && lock != nil && !lock.Inherited()
	return l.Swap(ctx, func(d *manifest.Checkpoint) error {
		d.Version = l.version
		d.Plan, d.Partition = l.Plan, l.Task.Partition
		d.Epoch++
		d.Counter = 0
		d.Holder = l.Attempt
		d.Released = false
		d.Activity = status.Taken(l.clock.Now()) // the activity before describes the predecessor
		if !alive || d.Stalled == 0 {
			d.Stalled++
		}
		if d.Trying != nil && !alive {
			d.Suspects = countDeath(d.Suspects, *d.Trying)
		}
		d.Trying = nil
		d.LeaseMS = l.Duration.Milliseconds()
		return nil
	})
}

// wait returns when the partition may be taken. If the store has locks, the partition's lock must
// be free. Otherwise the checkpoint must be absent, or released, or unchanged for 1.1 times the
// length of a lease by this attempt's clock. That is the holder's lease or this attempt's lease,
// whichever is longer.
func (l *Lease) wait(ctx context.Context) (Predecessor, error) {
	var reason atomic.Pointer[stages.Wait]
	began, unwatch := l.clock.Now(), func() {}
	defer func() { unwatch() }()
	for first, seen := true, (time.Time{}); ; first = false {
		before, err := l.look(ctx, seen)
		if err != nil {
			return before, err
		}
		renewed := !first && before.Seen != seen
		seen = before.Seen
		lease := max(time.Duration(l.doc.LeaseMS)*time.Millisecond, l.Duration)
		expires := seen.Add(lease + lease/10)
		if l.locker != nil {
			lock, ok, err := l.locker.Lock(l.key)
			if err != nil {
				return before, fmt.Errorf("lock %q: %w", l.key, err)
			}
			if ok {
				l.hold(lock)
				return l.look(ctx, seen) // loads the checkpoint again, because the holder may have swapped it before it freed the lock
			}
			if l.IfFree {
				return before, l.heldBy()
			}
			reason.Store(&stages.Wait{Why: fmt.Sprintf("another process on this machine fetches this partition (%s); this task continues when that process ends", l.holder())})
		} else {
			if !before.Exists || before.Released || !l.clock.Now().Before(expires) {
				return before, nil
			}
			if l.IfFree && renewed {
				return before, l.heldBy()
			}
			reason.Store(&stages.Wait{
				Why: fmt.Sprintf("another attempt holds this partition (%s); unless that attempt renews its lease, this one takes over", l.holder()), Until: expires,
			})
		}
		if first {
			end := stages.Watched(l.watcher, l.Task, func() stages.Activity { return stages.Activity{Waits: []stages.Wait{*reason.Load()}} })
			unwatch = func() { end(); l.waited(l.clock.Now().Sub(began)) }
			l.log.Info("waiting: another attempt fetches this partition", "by", l.holder(), "holder", l.doc.Holder, "epoch", l.doc.Epoch)
		}
		if err := l.clock.Sleep(ctx, min(lease/20, 5*time.Second)); err != nil {
			return before, fmt.Errorf("waiting for %q: %w", l.key, stages.ErrInterrupted)
		}
	}
}

// heldBy returns an error about the attempt that holds the partition.
func (l *Lease) heldBy() error { return fmt.Errorf("%s fetches it: %w", l.holder(), ErrHeld) }

// holder names the attempt that holds the partition by the last read checkpoint.
func (l *Lease) holder() string {
	text := fmt.Sprintf("attempt %d", l.doc.Epoch)
	if a := l.doc.Activity; a != nil {
		if a.Machine != "" {
			text += " on " + a.Machine
		}
		if a.Began > 0 {
			text += " since " + time.UnixMilli(a.Began).UTC().Format(time.RFC3339)
		}
	}
	return text
}

// look loads the checkpoint. seen is the time at which this attempt first saw the current version of
// the checkpoint, or zero if it has seen none.
func (l *Lease) look(ctx context.Context, seen time.Time) (Predecessor, error) {
	var doc manifest.Checkpoint
	version, _, err := manifest.Load(ctx, l.bucket, l.key, &doc)
	absent := errors.Is(err, store.ErrNotFound)
	if err == nil {
		err = doc.Check()
		if err != nil {
			err = fmt.Errorf("%q: %w", l.key, err)
		}
	}
	if errors.Is(err, manifest.ErrCorrupt) {
		return Predecessor{}, fmt.Errorf("%w: %s", err, remedy)
	}
	if err != nil && !absent {
		return Predecessor{}, err
	}
	if seen.IsZero() || version != l.stored {
		seen = l.clock.Now()
	}
	l.doc, l.stored = doc, version
	before := Predecessor{Exists: !absent, Released: doc.Released, Seen: seen}
	if !absent && (doc.Plan != l.Plan || doc.Partition != l.Task.Partition) {
		return before, fmt.Errorf("%q belongs to partition %d of plan %q, but the round was started with partition %d of plan %q: %s: %w",
			l.key, doc.Partition, doc.Plan, l.Task.Partition, l.Plan, remedy, stages.ErrPermanent)
	}
	if before.Recorded, err = doc.RecordedRows(); err != nil {
		return before, fmt.Errorf("%q: %w", l.key, err)
	}
	if doc.Complete {
		return before, ErrComplete
	}
	return before, nil
}
