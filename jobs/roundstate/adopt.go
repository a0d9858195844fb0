package roundstate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// look is the time between two reads of a checkpoint that an older version holds.
const look = time.Second

// Ready prepares a store for a command that writes. The first command that writes adopts every
// crawl of an older format, and logs each adoption. Later commands adopt only their own crawl.
// Ready returns a ledger.Lost if the store's head, active.json or the crawl's ledger is gone. A
// crawl that does not exist yet is no error.
func Ready(ctx context.Context, b store.Bucket, crawl string, w ledger.Writer, log *slog.Logger) error {
	crawls := []string{crawl}
	head, _, err := ledger.LoadHead(ctx, b)
	if err == nil && head == nil {
		crawls, err = ledger.Crawls(ctx, b)
	} else if err == nil {
		var exists bool
		if exists, err = known(ctx, b, crawl); !exists {
			crawls = nil
		}
	}
	if err != nil {
		return err
	}
	waited := false
	adopted, err := w.Adopt(ctx, b, crawls, func(ctx context.Context, a *manifest.Active) error {
		return ended(ctx, b, a, w.Clock, func() {
			if !waited {
				log.Info("waiting until the older crawlbatch that fetches has ended", "crawl", a.Crawl, "round", a.Round)
			}
			waited = true
		})
	})
	if err != nil {
		return err
	}
	for _, name := range adopted {
		log.Info("the crawl of an older crawlbatch got its ledger; older versions refuse it now", "crawl", name)
	}
	if exists, err := known(ctx, b, crawl); err != nil || !exists {
		return err
	}
	l, err := ledger.Load(ctx, b, crawl)
	if err == nil {
		err = ledger.CheckHead(ctx, b, l)
	}
	if err == nil {
		err = ledger.CheckActive(ctx, b, head)
	}
	return err
}

// known reports whether the store has a crawl. The error is a ledger.Lost if the crawl's documents
// are lost.
func known(ctx context.Context, b store.Bucket, crawl string) (bool, error) {
	_, _, err := ledger.LoadCrawl(ctx, b, crawl)
	if errors.Is(err, ErrNoCrawl) {
		return false, nil
	}
	return err == nil, err
}

// ended waits until no attempt holds a partition of the round that active.json names. ended calls
// waits before it waits.
func ended(ctx context.Context, b store.Bucket, a *manifest.Active, clock stages.Clock, waits func()) error {
	p, _, err := FindPlan(ctx, b, a.Crawl, a.Round)
	if errors.Is(err, ErrNoPlan) || errors.Is(err, ErrNoCrawl) || errors.Is(err, ledger.ErrLost) {
		return nil // without a plan, no attempt can hold a partition
	}
	if err != nil {
		return err
	}
	// All leases run out at the same time, so each pass looks at all partitions.
	held := map[string]*sighting{}
	for n := range p.Partitions {
		held[layout.Checkpoint(a.Crawl, a.Round, n)] = &sighting{}
	}
	for {
		for key, seen := range held {
			free, err := released(ctx, b, key, seen, clock)
			if err != nil {
				return err
			}
			if free {
				delete(held, key)
			}
		}
		if len(held) == 0 {
			return nil
		}
		waits()
		if err := clock.Sleep(ctx, look); err != nil {
			return stages.ErrInterrupted
		}
	}
}

// sighting is the last seen version of a checkpoint, and the time at which this version was first
// seen.
type sighting struct {
	version store.Version
	since   time.Time
}

// released reports whether no attempt holds a partition. A partition is free if its checkpoint is
// released, complete or absent, if the store's lock on the partition is free, or if the checkpoint
// has not changed for 1.1 times its lease.
func released(ctx context.Context, b store.Bucket, key string, seen *sighting, clock stages.Clock) (bool, error) {
	var c manifest.Checkpoint
	version, _, err := manifest.Load(ctx, b, key, &c)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, manifest.ErrCorrupt) {
		return true, nil
	}
	if err != nil || c.Released || c.Complete {
		return err == nil, err
	}
	if locker, locks := store.As[store.Locker](b); locks {
		lock, ok, err := locker.Lock(key)
		if ok && err == nil {
			lock.Release()
		}
		return ok, err
	}
	lease, now := time.Duration(c.LeaseMS)*time.Millisecond, clock.Now()
	if version != seen.version {
		seen.version, seen.since = version, now
	}
	return now.Sub(seen.since) >= lease+lease/10, nil
}
