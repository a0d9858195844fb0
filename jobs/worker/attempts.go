package worker

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

// These constants limit the time for writing the record of an attempt. A task that must stop has
// little time left.
const (
	recordWithin   = 30 * time.Second
	recordStopping = 5 * time.Second
)

// createWithin limits how long one write waits for a store that does not answer. The transfer of the
// bytes may take additional time. After createWithin, the write fails, and the attempt pauses or
// ends.
const createWithin = 5 * time.Minute

// meter measures one attempt.
type meter struct {
	counter *store.Counter
	clock   stages.Clock
	began   time.Time
	machine string
	cpu     func() time.Duration // the attempt's share of the process's CPU time so far
	waited  atomic.Int64         // nanoseconds for which the attempt waited for another one that held its partition, or for the network
	epoch   atomic.Int64         // epoch with which the attempt held its partition; 0 if it held none
	rows    *int64               // number of rows in the files of the result; nil if the attempt stored no result
	begun   string               // key of the record that the attempt began; empty if there is none
}

// withMeter returns a Runner for one attempt. The Runner counts its calls to the store. The caller
// calls stop at the end of the attempt.
func (r Runner) withMeter() (own Runner, m *meter, stop func()) {
	m = &meter{counter: store.Count(store.WithLimit(r.Bucket, createWithin)), clock: r.Clock, began: r.Clock.Now(), machine: r.Machine}
	if m.machine == "" {
		m.machine, _ = os.Hostname()
	}
	m.cpu, stop = r.CPU.share()
	own = r
	own.Bucket, own.meter = m.counter, m
	return own, m, stop
}

func (m *meter) usage() manifest.Usage {
	c := m.counter.Counts()
	return manifest.Usage{
		WallMS: (m.clock.Now().Sub(m.began) - time.Duration(m.waited.Load())).Milliseconds(),
		Puts:   c.Puts, Gets: c.Gets, Lists: c.Lists, Deletes: c.Deletes, Failed: c.Failed,
		BytesRead: c.BytesIn, BytesWritten: c.BytesOut,
	}
}

// stored notes that the attempt stored a result.
func (m *meter) stored(result *manifest.Result) {
	var rows int64
	for _, f := range result.Files {
		rows += f.Rows
	}
	m.rows = &rows
}

// recordBegun records that an attempt began, so that the attempt is known even if its process is
// killed. A fetch task that waits for its partition has sent no request, so it records its beginning
// when it takes the partition, and not again after a pause. If another attempt is faster, it waits on, and
// undo removes the record, unless it is from before a pause. A failed write or removal does no harm.
func (r Runner) recordBegun(ctx context.Context, p *manifest.Plan, t stages.Task) (undo func()) {
	m := r.meter
	if m == nil || m.begun != "" {
		return func() {}
	}
	m.begun = roundstate.CreateBegun(ctx, m.counter.Unwrap(), t, &manifest.Begun{
		Header: manifest.Header{Version: r.Version}, Task: t.String(), At: m.began.UTC().Format(time.RFC3339Nano), Machine: m.machine,
	})
	return func() {
		if m.begun != "" && m.counter.Unwrap().Delete(ctx, m.begun) == nil {
			m.begun = ""
		}
	}
}

// classOf returns the class of an attempt that ended with err.
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
	// A full disk or a silent store decides the class even of an interrupted attempt, because it may
	// be why the attempt was interrupted.
	case is(store.ErrFull, syscall.ENOSPC, syscall.EDQUOT):
		return manifest.ClassDiskFull
	case is(store.ErrUnavailable):
		return manifest.ClassStoreUnavailable
	case is(stages.ErrInterrupted):
		return manifest.ClassInterrupted
	case is(manifest.ErrCorrupt, manifest.ErrChanged, manifest.ErrFormat, table.ErrCorrupt):
		return manifest.ClassCorrupt
	case is(store.ErrDenied):
		return manifest.ClassStoreDenied
	case is(stages.ErrPermanent):
		return manifest.ClassPermanent
	case is(stages.ErrFault):
		return manifest.ClassFault
	}
	return manifest.ClassFailed
}

// recordAttempt creates the next attempts/part-…-eN.json. It creates no record for an attempt that
// only waited for the previous stage, that found the task's result in the store, or whose partition
// another attempt holds. For such an attempt, it removes the record that the attempt began.
func (r Runner) recordAttempt(ctx context.Context, t stages.Task, err error, m *meter) error {
	class, within, u := classOf(err), recordWithin, m.usage()
	if ctx.Err() != nil {
		within = recordStopping
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if errors.Is(err, roundstate.ErrNotReady) || errors.Is(err, lease.ErrHeld) || err == nil && u.Puts == 0 {
		if m.begun != "" {
			return r.Bucket.Delete(ctx, m.begun)
		}
		return nil
	}
	a := manifest.Attempt{
		Header: manifest.Header{Version: r.Version}, Task: t.String(), At: r.Clock.Now().UTC().Format(time.RFC3339Nano), // the time makes each record's body unique
		Class: class, Machine: m.machine, Usage: &u,
		Began: m.began.UTC().Format(time.RFC3339Nano), Epoch: int(m.epoch.Load()), CPUMS: m.cpu().Milliseconds(), Peak: peakMemory(), Rows: m.rows,
	}
	if err != nil {
		a.Error = err.Error()
	}
	return roundstate.CreateAttempt(ctx, r.Bucket, t, &a)
}
