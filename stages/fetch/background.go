package fetch

import (
	"context"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

// This file holds the background loops of an attempt. Each loop runs until its context ends. If a
// loop returns an error, the attempt ends.

// A checkpoint writes about ten objects. In a slow crawl these objects would cost more than the
// data, so a checkpoint with few URLs waits longer than one interval.
const (
	manyURLs     = 5000             // if at least this many URLs are recorded per minute, a checkpoint waits only one interval
	maxIntervals = 10               // largest number of intervals that a checkpoint waits
	longInterval = 10 * time.Second // if the interval is shorter than this, a checkpoint waits only one interval
)

// mayWait reports whether a checkpoint may wait longer than one interval. urls is the number of URLs
// recorded since the last checkpoint.
func mayWait(every time.Duration, urls int64) bool {
	return every >= longInterval && urls < int64(manyURLs*every/time.Minute)
}

// checkpointLoop makes a checkpoint whenever one is due.
func (a *attempt) checkpointLoop(ctx context.Context) error {
	every, limit := a.cfg.Checkpoint.Every, a.cfg.Checkpoint.Bytes
	last := a.env.Clock.Now()
	if a.lease.Checkpoint().Stalled > 1 {
		// The previous attempt recorded nothing, so this one makes its first checkpoint sooner.
		last = last.Add(-every * 3 / 4)
	}
	for {
		if a.env.Clock.Sleep(ctx, min(every/10+time.Millisecond, time.Second)) != nil {
			return nil
		}
		urls, size, _ := a.log.Size()
		age := a.env.Clock.Now().Sub(last)
		short, _ := a.disk.Short(a.env.Clock.Now())
		if !(short && size > 0) && size < limit && (age < every || a.lease.Checkpoint().Stalled <= 1 && mayWait(every, urls) && size < limit/4 && age < maxIntervals*every) {
			continue
		}
		if err := a.checkpoint(ctx, nil); err != nil {
			return err
		}
		last = a.env.Clock.Now()
	}
}

// closeWindow ends fetching when the fetch window closes, so that the remaining URLs are deferred.
func (a *attempt) closeWindow(ctx context.Context) error {
	if a.cfg.Window <= 0 {
		return nil
	}
	left := a.cfg.Window - a.elapsed
	a.fetcher.sched.CloseAt(a.env.Clock.Now().Add(left))
	if a.env.Clock.Sleep(ctx, left) != nil {
		return nil
	}
	a.env.Log.Info("the fetch window has closed", "left", a.fetcher.sched.Remaining())
	a.fetcher.sched.Close()
	a.fetcher.endWaits()
	return nil
}

// reloadLoop applies new politeness settings when they arrive.
func (a *attempt) reloadLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p, ok := <-a.in.Reload:
			if !ok {
				return nil
			}
			if p.Number < int(a.revision.Load()) {
				continue // out of date; an equal number is not skipped, because the list of stopped hosts may be new
			}
			if err := p.Config.Validate(); err != nil {
				a.env.Log.Error("the new politeness settings are not applied", "error", err)
				continue
			}
			a.fetcher.reload(p.Config)
			a.revision.Store(int64(p.Number))
		}
	}
}

// mayWrite implements gate.
func (a *attempt) mayWrite(now time.Time) bool { return a.lease.MayWrite(now) }

// admit implements gate. It waits until the lease lasts long enough for a request, few enough bytes
// wait for upload, and scratch space has room.
func (a *attempt) admit(ctx context.Context) error {
	told := false
	defer func() {
		if told {
			a.roomWait.Store(nil)
		}
	}()
	for {
		_, _, waiting := a.log.Size()
		now := a.env.Clock.Now()
		short, since := a.disk.Short(now)
		if !short && waiting < 2*a.cfg.Checkpoint.Bytes && a.lease.MayBegin(now) {
			if told {
				a.env.Log.Info("the scratch directory has enough room again")
			}
			return ctx.Err()
		}
		if short && !told {
			told = true
			a.roomWait.Store(&stages.Wait{Why: "the scratch directory " + a.env.Scratch + " is nearly full: make room; the task gives up", Until: since.Add(lease.Patience)})
			a.env.Log.Warn("the scratch directory is nearly full; fetching waits for room", "directory", a.env.Scratch, "needed_bytes", a.cfg.reserve())
		}
		if short && now.Sub(since) > lease.Patience {
			if err := room.Need(a.cfg.reserve()); err != nil {
				return err // the limit of this pod leaves no room, so waiting longer does not help
			}
			return fmt.Errorf("fewer than %d bytes have been free in the scratch directory %s for %v: make room, or set TMPDIR to another file system: %w",
				a.cfg.reserve(), a.env.Scratch, lease.Patience, stages.ErrInterrupted)
		}
		if err := a.env.Clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
