package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/forget"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// Input is the input of a fetch task.
type Input struct {
	Task stages.Task
	Plan *manifest.Plan
	// Politeness is the revision of the politeness config, or 0 if none was ever stored.
	Politeness int
	// Reload receives new politeness settings while the task runs. It may be nil.
	Reload <-chan Revision
	// Before holds results of the previous round's fetch tasks, at least of all tasks that know
	// hosts of this partition. The task reads from them the remaining waits of hosts, and of their
	// files only the working files `robots` (rules) and `sitemaps`.
	Before []*manifest.Result
	// OptedOut reports whether a URL, sent as in sent unless that is "", must not be requested. The plan has no such URLs, but
	// redirects may lead to them. A nil OptedOut allows every URL.
	OptedOut func(url, sent string) bool
	// Gone recognizes URLs that were taken down. No row names such a URL. A nil Gone recognizes none.
	Gone *takedown.Guard
	// Clocks are shared with the other fetch tasks of the process. They may be nil.
	Clocks *polite.Clocks
	// Witness is shared with the other fetch tasks of the process. If it is nil, every request without an answer
	// counts against its host.
	Witness *witness.Witness
	// Parsing is a semaphore that fetch tasks of the process share: each goroutine that compresses or parses holds one of
	// its slots. If Parsing is nil, the task has a slot for each CPU.
	Parsing chan struct{}
	// GiveUp stops all fetching. URLs without an outcome are then deferred. If another attempt fetches the
	// partition, Run fails with lease.ErrHeld.
	GiveUp bool
}

// Revision is a revision of the politeness config.
type Revision struct {
	Number int // number of the revision, from 1
	Config polite.Config
}

// Run continues a partition from its checkpoint and returns the result, which depends only on the
// last checkpoint. When ctx ends, Run starts no more requests, uploads its records, releases the
// partition and returns stages.ErrInterrupted. Other errors may wrap stages.ErrTaken or
// stages.ErrPermanent.
func Run(ctx context.Context, env *stages.Env, in *Input, cfg Config, parser document.Parser) (*manifest.Result, error) {
	return runWith(ctx, env, in, cfg, parser, hooks{})
}

func runWith(ctx context.Context, env *stages.Env, in *Input, cfg Config, parser document.Parser, h hooks) (*manifest.Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", in.Task, err, stages.ErrPermanent)
	}
	result, err := run(ctx, env, in, cfg, parser, h)
	if err := segments.ScratchError(err, env.Scratch); err != nil {
		return nil, fmt.Errorf("%s: %w", in.Task, err)
	}
	return result, nil
}

func run(ctx context.Context, env *stages.Env, in *Input, cfg Config, parser document.Parser, h hooks) (*manifest.Result, error) {
	if err := checkClock(ctx, env.Bucket); err != nil {
		return nil, err
	}
	if err := room.Need(cfg.reserve()); err != nil { // with so little scratch space, admit would admit no request
		return nil, err
	}
	l, before, err := lease.Acquire(ctx, env, leaseOptions(in, &cfg))
	if errors.Is(err, lease.ErrComplete) {
		return result(l, in)
	}
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if env.Held != nil {
		env.Held(l.Position().Epoch)
	}
	p, err := partition.Load(ctx, env.Bucket, &in.Plan.Partitions[in.Task.Partition], env.Scratch)
	if err != nil {
		return nil, handBack(ctx, env, &cfg, l, before, err)
	}
	defer p.Close() //nolint:errcheck // scratch
	a, err := newAttempt(env, in, cfg, l, p, parser, h)
	if err != nil {
		return nil, handBack(ctx, env, &cfg, l, before, err)
	}
	defer a.close()
	if err := a.resume(ctx, before); err != nil {
		return nil, handBack(ctx, env, &cfg, l, before, err)
	}
	if env.Waited != nil {
		lost := in.Witness.Lost()
		defer func() { env.Waited(in.Witness.Lost() - lost) }()
	}
	if err := a.fetch(ctx); err != nil {
		return nil, err
	}
	return result(l, in)
}

func leaseOptions(in *Input, cfg *Config) lease.Options {
	return lease.Options{Task: in.Task, Plan: in.Plan.ID, Attempt: uuid.NewString(), Duration: cfg.Checkpoint.Lease, Request: cfg.Timeouts.Total, IfFree: in.GiveUp}
}

// newAttempt makes an attempt that holds the lease l. The caller closes the attempt.
func newAttempt(env *stages.Env, in *Input, cfg Config, l *lease.Lease, p *partition.Index, parser document.Parser, h hooks) (*attempt, error) {
	doc := l.Checkpoint()
	read := &stages.Input{Task: in.Task, Results: map[stages.Stage][]*manifest.Result{stages.Fetch: append([]*manifest.Result{{Files: doc.Files}}, in.Before...)}}
	a := &attempt{
		env: env, in: in, cfg: cfg, lease: l, inputs: stages.Checked(env.Bucket, read), began: env.Clock.Now(), elapsed: time.Duration(doc.ElapsedMS) * time.Millisecond,
		disk: segments.NewDisk(env.Scratch, cfg.reserve(), h.free),
		log: segments.NewLog(segments.Options{
			Task: in.Task, Plan: in.Plan.ID, Epoch: doc.Epoch, Scratch: env.Scratch, Version: env.Version,
			UserAgent: cfg.UserAgent, Clock: env.Clock, Follows: l.Position,
		}),
	}
	f, err := newFetcher(env, cfg, options{
		parser: parser, index: p, sink: forget.Sink(a.log, in.Gone), gate: a, epoch: doc.Epoch, segment: layout.Part(in.Task.Partition),
		deferAll: in.GiveUp, barred: in.OptedOut, clocks: in.Clocks, witness: in.Witness, parsing: in.Parsing, hooks: h,
	})
	a.fetcher = f
	return a, err
}

// close releases connections and scratch space, and subtracts the URLs without an outcome from the
// progress.
func (a *attempt) close() {
	a.addQueued(-a.queued)
	a.fetcher.close()
	a.log.Abort()
}

// maxSkew is the largest difference allowed between this machine's clock and the store's.
const maxSkew = time.Minute

// checkClock returns an error if this machine's clock differs too much from the store's, because
// the times in the tables would be wrong. It returns nil if the store has no clock.
func checkClock(ctx context.Context, b store.Bucket) error {
	d, ok := store.As[store.Dater](b)
	if !ok {
		return nil
	}
	skew, err := d.Skew(ctx)
	if err != nil {
		return fmt.Errorf("compare clocks with %s: %w", b, err)
	}
	if skew.Abs() > maxSkew {
		return fmt.Errorf("this machine's clock differs by %v from that of %s, but at most %v is allowed: set the clock: %w", skew.Round(time.Second), b, maxSkew, stages.ErrPermanent)
	}
	return nil
}

// result returns the task's result: everything that the task's last checkpoint lists.
func result(l *lease.Lease, in *Input) (*manifest.Result, error) {
	doc := l.Checkpoint()
	rows, err := doc.RecordedRows()
	if err != nil {
		return nil, fmt.Errorf("%q: %w", l.Key(), err)
	}
	if urls := in.Plan.Partitions[in.Task.Partition].URLs; !doc.Complete || int64(rows.GetCardinality()) != urls {
		return nil, fmt.Errorf("%q lists %d outcomes of %d URLs, complete=%t: %w", l.Key(), rows.GetCardinality(), urls, doc.Complete, manifest.ErrCorrupt)
	}
	return &manifest.Result{
		Header: manifest.Header{Version: doc.Version}, Task: in.Task.String(), Stage: string(in.Task.Stage),
		Partition: in.Task.Partition, Plan: in.Plan.ID, Counts: doc.Counts, Files: doc.Files,
		Hosts: doc.Hosts, Answerers: doc.Answerers, CompletedAt: doc.CompletedAt,
	}, nil
}
