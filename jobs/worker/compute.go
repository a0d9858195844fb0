package worker

import (
	"context"
	"fmt"
	"os"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/overlay"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/logbound"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Compute computes a reduce task from its frozen inputs and returns the result that an attempt
// would commit, even if the task already has a result. Compute creates parts in r.Bucket, and also
// inputs.json and the start of the round if they are missing. To recompute a task, the caller
// therefore passes an overlay as r.Bucket. Fetched data cannot be computed again, so Compute returns
// stages.ErrPermanent for a fetch task, unless it belongs to a reparse.
func (r Runner) Compute(ctx context.Context, t stages.Task) (*manifest.Result, error) {
	if t.Stage == stages.Fetch && !layout.IsReparse(t.Crawl) {
		return nil, fmt.Errorf("%s: fetched data cannot be recomputed: %w", t, stages.ErrPermanent)
	}
	l, err := ledger.Load(ctx, r.Bucket, t.Crawl)
	if err != nil {
		return nil, err
	}
	return r.compute(ctx, l, t)
}

// compute runs the stage of any task. l is the ledger of the task's crawl.
func (r Runner) compute(ctx context.Context, l *ledger.Ledger, t stages.Task) (_ *manifest.Result, err error) {
	p, l, err := roundstate.BeginIn(ctx, r.Bucket, l, t.Round, r.ledgers())
	if err != nil {
		return nil, err
	}
	if t.Partition < 0 || t.Partition >= t.Stage.Tasks(p) {
		return nil, fmt.Errorf("the plan has no such partition: %s has 0 to %d: %w", t.Stage, t.Stage.Tasks(p)-1, stages.ErrPermanent)
	}
	if t.Stage != stages.Fetch || layout.IsReparse(t.Crawl) { // others begin when they take their partition
		r.recordBegun(ctx, p, t)
	}
	scratch, err := os.MkdirTemp(r.Scratch, "task-")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	// A panic in a stage fails only the task of the stage. The process continues, because it may
	// run other tasks. Goroutines of fetch tasks recover their own panics.
	defer stages.Recover(&err)
	log, end := logbound.New(r.Log.With("task", t.String()), r.Clock) // because thousands of hosts or documents may fail alike
	defer end()
	env := &stages.Env{
		Bucket: r.Bucket, Scratch: scratch, Memory: r.Shares.TaskMemory, Clock: r.Clock, Log: log, Progress: r.Progress, Watcher: r.Watcher, Trace: r.span.URL(), Dial: r.Dial, Version: r.Version, Compare: r.compare, Sound: r.sound,
	}
	if r.meter != nil {
		env.Taking = func() func() { return r.recordBegun(ctx, p, t) }
		env.Held = func(epoch int) { r.meter.epoch.Store(int64(epoch)) }
		env.Waited = func(d time.Duration) { r.meter.waited.Add(int64(d)) }
	}
	result, err := r.stage(ctx, env, l, p, t)
	if err != nil {
		return nil, err
	}
	result.Task, result.Stage, result.Partition, result.Plan = t.String(), string(t.Stage), t.Partition, p.ID
	return result, nil
}

// Reproduce recomputes a task without writing parts, so it is much faster than Recompute. Reproduce
// compares the rows of the task's tables with the stored parts, and fails if a part is missing or
// has other rows. Runs are an exception: Reproduce encodes these working files again. The returned
// result describes the stored parts.
//
// The caller may pass the task's committed result as sound if it has just compared the digests of all
// files that the documents of the crawl list. Reproduce then does not compare these digests again.
func (r Runner) Reproduce(ctx context.Context, t stages.Task, sound *manifest.Result) (*manifest.Result, error) {
	r.compare, r.sound = true, sound
	result, _, release, err := r.Recompute(ctx, t)
	if err != nil {
		return nil, err
	}
	release()
	return result, nil
}

// Recompute runs Compute on an overlay, so the store does not change. The caller can read the new
// parts from the overlay until it calls release.
func (r Runner) Recompute(ctx context.Context, t stages.Task) (_ *manifest.Result, made *overlay.Bucket, release func(), err error) {
	dir, err := os.MkdirTemp(r.Scratch, "again-")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("scratch directory: %w", err)
	}
	release = func() { _ = os.RemoveAll(dir) }
	made = overlay.New(r.Bucket, dir)
	r.Bucket = made
	result, err := r.Compute(ctx, t)
	if err != nil {
		release()
		return nil, nil, nil, err
	}
	return result, made, release, nil
}
