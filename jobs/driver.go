package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// Driver runs the rounds of a crawl.
type Driver struct {
	Bucket   store.Bucket
	Executor Executor
	Runner   worker.Runner // runs GiveUp and Rebuild in this process
	Observer Observer
	Config   *config.Config
	Clock    stages.Clock
	Log      *slog.Logger
	Version  string
	Scratch  string                      // an existing local directory for planning
	Lookup   func(string) (string, bool) // the environment, for ${VAR} in the frozen config
	Costs    *cost.Model                 // predicts and prices the usage of rounds, for the runs dataset; may be nil
	Flags    string                      // flags for this store, for the commands in errors; begins with a space

	learned learned
	judge   judge // of the rounds of the last Run
}

// Run continues the crawl until the given number of rounds is sealed. If rounds is 0, Run continues
// until the crawl window has ended or no URL is left to fetch. If Run returns no error, the crawl is
// finished, until another Run begins a further round. The error wraps roundstate.ErrNoCrawl,
// roundstate.ErrNoPlan, ErrTasksFailed, stages.ErrInterrupted or stages.ErrPermanent. After Run, MostFailed
// says how the rounds went.
func (d *Driver) Run(ctx context.Context, crawl string, rounds int) error {
	l, err := ledger.Load(ctx, d.Bucket, crawl) // once for all sealed rounds, because it grows with each round
	if err != nil {
		return err
	}
	d.judge = judge{}
	window := d.window(l)
	for round := 0; rounds == 0 || round < rounds; round++ {
		s, err := d.observeSealedIn(ctx, l, round)
		if err != nil {
			return err
		}
		if s != nil {
			d.judge.add(s, false)
			continue
		}
		if round > 0 {
			if rounds == 0 && !d.Clock.Now().Before(window.End) {
				d.Log.Info("crawl window is over", "crawl", crawl, "rounds", round, "began", window.Begin, "ended", window.End)
				break
			}
			more, err := d.planShown(ctx, crawl, round)
			if err != nil {
				return err
			}
			if !more {
				what := "nothing left to fetch"
				if layout.IsReparse(crawl) {
					what = "no further round to parse"
				}
				d.Log.Info(what, "crawl", crawl, "rounds", round)
				break
			}
		}
		if s, err = d.round(ctx, crawl, round, window); err != nil {
			return err
		}
		d.judge.add(s, true)
	}
	return d.ledgers().NoteFinished(ctx, d.Bucket, crawl)
}

// clockAhead is the time by which the clock of another driver may be ahead.
const clockAhead = 5 * time.Minute

// window returns the crawl window of a Run: the one in the ledger until the crawl is finished, because a driver
// may be restarted at any time. Its end follows from its beginning and from fetch.crawl_window, which may have
// changed since then: a longer value extends the window, and a shorter one ends it sooner.
//
// If the crawl is finished and the window has ended, somebody wants further rounds, so a new window begins. A new
// window also begins if the one in the ledger begins in the future, because the clock of its driver was wrong.
func (d *Driver) window(l *ledger.Ledger) ledger.Window {
	now, length := d.Clock.Now().UTC().Round(0), d.Config.Fetch.CrawlWindow.Std() // the wall clock, because others read it
	w, ok := l.Window()
	ends := w.Begin.Add(length)
	if !ok || !l.Unfinished() && !now.Before(ends) || w.Begin.After(now.Add(clockAhead)) {
		return ledger.Window{Begin: now, End: now.Add(length)}
	}
	return ledger.Window{Begin: w.Begin, End: ends}
}

// planShown calls planNext, and reports the planning to the observer as if it were a stage with one
// task.
func (d *Driver) planShown(ctx context.Context, crawl string, round int) (bool, error) {
	t := stages.Task{Stage: stages.Plan, Crawl: crawl, Round: round}
	d.Observer.StageStarted(StageStart{Plan: &manifest.Plan{Crawl: crawl, Round: round}, Stage: stages.Plan, Tasks: 1, Missing: []stages.Task{t}})
	more, err := d.planNext(ctx, crawl, round)
	if err == nil {
		d.Observer.TaskDone(t, nil)
		d.Observer.StageDone(stages.Plan, 0)
	}
	return more, err
}

// round runs the stages of one round of a crawl window until the round is sealed, and returns the seal.
func (d *Driver) round(ctx context.Context, crawl string, round int, in ledger.Window) (*manifest.Sealed, error) {
	p, err := d.begin(ctx, crawl, round)
	if err == nil {
		err = d.ledgers().NoteRunning(ctx, d.Bucket, crawl, in)
	}
	if err != nil {
		return nil, err
	}
	for _, stage := range stages.Of(p) {
		if err := d.stage(ctx, p, stage); err != nil {
			return nil, err
		}
	}
	account := func(counts []manifest.Count) error { return d.account(ctx, p, counts) }
	if err := roundstate.Seal(ctx, d.Bucket, p, d.ledgers(), account); err != nil {
		return nil, err
	}
	return d.observeSealed(ctx, crawl, round)
}

// ledgers returns a writer that appends to ledgers on behalf of the driver.
func (d *Driver) ledgers() ledger.Writer { return ledger.Writer{Version: d.Version, Clock: d.Clock} }

// begin starts a round. It also checks the config, because `plan --replace` may have changed the
// config of the crawl's first round.
func (d *Driver) begin(ctx context.Context, crawl string, round int) (*manifest.Plan, error) {
	p, err := roundstate.Begin(ctx, d.Bucket, crawl, round, d.ledgers())
	if err != nil || round > 0 || d.Lookup == nil || layout.IsReparse(crawl) {
		return p, err
	}
	_, frozen, err := roundstate.OpenCrawl(ctx, d.Bucket, crawl, d.Lookup)
	if err == nil {
		err = frozen.Adopt(d.Config.Clone())
	}
	if err != nil {
		return nil, fmt.Errorf("the config of %s has changed since this command began: run the command again: %w", crawl, err)
	}
	return p, nil
}

// observeSealed reports a sealed round to the observer, and returns its seal. It returns nil if the round is not sealed.
func (d *Driver) observeSealed(ctx context.Context, crawl string, round int) (*manifest.Sealed, error) {
	l, err := ledger.Load(ctx, d.Bucket, crawl)
	if err != nil {
		return nil, err
	}
	return d.observeSealedIn(ctx, l, round)
}

// observeSealedIn does the same as observeSealed, with a ledger that the caller has read.
func (d *Driver) observeSealedIn(ctx context.Context, l *ledger.Ledger, round int) (*manifest.Sealed, error) {
	s, err := roundstate.SealIn(ctx, d.Bucket, l, round)
	if err != nil || s == nil {
		return nil, err
	}
	if l.Newest(manifest.EntrySealed, round) == nil {
		// The process that sealed the round may have died before it recorded the seal in the
		// ledger.
		if err := roundstate.RecordSeal(ctx, d.Bucket, l.Crawl, round, d.ledgers()); err != nil {
			return nil, err
		}
	}
	d.Observer.RoundDone(s)
	return s, nil
}

// stage runs those tasks of a stage that have no result.
func (d *Driver) stage(ctx context.Context, p *manifest.Plan, stage stages.Stage) error {
	missing, err := d.Missing(ctx, p, stage, nil)
	if err != nil {
		return err
	}
	if err := d.recheckResults(ctx, p, missing); err != nil {
		return err
	}
	d.observeStart(ctx, p, stage, stage.Tasks(p), missing)
	if len(missing) > 0 {
		if stage == stages.Fetch {
			if err := d.awaitContinue(ctx, missing[0]); err != nil {
				return err
			}
			if err := d.prepareFetch(ctx, p); err != nil {
				return err
			}
		} else if _, err := roundstate.Freeze(ctx, d.Bucket, p, stage, d.ledgers()); err != nil {
			return err
		}
		if err := d.execute(ctx, missing); err != nil {
			return err
		}
	}
	if stage == stages.Fetch {
		if err := roundstate.Release(ctx, d.Bucket, p, d.ledgers()); err != nil {
			return err
		}
	}
	d.Observer.StageDone(stage, 0)
	return nil
}

// awaitContinue waits while the crawl is paused. Otherwise an executor would submit Jobs whose
// tasks only wait.
func (d *Driver) awaitContinue(ctx context.Context, t stages.Task) error {
	l, err := ledger.Load(ctx, d.Bucket, t.Crawl)
	if err != nil || layout.IsReparse(t.Crawl) {
		return err
	}
	waits := worker.Runner{Bucket: d.Bucket, Clock: d.Clock, Log: d.Log, Flags: d.Flags}
	_, err = waits.AwaitContinue(ctx, l, t)
	return err
}

// recheckResults returns a ledger.Lost error if the missing tasks once had results. It checks only
// the first task: the ledger has one entry for the results of a whole stage.
func (d *Driver) recheckResults(ctx context.Context, p *manifest.Plan, missing []stages.Task) error {
	if len(missing) == 0 {
		return nil
	}
	l, err := ledger.Load(ctx, d.Bucket, p.Crawl)
	if err != nil {
		return err
	}
	_, err = roundstate.RecheckResult(ctx, d.Bucket, l, missing[0])
	return err
}

// observeStart tells the observer that a stage begins. Fetch tasks resume from their checkpoints,
// so for the fetch stage, observeStart also reports the progress so far. It ignores an unreadable
// checkpoint, because the task itself reports the error.
func (d *Driver) observeStart(ctx context.Context, p *manifest.Plan, stage stages.Stage, tasks int, missing []stages.Task) {
	s := StageStart{Plan: p, Stage: stage, Tasks: tasks, Missing: missing}
	if stage == stages.Fetch {
		var left int64
		for _, t := range missing {
			left += p.Partitions[t.Partition].URLs
		}
		if s.URLs = left; tasks == len(p.Partitions) {
			s.URLs = p.URLs
		}
		s.Recorded = s.URLs - left
		if fetching, err := (&StatusReader{Bucket: d.Bucket}).Fetching(ctx, p, missing); err == nil {
			s.Fetching = fetching
			for _, f := range fetching {
				s.Recorded += f.Recorded
			}
		}
	}
	d.Observer.StageStarted(s)
}

// execute runs tasks and returns one error for all tasks that failed.
func (d *Driver) execute(ctx context.Context, tasks []stages.Task) error {
	var mu sync.Mutex
	var failed []error
	err := d.Executor.Run(ctx, tasks, func(t stages.Task, err error) {
		d.Observer.TaskDone(t, err)
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		}
	})
	if err != nil {
		return err
	}
	if len(failed) == 0 {
		return nil
	}
	t := tasks[0]
	d.Observer.StageDone(t.Stage, len(failed))
	return &failure{fmt.Sprintf("%d of %d tasks of %s failed; the first error: %v: see `crawlbatch status --month %s%s`, fix the cause, then `crawlbatch retry --month %[5]s%[6]s`",
		len(failed), len(tasks), t.Stage, failed[0], t.Crawl, d.Flags), []error{failed[0], failureOf(failed)}}
}

// failure is a one-line error that wraps the errors of the failed tasks.
type failure struct {
	text   string
	causes []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.causes }

// failureOf returns stages.ErrPermanent if all errors of the failed tasks are permanent, otherwise
// ErrTasksFailed.
func failureOf(failed []error) error {
	for _, err := range failed {
		if !errors.Is(err, stages.ErrPermanent) {
			return ErrTasksFailed
		}
	}
	return stages.ErrPermanent
}

// tasksOf lists the tasks of a stage in order. If partitions are given, tasksOf lists only their
// tasks. The error is ErrNoPartition if the stage lacks a given partition.
func tasksOf(p *manifest.Plan, stage stages.Stage, partitions []int) ([]stages.Task, error) {
	all := roundstate.Tasks(p, stage)
	for _, n := range partitions {
		if n < 0 || n >= len(all) {
			return nil, fmt.Errorf("%s of %s.%d has no partition %d, only 0 to %d: %w", stage, p.Crawl, p.Round, n, len(all)-1, ErrNoPartition)
		}
	}
	if len(partitions) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(t stages.Task) bool { return !slices.Contains(partitions, t.Partition) }), nil
}

// Missing lists the tasks of a stage without a result, in order. If partitions are given, Missing
// lists only their tasks.
func (d *Driver) Missing(ctx context.Context, p *manifest.Plan, stage stages.Stage, partitions []int) ([]stages.Task, error) {
	asked, err := tasksOf(p, stage, partitions)
	if err != nil {
		return nil, err
	}
	return roundstate.Missing(ctx, d.Bucket, p, asked)
}

// ErrBusy means that another round of the store is being fetched.
var ErrBusy = roundstate.ErrBusy
