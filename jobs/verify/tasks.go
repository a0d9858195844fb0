package verify

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// Execute runs tasks, each of which calls RunTask, and calls the function done with the result of
// each task. The method Run of a jobs.Executor is an Execute.
type Execute func(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error

// RunInTasks audits a crawl as Run does, with the same report. Each phase of the audit has n tasks.
// RunInTasks keeps the audit's documents in the folder of the newest round, and removes the
// documents at the end. An error means that a task failed, or that the audit is impossible.
func RunInTasks(ctx context.Context, o Options, n int, execute Execute) (report *Report, err error) {
	var random [3]byte
	_, _ = rand.Read(random[:]) // Read never fails
	o.ID = hex.EncodeToString(random[:])
	t := tasks{Options: o, n: n, execute: execute}
	defer func() { err = errors.Join(err, t.remove(context.WithoutCancel(ctx))) }()
	return audit.Run(ctx, o, steps(), t.run)
}

// The type tasks divides the phases of one audit into tasks.
type tasks struct {
	Options
	n       int
	execute Execute
	begun   []stages.Task // first task of each phase that has begun
}

// run implements audit.Elsewhere.
func (t *tasks) run(ctx context.Context, phase audit.Phase, rounds []*audit.Round) ([]*manifest.Findings, error) {
	plan := rounds[len(rounds)-1].Plan
	in := &manifest.Audit{
		Header: manifest.Header{Version: t.Version}, Crawl: t.Crawl, Plan: plan.ID, Round: t.Round, Sample: t.Sample, OneClock: t.OneClock, Tasks: t.n,
	}
	if phase == audit.Checks {
		in.Files = string(t.begun[0].Stage)
	}
	all := tasksOf(stages.AuditStage(t.ID, string(phase)), plan.Crawl, plan.Round, t.n)
	t.begun = append(t.begun, all[0])
	if _, err := manifest.Create(ctx, t.Bucket, inputsKey(all[0]), in); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var failed []error
	err := t.execute(ctx, all, func(_ stages.Task, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, err)
		}
	})
	if err == nil && failed != nil {
		err = fmt.Errorf("%d of %d tasks of the audit failed, the first with: %w", len(failed), len(all), failed[0])
	}
	if err != nil {
		return nil, err
	}
	return findings(ctx, t.Bucket, plan.ID, all)
}

// remove deletes the documents of the audit.
func (t *tasks) remove(ctx context.Context) error {
	for _, first := range t.begun {
		for o, err := range t.Bucket.List(ctx, layout.StageDir(first.Crawl, first.Round, string(first.Stage))) {
			if err == nil {
				err = t.Bucket.Delete(ctx, o.Key)
			}
			if err != nil {
				return fmt.Errorf("remove the documents of the audit: %w", err)
			}
		}
	}
	return nil
}

func tasksOf(stage stages.Stage, crawl string, round, n int) []stages.Task {
	all := make([]stages.Task, n)
	for i := range all {
		all[i] = stages.Task{Stage: stage, Crawl: crawl, Round: round, Partition: i}
	}
	return all
}

func inputsKey(t stages.Task) string { return layout.Inputs(t.Crawl, t.Round, string(t.Stage)) }

// The function findings reads what tasks have found, in the order of the tasks.
func findings(ctx context.Context, b store.Bucket, plan string, all []stages.Task) ([]*manifest.Findings, error) {
	found := make([]*manifest.Findings, len(all))
	err := roundstate.EachResult(ctx, b, &manifest.Plan{ID: plan}, all, func(i int, r *manifest.Result, _ string) {
		if r != nil {
			found[i] = r.Findings
		}
	})
	for i, f := range found {
		if err == nil && f == nil {
			err = fmt.Errorf("%s has no result, though it has ended: do all tasks use this store?: %w", all[i], stages.ErrPermanent)
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
	var in manifest.Audit
	_, _, err = manifest.Load(ctx, o.Bucket, inputsKey(t), &in)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s: its audit has ended or was broken off: run `crawlbatch verify` again: %w", t, stages.ErrPermanent)
	}
	if err != nil {
		return err
	}
	o.Round, o.Sample, o.OneClock = in.Round, in.Sample, in.OneClock
	o.ID, _ = t.Stage.Audit()
	o.Share = audit.Share{Index: t.Partition, Of: in.Tasks}
	phase, files := audit.Files, []*manifest.Findings(nil)
	if in.Files != "" {
		phase = audit.Checks
		if files, err = findings(ctx, o.Bucket, in.Plan, tasksOf(stages.Stage(in.Files), t.Crawl, t.Round, in.Tasks)); err != nil {
			return err
		}
	}
	found, err := audit.RunShare(ctx, o, steps(), phase, files)
	if err != nil {
		return err
	}
	_, err = manifest.Create(ctx, o.Bucket, roundstate.ResultKey(t), &manifest.Result{
		Header: manifest.Header{Version: o.Version}, Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: in.Plan, Findings: found,
	})
	if errors.Is(err, store.ErrExists) {
		return nil // another attempt was first, and the crawl may have continued in between
	}
	return err
}
