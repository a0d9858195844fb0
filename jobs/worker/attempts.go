package worker

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// errFault: a stage panicked.
var errFault = errors.New("fault in the program")

// How long writing the record of an attempt may take; a task that has to stop has little
// time left.
const (
	recordWithin   = 30 * time.Second
	recordStopping = 5 * time.Second
)

// createWithin is how long an attempt goes on with one write, its bytes aside, while
// the store is away, before it is told so: it may wait, or leave it to a later one.
const createWithin = 5 * time.Minute

// meter measures one attempt.
type meter struct {
	counter *store.Counter
	clock   stages.Clock
	began   time.Time
}

// metered returns a Runner for one attempt, whose calls to the store are counted.
func (r Runner) metered() (Runner, *meter) {
	m := &meter{counter: store.Count(store.WithLimit(r.Bucket, createWithin)), clock: r.Clock, began: r.Clock.Now()}
	r.Bucket = m.counter
	return r, m
}

func (m *meter) usage() manifest.Usage {
	c := m.counter.Counts()
	return manifest.Usage{
		WallMS: m.clock.Now().Sub(m.began).Milliseconds(),
		Puts:   c.Puts, Gets: c.Gets, Lists: c.Lists, Deletes: c.Deletes, Failed: c.Failed,
		BytesRead: c.BytesIn, BytesWritten: c.BytesOut,
	}
}

// classOf is how an attempt ended that returned err.
func classOf(err error) string {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		return manifest.ClassDone
	case is(stages.ErrTaken):
		return manifest.ClassTaken
	// Of an interruption the cause matters more: a full disk, a store that is away.
	case is(store.ErrFull, syscall.ENOSPC, syscall.EDQUOT):
		return manifest.ClassDiskFull
	case is(store.ErrUnavailable):
		return manifest.ClassStoreUnavailable
	case is(stages.ErrInterrupted):
		return manifest.ClassInterrupted
	case is(manifest.ErrCorrupt, manifest.ErrNewer, table.ErrCorrupt):
		return manifest.ClassCorrupt
	case is(store.ErrDenied):
		return manifest.ClassStoreDenied
	case is(stages.ErrPermanent):
		return manifest.ClassPermanent
	case is(errFault):
		return manifest.ClassFault
	}
	return manifest.ClassFailed
}

// record creates the next attempts/part-…-eN.json. An attempt that only waited for
// the stage before, or found the task done, is none.
func (r Runner) record(ctx context.Context, t stages.Task, err error, u manifest.Usage) error {
	if errors.Is(err, roundstate.ErrNotReady) || err == nil && u.Puts == 0 {
		return nil
	}
	class, within := classOf(err), recordWithin
	if ctx.Err() != nil {
		within = recordStopping
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	machine := r.Machine
	if machine == "" {
		machine, _ = os.Hostname()
	}
	a := manifest.Attempt{
		Header: manifest.Header{Version: r.Version}, Task: t.String(), At: r.Clock.Now().UTC().Format(time.RFC3339Nano), // makes each body unique
		Class: class, Machine: machine, Usage: &u,
	}
	if err != nil {
		a.Error = err.Error()
	}
	return roundstate.CreateAttempt(ctx, r.Bucket, t, &a)
}
