package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

// Input is what a fetch task reads.
type Input struct {
	Task stages.Task
	Plan *manifest.Plan
	// Reload gives politeness that replaces the config's while the task runs; nil: none will.
	Reload <-chan polite.Config
}

// Run fetches a partition, from wherever its checkpoint stands, and returns the
// result, a function of the last checkpoint alone. When ctx ends it starts
// nothing more, makes what it has durable, releases the partition and returns
// stages.ErrInterrupted. The error may also wrap stages.ErrTaken or
// stages.ErrPermanent.
func Run(ctx context.Context, env *stages.Env, in *Input, cfg Config, parser Parser) (*manifest.Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", in.Task, err, stages.ErrPermanent)
	}
	result, err := run(ctx, env, in, cfg, parser)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Task, err)
	}
	return result, nil
}

func run(ctx context.Context, env *stages.Env, in *Input, cfg Config, parser Parser) (*manifest.Result, error) {
	part := in.Plan.Partitions[in.Task.Partition]
	if err := checkClock(ctx, env.Bucket); err != nil {
		return nil, err
	}
	h, before, err := takeOver(ctx, env, in.Task, in.Plan.ID, uuid.NewString(), &cfg)
	if errors.Is(err, errComplete) {
		return h.result(in, part)
	}
	if err != nil {
		return nil, err
	}
	defer h.unlock()
	p, err := loadPlanned(ctx, env.Bucket, part.File, env.Scratch)
	if err != nil {
		return nil, err
	}
	defer p.Close() //nolint:errcheck // scratch
	rec := &recorder{
		task: in.Task, plan: in.Plan.ID, epoch: h.doc.Epoch, scratch: env.Scratch, version: env.Version, userAgent: cfg.UserAgent,
		clock: env.Clock,
	}
	defer rec.abort()
	c, err := newCrawl(env, cfg, parser, p, rec)
	if err != nil {
		return nil, err
	}
	defer c.client.Close()
	c.epoch, c.segment = h.doc.Epoch, layout.Part(in.Task.Partition)
	a := &attempt{env: env, in: in, cfg: cfg, holder: h, rec: rec, crawl: c, began: env.Clock.Now(), elapsed: time.Duration(h.doc.ElapsedMS) * time.Millisecond}
	if err := a.resume(ctx, before); err != nil {
		return nil, err
	}
	if err := a.fetch(ctx); err != nil {
		return nil, err
	}
	return h.result(in, part)
}

// maxSkew is how far this machine's clock may be off the store's.
const maxSkew = time.Minute

// checkClock refuses a clock that is off the store's, where the store has one: the
// times in the tables would be wrong.
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
		return fmt.Errorf("this machine's clock is %v off that of %s, %v is allowed: set it: %w", skew.Round(time.Second), b, maxSkew, stages.ErrPermanent)
	}
	return nil
}

// result is the task's result: what the checkpoint lists.
func (h *holder) result(in *Input, part manifest.PlanPartition) (*manifest.Result, error) {
	rows, err := h.check(&h.doc, in.Plan.ID)
	if err != nil {
		return nil, err
	}
	if !h.doc.Complete || int64(rows.GetCardinality()) != part.URLs {
		return nil, fmt.Errorf("%q lists %d outcomes of %d URLs, complete=%t: %w", h.key, rows.GetCardinality(), part.URLs, h.doc.Complete, manifest.ErrCorrupt)
	}
	return &manifest.Result{
		Header: manifest.Header{Version: h.doc.Version}, Task: in.Task.String(), Stage: string(in.Task.Stage),
		Partition: in.Task.Partition, Plan: in.Plan.ID, Counts: h.doc.Counts, Files: h.doc.Files,
	}, nil
}

// attempt is one attempt at a fetch task, while it holds the partition.
type attempt struct {
	env    *stages.Env
	in     *Input
	cfg    Config
	holder *holder
	rec    *recorder
	crawl  *crawl

	began   time.Time
	elapsed time.Duration // of the window, before this attempt

	cutting sync.Mutex // held by the one checkpoint under way
	waiting []*segment // cut and not yet listed
}

// resume gives the crawl what earlier attempts left: rows that are recorded, URLs
// that redirects led to, and the pace of hosts.
func (a *attempt) resume(ctx context.Context, before predecessor) error {
	c := a.crawl
	for _, h := range c.planned.hosts {
		if q := newQueue(h.ranges, before.recorded); q.Len() > 0 {
			if err := c.sched.Add(h.host, q); err != nil {
				return err
			}
		}
	}
	c.mayWrite = a.holder.mayWrite
	c.admit = a.admit
	if !before.exists {
		if a.in.Task.Round > 0 {
			// The round before may have asked these hosts a moment ago.
			c.sched.HoldAll()
		}
		return nil
	}
	waited := a.env.Clock.Now().Sub(before.seen)
	var clocks []polite.Clock
	for _, h := range a.holder.doc.Hosts {
		clocks = append(clocks, polite.Clock{
			Host: h.Host, Delay: time.Duration(h.DelayMS) * time.Millisecond, Wait: time.Duration(h.WaitMS)*time.Millisecond - waited,
		})
	}
	c.sched.Restore(clocks)
	if !before.released {
		// Requests may have been sent after the last checkpoint.
		c.sched.HoldAll()
	}
	if err := a.claims(ctx); err != nil {
		return err
	}
	a.env.Log.Info("resumed", "epoch", a.holder.doc.Epoch, "recorded", before.recorded.GetCardinality(), "released", before.released)
	a.sweep(ctx)
	return nil
}

// reached are the columns that say where redirects led.
type reached struct {
	FinalURL  string `parquet:"final_url,optional"`
	Redirects int32  `parquet:"redirects"`
}

// claims remembers the URLs that redirects were followed to.
func (a *attempt) claims(ctx context.Context) error {
	for _, f := range a.holder.doc.Files {
		if f.Dataset != stages.FileFetches {
			continue
		}
		r, err := table.Open[reached](ctx, a.env.Bucket, f.Key)
		if err != nil {
			return err
		}
		for row, err := range r.All(ctx) {
			if err != nil {
				return errors.Join(err, r.Close())
			}
			if row.Redirects > 0 && row.FinalURL != "" {
				a.crawl.claims[xxh3.HashString(row.FinalURL)] = struct{}{}
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// fetch runs the crawl to its end, checkpoints beside it, and commits the end.
func (a *attempt) fetch(ctx context.Context) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	flights, land := context.WithCancel(context.WithoutCancel(ctx))
	defer land()

	beside, ended := context.WithCancel(work)
	var wg sync.WaitGroup
	guard := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(beside); err != nil && beside.Err() == nil {
				stop(err)
				land() // whoever has no right any more ends its requests
			}
		})
	}
	guard(a.renew)
	guard(a.checkpoints)
	guard(a.closeWindow)
	guard(a.reloads)
	// When told to stop, requests in flight get a quarter of the grace.
	unhook := context.AfterFunc(ctx, func() {
		_ = a.env.Clock.Sleep(flights, a.cfg.Pauses.Grace/4)
		land()
	})
	err := a.crawl.loop(work, flights)
	unhook()
	ended()
	wg.Wait()

	if cause := context.Cause(work); ctx.Err() == nil && cause != nil {
		err = cause // of what ran beside
	}
	switch {
	case err == nil:
		// Being told to stop now would only leave this last step to another.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(a.cfg.Checkpoint.Lease, a.cfg.Pauses.Grace))
		defer cancel()
		return a.end(last, a.complete)
	case ctx.Err() != nil && !errors.Is(err, stages.ErrTaken):
		return a.interrupted(ctx)
	case errors.Is(err, stages.ErrTaken):
		return err
	}
	// A fault of this machine: what is whole is kept for the next attempt.
	if kept := a.interrupted(ctx); !errors.Is(kept, stages.ErrInterrupted) {
		return errors.Join(err, kept)
	}
	return err
}

// interrupted makes durable what there is, and releases the partition.
func (a *attempt) interrupted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Pauses.Grace)
	defer cancel()
	for _, v := range a.crawl.unfinished() {
		if len(v.requests) > 0 {
			if err := a.rec.emit(&bundle{requests: v.requests}); err != nil {
				return err
			}
		}
	}
	if err := a.end(ctx, func(d *manifest.Checkpoint) error { d.Released = true; return nil }); err != nil {
		return err
	}
	return stages.ErrInterrupted
}

// unfinished lists the visits that are between two turns, by row.
func (c *crawl) unfinished() []*visit {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*visit
	for _, v := range c.visits {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *visit) int { return int(a.row - b.row) })
	return out
}

// complete ends the task, if every planned URL has its outcome.
func (a *attempt) complete(d *manifest.Checkpoint) error {
	rows, err := a.holder.check(d, a.in.Plan.ID)
	if err != nil {
		return err
	}
	if n := rows.GetCardinality(); n != uint64(a.crawl.planned.Len()) {
		return fmt.Errorf("%d of %d planned URLs have an outcome: a fault of this program", n, a.crawl.planned.Len())
	}
	d.Complete, d.Released = true, true
	return nil
}

// end makes the last checkpoint of the attempt.
func (a *attempt) end(ctx context.Context, set func(*manifest.Checkpoint) error) error {
	err := a.checkpoint(ctx, set)
	if err == nil {
		a.env.Log.Debug("checkpoint", "epoch", a.holder.doc.Epoch, "complete", a.holder.doc.Complete, "files", len(a.holder.doc.Files))
	}
	return err
}

// checkpoint uploads what was recorded and has the checkpoint list it.
func (a *attempt) checkpoint(ctx context.Context, set func(*manifest.Checkpoint) error) error {
	a.cutting.Lock()
	defer a.cutting.Unlock()
	g, err := a.rec.cut()
	if err != nil {
		return err
	}
	if g != nil {
		a.waiting = append(a.waiting, g)
	}
	// In their order: rows of a segment may point into the WARC files of those
	// before it. One whose upload was broken off is gone on with.
	for len(a.waiting) > 0 {
		g := a.waiting[0]
		if err := a.patiently(ctx, func() error { return g.upload(ctx, a.env.Bucket) }); err != nil {
			return err
		}
		if err := a.commit(ctx, g, nil); err != nil {
			return err
		}
		a.rec.durable(g)
		a.waiting = a.waiting[1:]
	}
	if set == nil {
		return nil
	}
	return a.commit(ctx, nil, set)
}

// commit has the checkpoint list a segment, or takes another change to it.
func (a *attempt) commit(ctx context.Context, g *segment, set func(*manifest.Checkpoint) error) error {
	return a.patiently(ctx, func() error {
		elapsed := a.elapsed + a.env.Clock.Now().Sub(a.began)
		return a.holder.commit(ctx, g, a.crawl.sched.Snapshot, elapsed, set)
	})
}

// patience is how long an attempt waits for a store that is away or full.
const patience = 30 * time.Minute

// patiently repeats what the store was not there for. Meanwhile nothing new is
// begun, once the right has run out or too much waits (admit).
func (a *attempt) patiently(ctx context.Context, op func() error) error {
	began := a.env.Clock.Now()
	for try := 0; ; try++ {
		err := op()
		if err == nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrFull) {
			return err
		}
		if a.env.Clock.Now().Sub(began) > patience {
			return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
		}
		a.env.Log.Warn("the store takes nothing; fetching waits for it", "error", err)
		if serr := a.env.Clock.Sleep(ctx, store.Backoff{}.Delay(try)); serr != nil {
			return fmt.Errorf("%w: %w", err, serr)
		}
	}
}
