// Package worker makes one attempt at a task: it gathers the committed inputs, calls the stage, and
// commits the result once.
//
// A Runner takes a task and a store. The Runner stores the task's result under a fixed key, and a
// record of how the attempt ended. Pods and the local executor use the package. Any process may run
// any task at any time, and the store decides which result counts. The package imports jobs/config,
// jobs/limits, jobs/roundstate, every stage, planner and formats.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/limits"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/trace"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// Runner makes attempts at tasks.
type Runner struct {
	Bucket   store.Bucket
	Config   *config.Config
	Version  string
	Scratch  string // existing local directory, in which each attempt creates its own directory
	Clock    stages.Clock
	Log      *slog.Logger
	Progress stages.Progress
	Watcher  stages.Watcher // sees the activity of tasks; may be nil
	Reloads  *Reloads       // passes new politeness to running tasks; may be nil
	Machine  string         // name of this machine or pod; empty: the host name
	Tracer   *trace.Tracer  // traces attempts and a sample of URLs; may be nil
	Flags    string         // flags of the commands that messages name, with a space before each
	GiveUp   bool           // true: fetch tasks send no requests, and URLs without an outcome become deferred
	// Archive opens the store at an address from which a reparse reads external WARC files. If
	// Archive is nil, such tasks fail.
	Archive func(ctx context.Context, address string) (store.Bucket, error)
	// Dial opens the connections of fetch tasks in place of the network, in tests; nil in programs.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	// CPU divides the CPU time of this process among the attempts of all its Runners. If CPU is
	// nil, each attempt counts the CPU time of the whole process.
	CPU *CPU
	// Clocks are shared by the fetch tasks of this process. If Clocks is nil, each task keeps its own pace.
	Clocks *polite.Clocks
	// Witness is shared by the fetch tasks of this process. If Witness is nil, each request without an answer
	// counts against its host.
	Witness *witness.Witness
	// Shares are the task's shares of this process's limits. The zero value limits nothing.
	Shares limits.Shares

	meter   *meter           // measures the attempt; nil if the task is recomputed
	compare bool             // true: the task compares its rows with the stored parts (see Reproduce)
	sound   *manifest.Result // see Reproduce
	span    *trace.Task      // of the attempt; may be nil
}

// Run makes one attempt at a task. Run returns nil if the task has a result, even from another
// attempt. The error names the task and wraps stages.ErrInterrupted, stages.ErrPermanent,
// roundstate.ErrNotReady or the cause. Under attempts/, Run records that the attempt began, how it
// ended and what it cost.
func (r Runner) Run(ctx context.Context, t stages.Task) error {
	own, meter, stop := r.withMeter()
	defer stop()
	own.span = r.Tracer.Begin(t)
	err := attemptError(ctx, t, own.attempt(ctx, t))
	own.span.End(classOf(err), err != nil && !errors.Is(err, stages.ErrInterrupted) && !errors.Is(err, stages.ErrTaken))
	if failed := r.recordAttempt(ctx, t, err, meter); failed != nil {
		r.Log.Warn("the attempt could not be recorded", "task", t.String(), "error", failed)
	}
	return err
}

// attemptError adds the task's name to the error of an attempt. If the attempt was interrupted, it
// replaces the error by stages.ErrInterrupted, unless the error is permanent, or by the cause if the files of
// this process exceed the limit of scratch space (room.ErrLimit). It makes errors about
// damaged or differing data, or a wrong key, permanent.
func attemptError(ctx context.Context, t stages.Task, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, room.ErrLimit) && !errors.Is(err, stages.ErrPermanent) {
		return fmt.Errorf("%s: %w", t, cause)
	}
	if ctx.Err() != nil && !errors.Is(err, stages.ErrPermanent) {
		return fmt.Errorf("%s: %w", t, stages.ErrInterrupted)
	}
	for _, lasting := range []error{table.ErrDiffers, table.ErrCorrupt, manifest.ErrCorrupt, manifest.ErrChanged, manifest.ErrFormat, manifest.ErrTooLarge, takedown.ErrKey} {
		if errors.Is(err, lasting) && !errors.Is(err, stages.ErrPermanent) {
			err = fmt.Errorf("%w: %w", err, stages.ErrPermanent)
		}
	}
	if !strings.HasPrefix(err.Error(), t.String()) {
		err = fmt.Errorf("%s: %w", t, err)
	}
	return err
}

func (r Runner) attempt(ctx context.Context, t stages.Task) error {
	done, _, err := roundstate.LoadResult(ctx, r.Bucket, t)
	if err != nil || done != nil {
		return err
	}
	l, err := ledger.Load(ctx, r.Bucket, t.Crawl)
	if err != nil {
		return err
	}
	if done, err := roundstate.RecheckResult(ctx, r.Bucket, l, t); err != nil || done {
		return err
	}
	result, err := r.compute(ctx, l, t)
	if err != nil {
		return localfile.NameScratch(err, r.Scratch)
	}
	if err := r.commit(ctx, t, result); err != nil {
		return err
	}
	if r.meter != nil {
		r.meter.stored(result)
	}
	if t.Stage == stages.Fetch && !layout.IsReparse(t.Crawl) {
		segments.Sweep(ctx, r.Bucket, r.Log, t, result)
	}
	return nil
}

// ledgers returns a writer that appends to ledgers on behalf of the attempt.
func (r Runner) ledgers() ledger.Writer { return ledger.Writer{Version: r.Version, Clock: r.Clock} }

// stage runs the task's stage on its frozen inputs.
func (r Runner) stage(ctx context.Context, env *stages.Env, l *ledger.Ledger, p *manifest.Plan, t stages.Task) (*manifest.Result, error) {
	of, err := roundstate.ReparseOf(ctx, r.Bucket, t.Crawl)
	if err != nil {
		return nil, err
	}
	if t.Stage == stages.Fetch && of != nil {
		return r.reparse(ctx, env, l, of, p, t)
	}
	if t.Stage == stages.Fetch {
		env.Bucket = stages.Checked(env.Bucket, &stages.Input{Plan: p})
		return r.fetch(ctx, env, l, p, t)
	}
	frozen, err := roundstate.Freeze(ctx, r.Bucket, p, t.Stage, r.ledgers())
	if err != nil {
		return nil, err
	}
	in, err := roundstate.Gather(ctx, r.Bucket, p, t, frozen)
	if err != nil {
		return nil, err
	}
	read := in
	if r.sound != nil { // only files of other crawls are checked
		read = &stages.Input{Task: t}
		for _, s := range in.Earlier {
			if s.Crawl != t.Crawl {
				read.Earlier = append(read.Earlier, s)
			}
		}
	}
	env.Bucket = stages.Checked(env.Bucket, read)
	return r.runReduce(ctx, env, in)
}

// commit creates the result once. It also succeeds if another attempt committed the same result. A
// different committed result is a permanent error.
func (r Runner) commit(ctx context.Context, t stages.Task, result *manifest.Result) error {
	_, err := manifest.Create(ctx, r.Bucket, roundstate.ResultKey(t), result)
	if errors.Is(err, store.ErrExists) {
		return fmt.Errorf("another attempt committed another result: %w: %w", err, stages.ErrPermanent)
	}
	return err
}
