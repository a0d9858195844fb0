package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// Predecessor is the checkpoint that a new holder finds.
type Predecessor struct {
	Exists   bool
	Released bool
	Seen     time.Time       // when this attempt first saw it
	Recorded *roaring.Bitmap // planned rows that have an outcome; empty without a checkpoint
}

// ErrComplete means that the checkpoint says that the task is complete.
var ErrComplete = errors.New("the fetch task is complete")

// Acquire waits until the partition is free and takes it with the next epoch. If nothing is
// left to do, it returns ErrComplete and a lease that has the checkpoint. Close the lease
// if there is no error.
func Acquire(ctx context.Context, env *stages.Env, opt Options) (*Lease, Predecessor, error) {
	l := &Lease{
		Options: opt, bucket: env.Bucket, key: layout.Checkpoint(opt.Task.Crawl, opt.Task.Round, opt.Task.Partition),
		clock: env.Clock, log: env.Log, watcher: env.Watcher, version: env.Version,
	}
	l.locker, _ = store.As[store.Locker](env.Bucket)
	for {
		before, err := l.wait(ctx)
		if err == nil && !before.Exists {
			err = l.refuseGap(ctx)
		}
		if err == nil {
			err = l.take(ctx)
		}
		if err == nil {
			return l, before, nil
		}
		l.Close()
		l.hold(nil)
		if !errors.Is(err, stages.ErrTaken) {
			return l, before, err
		}
		l.lost, l.unsettled = false, nil // another attempt was faster: stand by for it
	}
}

// refuseGap refuses a partition whose checkpoint is lost. Other files prove the loss,
// because an attempt writes a checkpoint before anything else.
func (l *Lease) refuseGap(ctx context.Context) error {
	t := l.Task
	for o, err := range l.bucket.List(ctx, layout.FetchDir(t.Crawl, t.Round, t.Partition)+"segments/"+l.Plan+"-") {
		if err != nil {
			return fmt.Errorf("list segments: %w", err)
		}
		// Another attempt may have taken the partition since this one looked.
		if there, err := manifest.Exists(ctx, l.bucket, l.key); err != nil || there {
			return err
		}
		return fmt.Errorf("%q is gone, though %q was written under it: restore it from a copy, or what was fetched is fetched again once the partition's folder and WARC files are removed: %w",
			l.key, o.Key, stages.ErrPermanent)
	}
	return nil
}

// take swaps in the next epoch.
func (l *Lease) take(ctx context.Context) error {
	return l.Swap(ctx, func(d *manifest.Checkpoint) error {
		d.Version = l.version
		d.Plan, d.Partition = l.Plan, l.Task.Partition
		d.Epoch++
		d.Counter = 0
		d.Holder = l.Attempt
		d.Released = false
		d.Stalled++
		if d.Trying != nil {
			d.Suspects = countDeath(d.Suspects, *d.Trying)
			d.Trying = nil
		}
		d.LeaseMS = l.Duration.Milliseconds()
		return nil
	})
}

// wait stands by until the partition may be taken. It may be taken if its checkpoint is
// absent or released, if the store's lock on it is free, or if the checkpoint has not
// changed for the holder's lease and a tenth, by this attempt's own clock.
func (l *Lease) wait(ctx context.Context) (Predecessor, error) {
	var standing atomic.Pointer[stages.Wait]
	unwatch := func() {}
	defer func() { unwatch() }()
	for first, seen := true, (time.Time{}); ; first = false {
		before, err := l.look(ctx, seen)
		if err != nil {
			return before, err
		}
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
				return l.look(ctx, seen) // its holder may have swapped before it died
			}
			standing.Store(&stages.Wait{Why: "another process of this machine fetches this partition; gone on with when it ends"})
		} else {
			if !before.Exists || before.Released || !l.clock.Now().Before(expires) {
				return before, nil
			}
			standing.Store(&stages.Wait{
				Why: fmt.Sprintf("another attempt holds this partition (epoch %d); unless it renews its lease, taken over", l.doc.Epoch), Until: expires,
			})
		}
		if first {
			unwatch = stages.Watched(l.watcher, l.Task, func() stages.Activity { return stages.Activity{Waits: []stages.Wait{*standing.Load()}} })
			l.log.Info("standing by: another attempt fetches this partition", "holder", l.doc.Holder, "epoch", l.doc.Epoch)
		}
		if err := l.clock.Sleep(ctx, min(lease/20, 5*time.Second)); err != nil {
			return before, fmt.Errorf("standing by for %q: %w", l.key, stages.ErrInterrupted)
		}
	}
}

// look loads the checkpoint. seen is when this attempt first saw the version that l has;
// zero means that l has none.
func (l *Lease) look(ctx context.Context, seen time.Time) (Predecessor, error) {
	var doc manifest.Checkpoint
	version, _, err := manifest.Load(ctx, l.bucket, l.key, &doc)
	absent := errors.Is(err, store.ErrNotFound)
	if err != nil && !absent {
		return Predecessor{}, err
	}
	if seen.IsZero() || version != l.stored {
		seen = l.clock.Now()
	}
	l.doc, l.stored = doc, version
	before := Predecessor{Exists: !absent, Released: doc.Released, Seen: seen}
	if !absent && doc.Plan != l.Plan {
		return before, fmt.Errorf("%q is of plan %q, the round was started with %q: remove it only if you know that nothing of it is needed: %w",
			l.key, doc.Plan, l.Plan, stages.ErrPermanent)
	}
	if before.Recorded, err = doc.RecordedRows(); err != nil {
		return before, fmt.Errorf("%q: %w", l.key, err)
	}
	if doc.Complete {
		return before, ErrComplete
	}
	return before, nil
}

// deadly is how many attempts must die at the same thing before it is quarantined.
const deadly = 3

// countDeath counts the death of an attempt at what it was trying.
func countDeath(suspects []manifest.Suspect, at manifest.Trying) []manifest.Suspect {
	suspects = slices.Clone(suspects)
	for i := range suspects {
		if suspects[i].Trying == at {
			suspects[i].Deaths++
			return suspects
		}
	}
	return append(suspects, manifest.Suspect{Trying: at, Deaths: 1})
}

// Quarantined reports whether so many attempts died at a suspect that it is not tried again.
func Quarantined(s manifest.Suspect) bool { return s.Deaths >= deadly }
