package worker

import (
	"context"
	"errors"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
)

// ControlEvery is the time between two reads of the ledger by a fetch task. A stop, a pause and new
// politeness therefore reach every process within this time. A task-hour costs 360 GETs.
const ControlEvery = 10 * time.Second

// errPaused is the cause with which a pause cancels the context of a fetch task.
var errPaused = errors.New("the crawl is paused")

// fetch runs a fetch task. While the crawl is paused, the task holds neither lease nor connection: its
// outcomes are in a checkpoint, and the fetch window does not advance.
func (r Runner) fetch(ctx context.Context, env *stages.Env, l *ledger.Ledger, p *manifest.Plan, t stages.Task) (*manifest.Result, error) {
	if r.GiveUp { // the task sends no requests
		return r.fetchOnce(ctx, *env, l, p, t, nil)
	}
	for {
		var err error
		if l, err = r.AwaitContinue(ctx, l, t); err != nil {
			return nil, err
		}
		nudge, unsubscribe := r.Reloads.subscribe()
		reload := make(chan fetch.Revision, 1)
		unpaused, pause := context.WithCancelCause(ctx)
		watching, stop := context.WithCancel(unpaused)
		var newest *ledger.Ledger // the ledger with the pause
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.follow(watching, r.poll(l, t), nudge, reload, func(l *ledger.Ledger) {
				newest = l
				pause(errPaused)
			})
		}()
		result, err := r.fetchOnce(unpaused, *env, l, p, t, reload)
		stop()
		<-ended
		unsubscribe()
		pause(nil)
		// A pause may also cancel what an attempt does before it holds the lease, such as a read of
		// the store.
		if newest == nil || ctx.Err() != nil || err == nil || errors.Is(err, stages.ErrPermanent) {
			return result, err
		}
		if !errors.Is(err, stages.ErrInterrupted) && !errors.Is(err, context.Canceled) {
			r.Log.Warn("the attempt failed while the crawl was being paused; it is repeated after the pause", "task", t.String(), "error", err)
		}
		l = newest
	}
}

// fetchOnce makes one attempt to fetch. The attempt follows the revisions of politeness in reload.
func (r Runner) fetchOnce(ctx context.Context, env stages.Env, l *ledger.Ledger, p *manifest.Plan, t stages.Task, reload <-chan fetch.Revision) (*manifest.Result, error) {
	parser, err := NewParser(r.Config)
	if err != nil {
		return nil, err
	}
	cfg := FetchConfig(r.Config, r.Version)
	if s := &r.Shares; s.Slots > 0 {
		cfg.Slots, cfg.MaxIdle, cfg.Memory = min(cfg.Slots, s.Slots), s.Idle, s.Bodies
	}
	newest, err := r.newestPoliteness(ctx, l)
	if err != nil {
		return nil, err
	}
	cfg.Politeness = newest.Config
	if r.GiveUp { // a result must not be committed if fetched records are lost
		err = l.CheckFetchedOf(ctx, r.Bucket, p)
	} else {
		err = roundstate.Claim(ctx, r.Bucket, l, p, r.ledgers())
	}
	if err != nil {
		return nil, err
	}
	optOut, err := scope.LoadOptOut(ctx, env.Bucket, p, r.Config.Plan.StripParams, r.Config.Plan.URLRules())
	if err != nil {
		return nil, err
	}
	env.Bucket = roundstate.Fetching(env.Bucket, l, p, r.ledgers())
	before, err := r.roundBefore(ctx, l, p, t)
	if err != nil {
		return nil, err
	}
	in := &fetch.Input{
		Task: t, Plan: p, Before: before, Politeness: newest.Number, Reload: reload,
		GiveUp: r.GiveUp, Clocks: r.Clocks, Witness: r.Witness, Parsing: r.Shares.Parsing,
	}
	if in.Gone, err = TakenDown(ctx, r.Bucket, r.Config, p); err != nil {
		return nil, err
	}
	if optOut != nil || in.Gone != nil {
		barred := optOut.Or(in.Gone)
		in.OptedOut = func(url, sent string) bool { _, ok := barred(url, sent); return ok }
	}
	return fetch.Run(ctx, &env, in, cfg, parser)
}

// newestPoliteness returns the crawl's newest politeness with the stops of a ledger.
func (r Runner) newestPoliteness(ctx context.Context, l *ledger.Ledger) (fetch.Revision, error) {
	newest, revision, err := roundstate.NewestPolitenessIn(ctx, r.Bucket, l)
	if revision == 0 {
		newest = r.Config.Politeness
	}
	newest.Stops = l.Stopped()
	return fetch.Revision{Number: revision, Config: Politeness(&config.Config{Politeness: newest})}, err
}

// follow looks at the ledger every ControlEvery, and after each value from nudge, until ctx ends. It passes
// new politeness and stops to the task, and calls pause as soon as the crawl is paused. If the ledger or
// the newest politeness cannot be read, the task keeps what it knows.
func (r Runner) follow(ctx context.Context, p *ledgerPoll, nudge <-chan struct{}, reload chan fetch.Revision, pause func(*ledger.Ledger)) {
	unread := false // whether the politeness of the known ledger has not been read
	for r.sleepOr(ctx, nudge) == nil {
		l := p.newer(ctx)
		if l == nil && unread {
			l = p.known
		}
		if l == nil {
			continue
		}
		if l.Paused("") != nil {
			pause(l)
			return
		}
		newest, err := r.newestPoliteness(ctx, l)
		if unread = err != nil; !unread {
			offer(reload, newest)
		}
	}
}

// poll returns a ledgerPoll that begins with the given ledger.
func (r Runner) poll(l *ledger.Ledger, t stages.Task) *ledgerPoll {
	return &ledgerPoll{bucket: r.Bucket, log: r.Log, task: t, known: l}
}

// sleepOr waits for ControlEvery, or until nudge has a value. It returns the error of ctx.
func (r Runner) sleepOr(ctx context.Context, nudge <-chan struct{}) error {
	sleeping, wake := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-nudge:
			wake()
		case <-sleeping.Done():
		}
	}()
	_ = r.Clock.Sleep(sleeping, ControlEvery)
	wake()
	<-ended // otherwise the goroutine could receive a later value, for which follow would not read the ledger
	return ctx.Err()
}

// AwaitContinue waits while the crawl is paused. It returns the newest ledger that it read. The log and,
// if there is one, the watcher of the task say for what it waits. While the ledger is lost or damaged, the
// crawl stays paused: an ended task would be started again, and might send requests. AwaitContinue returns an
// error if the crawl is gone, was pruned, or has another format.
func (r Runner) AwaitContinue(ctx context.Context, l *ledger.Ledger, t stages.Task) (*ledger.Ledger, error) {
	paused := l.Paused(r.Flags)
	if paused == nil {
		return l, nil
	}
	r.Log.Info(t.Crawl+" is "+paused.String(), "task", t.String())
	p := r.poll(l, t)
	defer stages.Watched(r.Watcher, t, func() stages.Activity {
		why := paused.String()
		if err := p.fault.Load(); err != nil {
			why += "; the ledger cannot be read: " + (*err).Error()
		}
		return stages.Activity{Waits: []stages.Wait{{Why: why}}}
	})()
	for {
		if r.Clock.Sleep(ctx, ControlEvery) != nil {
			return nil, stages.ErrInterrupted
		}
		if later := p.newer(ctx); later != nil && later.Paused("") == nil {
			r.Log.Info(t.Crawl+" continues", "task", t.String())
			return later, nil
		}
		if err := p.over(); err != nil {
			return nil, err
		}
	}
}
