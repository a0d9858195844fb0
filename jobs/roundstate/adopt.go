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

// pollInterval is the pause between two reads of a checkpoint while waitForAttempts waits for an
// attempt of an older version.
const pollInterval = time.Second

// Ready prepares a store for a command that writes. The first such command adopts every crawl of an
// older format, and logs the adoption. Later commands adopt only their own crawl. Ready returns the
// crawl's ledger, or nil for a crawl that does not exist yet. The error is a ledger.Lost error if
// the store's head, active.json or the crawl's ledger is gone.
func Ready(ctx context.Context, b store.Bucket, crawl string, w ledger.Writer, log *slog.Logger) (*ledger.Ledger, error) {
	head, _, err := ledger.LoadHead(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	l, unadopted, err := read(ctx, b, head, crawl)
	if err != nil {
		return nil, err
	}
	if head == nil || unadopted {
		crawls := []string{crawl}
		if head == nil {
			if crawls, err = ledger.Crawls(ctx, b); err != nil {
				return nil, err
			}
		}
		if err := adopt(ctx, b, crawls, w, log); err != nil {
			return nil, err
		}
		if head, _, err = ledger.LoadHead(ctx, b, crawl); err != nil {
			return nil, err
		}
		if l, _, err = read(ctx, b, head, crawl); err != nil {
			return nil, err
		}
	}
	if l != nil && ledger.CheckHead(l, head) != nil {
		// A `plan` command may have added the crawl to the head after Ready read the head.
		if head, _, err = ledger.LoadHead(ctx, b, crawl); err == nil {
			err = ledger.CheckHead(l, head)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, ledger.CheckActive(ctx, b, head, crawl)
}

// read reads the ledger of a crawl, and reports whether the crawl still has to be adopted. For a
// crawl that does not exist yet, the ledger is nil.
func read(ctx context.Context, b store.Bucket, head *manifest.Crawls, crawl string) (l *ledger.Ledger, unadopted bool, err error) {
	m, _, err := ledger.LoadCrawl(ctx, b, crawl)
	if errors.Is(err, ErrNoCrawl) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if l, err = ledger.Load(ctx, b, crawl); err != nil {
		return nil, false, err
	}
	return l, l.Unadopted(m, head), nil
}

// adopt creates the ledger of each listed crawl that has an older format, and logs the adoption.
func adopt(ctx context.Context, b store.Bucket, crawls []string, w ledger.Writer, log *slog.Logger) error {
	waited := false
	adopted, err := w.Adopt(ctx, b, crawls, func(ctx context.Context, a *manifest.Active) error {
		return waitForAttempts(ctx, b, a, w.Clock, func() {
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
	return nil
}

// waitForAttempts waits until no attempt holds a partition of the round that active.json names. It
// calls waits before each pause.
func waitForAttempts(ctx context.Context, b store.Bucket, a *manifest.Active, clock stages.Clock, waits func()) error {
	p, _, err := FindPlan(ctx, b, a.Crawl, a.Round)
	if errors.Is(err, ErrNoPlan) || errors.Is(err, ErrNoCrawl) || errors.Is(err, ledger.ErrLost) {
		return nil // without a plan, no attempt can hold a partition
	}
	if err != nil {
		return err
	}
	// The leases of dead attempts run out at about the same time, so each pass looks at all partitions.
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
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return stages.ErrInterrupted
		}
	}
}

// sighting is the version of a checkpoint at the last read, and the time of the first read that
// found this version.
type sighting struct {
	version store.Version
	since   time.Time
}

// released reports whether no attempt holds the partition whose checkpoint has the given key. The
// partition is free in any of these cases: its checkpoint is released, complete, damaged or absent;
// the store's lock on the partition is free; the checkpoint has not changed for 1.1 times its
// lease.
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
