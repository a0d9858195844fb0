package verify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// Execute runs tasks of a plan's round, and calls done when a task has ended. Each
// task calls RunTask.
type Execute func(ctx context.Context, p *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error

// RunInTasks audits a crawl as Run does, with the same report. Each phase of the audit has n tasks.
// Executors estimate the memory of a task from its round's plan, so the tasks belong to the round
// with the most URLs, and the audit's documents are in its folder. RunInTasks removes these
// documents at the end. An error means that a task failed, or that the audit is impossible.
func RunInTasks(ctx context.Context, o Options, n int, execute Execute) (*Report, error) {
	o.ID = audit.NewID(o.Now)
	t := tasks{Options: o, n: n, execute: execute}
	report, err := audit.Run(ctx, o, steps(), t.run)
	if failed := t.remove(context.WithoutCancel(ctx)); failed != nil && report != nil {
		report.Notes = append(report.Notes, fmt.Sprintf("the documents of this audit remain in the store: %v", failed))
	} else if failed != nil {
		err = errors.Join(err, failed)
	}
	return report, err
}

// tasks runs the phases of one audit in tasks.
type tasks struct {
	Options
	n       int
	execute Execute
	begun   []stages.Task // first task of each phase that has begun
}

// run implements audit.Elsewhere.
func (t *tasks) run(ctx context.Context, w audit.Work, rounds []*audit.Round) ([]*manifest.Findings, error) {
	plan := slices.MaxFunc(rounds, func(a, b *audit.Round) int { return cmp.Compare(a.Plan.URLs, b.Plan.URLs) }).Plan
	in := &manifest.Audit{
		Header: manifest.Header{Version: t.Version}, Crawl: t.Crawl, Plan: plan.ID, Round: t.Round, Phase: string(w.Phase), Sample: t.Sample, OneClock: t.OneClock,
		InFlight: w.InFlight, RobotsTTLMS: w.RobotsTTL.Milliseconds(), Tasks: t.n, Nonce: rand.Text(), Unreadable: w.Unreadable,
	}
	stage := stages.AuditStage(t.ID, string(w.Phase))
	all := make([]stages.Task, t.n)
	for i := range all {
		all[i] = stages.Task{Stage: stage, Crawl: plan.Crawl, Round: plan.Round, Partition: i}
	}
	_, err := manifest.Create(ctx, t.Bucket, inputsKey(all[0]), in)
	if errors.Is(err, store.ErrExists) {
		return nil, fmt.Errorf("another audit of %s began in the same second: run this one again: %w", t.Crawl, err)
	}
	if err != nil {
		return nil, err
	}
	t.begun = append(t.begun, all[0])
	var mu sync.Mutex
	var failed []error
	err = t.execute(ctx, plan, all, func(_ stages.Task, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, err)
		}
	})
	if err == nil && failed != nil {
		err = fmt.Errorf("%d of %d tasks of the audit failed; the first error: %w", len(failed), len(all), failed[0])
	}
	if err != nil {
		return nil, err
	}
	return findings(ctx, t.Bucket, plan, all)
}

// remove deletes the documents of the audit.
func (t *tasks) remove(ctx context.Context) error {
	var failed error
	for _, first := range t.begun {
		for o, err := range t.Bucket.List(ctx, layout.StageDir(first.Crawl, first.Round, string(first.Stage))) {
			if err == nil {
				err = t.Bucket.Delete(ctx, o.Key)
			}
			if failed == nil && err != nil {
				failed = fmt.Errorf("remove the documents of the audit: %w", err)
			}
		}
	}
	return failed
}

func inputsKey(t stages.Task) string { return layout.Inputs(t.Crawl, t.Round, string(t.Stage)) }

// findings returns what the tasks found, in the order of the tasks.
func findings(ctx context.Context, b store.Bucket, p *manifest.Plan, all []stages.Task) ([]*manifest.Findings, error) {
	found := make([]*manifest.Findings, len(all))
	err := roundstate.EachResult(ctx, b, p, all, func(i int, r *manifest.Result, _ string) {
		if r != nil {
			found[i] = r.Findings
		}
	})
	for i, f := range found {
		if err == nil && f == nil {
			err = fmt.Errorf("%s has no result, although it has ended; check that all tasks use this store: %w", all[i], stages.ErrPermanent)
		}
	}
	return found, err
}

// RunTask does the share of one task in an audit. The options say where the crawl is, and the
// audit's documents say what to audit. A task that has a result does nothing.
func RunTask(ctx context.Context, o Options, t stages.Task) error {
	done, _, err := roundstate.LoadResult(ctx, o.Bucket, t)
	if err != nil || done != nil {
		return err
	}
	in, err := inputsOf(ctx, o.Bucket, t)
	if err != nil {
		return err
	}
	o.Round, o.Sample, o.OneClock = in.Round, in.Sample, in.OneClock
	o.Share = audit.Share{Index: t.Partition, Of: in.Tasks}
	found, err := audit.RunShare(ctx, o, steps(), audit.Work{
		Phase: audit.Phase(in.Phase), Unreadable: in.Unreadable, InFlight: in.InFlight, RobotsTTL: time.Duration(in.RobotsTTLMS) * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if _, err := inputsOf(ctx, o.Bucket, t); err != nil { // the audit has ended meanwhile, so nobody would remove a result
		return err
	}
	_, err = manifest.Create(ctx, o.Bucket, roundstate.ResultKey(t), &manifest.Result{
		Header: manifest.Header{Version: o.Version}, Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: in.Plan, Findings: found,
	})
	if errors.Is(err, store.ErrExists) {
		return nil // another attempt stored its result first; it may differ, because the crawl may have continued between the attempts
	}
	return err
}

// inputsOf reads the document that says what a task audits.
func inputsOf(ctx context.Context, b store.Bucket, t stages.Task) (*manifest.Audit, error) {
	var in manifest.Audit
	_, _, err := manifest.Load(ctx, b, inputsKey(t), &in)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%s: its audit has ended or was stopped: run `crawlbatch verify --month %s` again: %w", t, t.Crawl, stages.ErrPermanent)
	}
	return &in, err
}
