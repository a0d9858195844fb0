package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// What runs beside the crawl until its context ends. An error ends the attempt.

// glance is the longest that who waits for a moment of the lease sleeps until it
// looks again: what measures sleep stands still while the machine is suspended.
const glance = time.Second

// renew swaps the checkpoint with nothing new but the attempt's activity, so that the right goes on while nothing is
// checkpointed or an upload takes long.
func (a *attempt) renew(ctx context.Context) error {
	every := a.cfg.Checkpoint.Lease / 3
	failed := 0
	for {
		due := a.holder.renewed().Add(every)
		if wait := left(due, a.env.Clock.Now()); wait > 0 {
			if err := a.env.Clock.Sleep(ctx, min(wait, glance)); err != nil {
				return nil //nolint:nilerr // the attempt has ended
			}
			continue // a checkpoint may have been swapped meanwhile
		}
		err := a.holder.swap(ctx, func(d *manifest.Checkpoint) error { a.tell(d); return nil })
		switch {
		case err == nil:
			if failed > telling {
				a.env.Log.Info("the lease is renewed again")
			}
			failed = 0
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull):
			// Nothing is written once the right has run out; it may come back.
			if a.env.Clock.Now().Sub(a.holder.renewed()) > a.cfg.Checkpoint.Lease+patience {
				return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
			}
			if failed++; failed == telling+1 {
				a.env.Log.Warn("the lease could not be renewed; it is tried again", "error", err)
			}
			if a.env.Clock.Sleep(ctx, max(every/10, 100*time.Millisecond)) != nil {
				return nil
			}
		default:
			return err
		}
	}
}

// lapses aborts the requests in flight when the right ends without having been
// renewed: those that a paused process wakes up with, since none is begun that
// could last so long.
func (a *attempt) lapses(ctx context.Context, f *flights) error {
	for {
		until := a.holder.ends()
		if until.IsZero() {
			return nil // lost: the attempt ends
		}
		if wait := left(until, a.env.Clock.Now()); wait > 0 {
			if err := a.env.Clock.Sleep(ctx, min(wait, glance)); err != nil {
				return nil //nolint:nilerr // the attempt has ended
			}
			continue // it may have been renewed meanwhile
		}
		a.env.Log.Warn("the right to fetch has run out: requests in flight are aborted, fetching waits for it")
		f.land()
		for !a.holder.ends().After(until) {
			if a.env.Clock.Sleep(ctx, 100*time.Millisecond) != nil {
				return nil
			}
		}
	}
}

// A checkpoint of fewer URLs than worthwhile, for each minute of the interval, is
// put off, up to stretch times the interval: it is about ten objects, and a slow
// crawl would cost the store more for them than for its data. Who asks for an
// interval below patientFrom has it kept.
const (
	worthwhile  = 5000
	stretch     = 10
	patientFrom = 10 * time.Second
)

// putOff reports whether a checkpoint of so many URLs may wait, with the interval
// over but not yet stretched.
func putOff(every time.Duration, urls int64) bool {
	return every >= patientFrom && urls < int64(worthwhile*every/time.Minute)
}

// checkpoints makes checkpoints when they are due.
func (a *attempt) checkpoints(ctx context.Context) error {
	every, limit := a.cfg.Checkpoint.Every, a.cfg.Checkpoint.Bytes
	last := a.env.Clock.Now()
	if a.holder.stalled() > 1 {
		// Whatever ended the attempt before, this one leaves something sooner.
		last = last.Add(-every * 3 / 4)
	}
	for {
		if a.env.Clock.Sleep(ctx, min(every/10+time.Millisecond, time.Second)) != nil {
			return nil
		}
		urls, size, _ := a.log.Size()
		age := a.env.Clock.Now().Sub(last)
		short, _ := a.disk.isShort(a.env.Clock.Now())
		if !(short && size > 0) && size < limit && (age < every || a.holder.stalled() <= 1 && putOff(every, urls) && size < limit/4 && age < stretch*every) {
			continue
		}
		if err := a.checkpoint(ctx, nil); err != nil {
			return err
		}
		last = a.env.Clock.Now()
	}
}

// closeWindow ends fetching when the window closes; what is left is deferred.
func (a *attempt) closeWindow(ctx context.Context) error {
	if a.cfg.Window <= 0 {
		return nil
	}
	left := a.cfg.Window - a.elapsed
	a.crawl.sched.CloseAt(a.env.Clock.Now().Add(left))
	if a.env.Clock.Sleep(ctx, left) != nil {
		return nil
	}
	a.env.Log.Info("the fetch window has closed", "left", a.crawl.sched.Left())
	a.crawl.sched.Close()
	return nil
}

// reloads takes new politeness as it comes.
func (a *attempt) reloads(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p, ok := <-a.in.Reload:
			if !ok {
				return nil
			}
			if p.Number <= int(a.revision.Load()) && p.Number > 0 {
				continue // the attempt before had it already, or a newer one
			}
			if err := p.Config.Validate(); err != nil {
				a.env.Log.Error("the new politeness is not taken", "error", err)
				continue
			}
			a.crawl.reload(p.Config)
			a.revision.Store(int64(p.Number))
		}
	}
}

// admit waits while nothing may be begun: the right is about to run out, what was
// recorded does not get to the store as fast as it comes, or scratch space is
// nearly full.
func (a *attempt) admit(ctx context.Context) error {
	told := false
	defer func() {
		if told {
			a.held.clear()
		}
	}()
	for {
		_, _, waiting := a.log.Size()
		now := a.env.Clock.Now()
		short, since := a.disk.isShort(now)
		if !short && waiting < 2*a.cfg.Checkpoint.Bytes && a.holder.mayWrite(now) {
			if told {
				a.env.Log.Info("there is room again")
			}
			return ctx.Err()
		}
		if short && !told {
			told = true
			a.held.set("the scratch directory "+a.env.Scratch+" is nearly full: make room; given up", since.Add(patience))
			a.env.Log.Warn("the scratch directory is nearly full; fetching waits for room", "directory", a.env.Scratch, "needed_bytes", a.disk.reserve)
		}
		if short && now.Sub(since) > patience {
			return fmt.Errorf("less than %d bytes are free in the scratch directory %s since %v: make room, or set TMPDIR to another file system: %w",
				a.disk.reserve, a.env.Scratch, patience, stages.ErrInterrupted)
		}
		if err := a.env.Clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
