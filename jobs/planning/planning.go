// Package planning has tasks make a plan.
//
// The driver divides the sources. Tasks read them (phase read), join each part of the URLs with earlier rounds and
// choose by domain (join), drop what the budget of a round refuses (cut), and write the partitions (write). The driver
// takes the small steps between: it adds up counts, decides the budget of the round, and packs domains into
// partitions. The files are those of a plan in one process, byte for byte. The plan's ID follows from them, so that
// only then the tasks of the phase place copy them to the plan's folder. The driver stores plan.json last. Package
// planner defines the phases before place.
//
// No round waits for these tasks. Their documents and working files are in the folders planning-ID-PHASE of the round
// and are removed at the end. A plan that was killed begins anew: it reads nothing of what the killed one left. A day
// later, the next plan in tasks of the round, or of a later round of the crawl, removes this.
//
// Package planning also makes the Basis of a plan, which is what the plan is made from beside the user's sources.
package planning

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/spool"
	"crawlbatch.io/crawlbatch/stages"
)

const (
	phasePlace = "place"
	workFolder = "work" // the working files of all phases
)

// Execute runs tasks of the round of p, and calls done when a task has ended. Each task calls RunTask. The
// EstimatedBytes of p are the bytes of scratch space that a task needs.
type Execute func(ctx context.Context, p *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error

// InThisProcess returns what runs at most n tasks at a time with run. The first error ends the plan, as without tasks:
// the user waits for the command, and can run it again.
func InThisProcess(run func(ctx context.Context, t stages.Task) error, n int) Execute {
	return func(ctx context.Context, _ *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(n)
		for _, t := range tasks {
			g.Go(func() error {
				err := ctx.Err()
				if err == nil {
					err = run(ctx, t)
				}
				done(t, err)
				return err
			})
		}
		return g.Wait()
	}
}

// Tasks makes plans in tasks. The caller calls Remove at the end. Only one goroutine may use it.
type Tasks struct {
	Bucket  store.Bucket
	N       int // largest number of tasks of a phase
	Now     time.Time
	Version string
	Execute Execute
	Shares  func(name string) bool // reports whether the tasks can read the source with a name

	made []*making
}

// For returns what makes the plan of a Basis. The list gone has what was taken down, and scratch is an existing local
// directory.
func (t *Tasks) For(s *Basis, gone *takedown.Guard, scratch string) planner.Elsewhere {
	m := &making{Tasks: t, basis: s, gone: gone, scratch: scratch, id: stages.PlanningID(t.Now), nonce: rand.Text()}
	t.made = append(t.made, m)
	return m
}

// Remove deletes the documents and working files of the plans.
func (t *Tasks) Remove(ctx context.Context) error {
	var failed error
	for _, m := range t.made {
		if m.dir != "" {
			failed = errors.Join(failed, t.removeAll(ctx, m.dir, func(string) bool { return true }))
		}
	}
	return failed
}

// removeEnded deletes what plans in tasks that were killed more than a day ago have left in the plan's round and
// those before it.
func (t *Tasks) removeEnded(ctx context.Context, m *manifest.Plan) error {
	for round := range m.Round + 1 {
		dir := layout.RoundDir(m.Crawl, round)
		if err := t.removeAll(ctx, dir+stages.PlanningPrefix, func(key string) bool {
			folder, _, _ := strings.Cut(key[len(dir):], "/")
			id, ok := stages.Stage(folder).Planning()
			return ok && stages.PlanningEnded(id, t.Now)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tasks) removeAll(ctx context.Context, prefix string, which func(key string) bool) error {
	for o, err := range t.Bucket.List(ctx, prefix) {
		if err == nil && which(o.Key) {
			err = t.Bucket.Delete(ctx, o.Key)
		}
		if err != nil {
			return fmt.Errorf("remove the working files of a plan in tasks: %w", err)
		}
	}
	return nil
}

// making makes one plan. It implements planner.Elsewhere.
type making struct {
	*Tasks
	basis   *Basis
	gone    *takedown.Guard
	scratch string
	id      string
	nonce   string // tells the inputs of this plan from those of others
	dir     string // prefix of the folders of this plan; "" before the first write
	common  *manifest.PlanBasis
}

// Most implements planner.Elsewhere.
func (m *making) Most() int { return m.N }

// CanRead implements planner.Elsewhere.
func (m *making) CanRead(name string) bool { return m.Shares(name) }

// Depot implements planner.Elsewhere.
func (m *making) Depot(ctx context.Context, p *manifest.Plan) (spool.Depot, error) {
	m.dir = layout.RoundDir(p.Crawl, p.Round) + string(stages.PlanningStage(m.id, ""))
	if err := m.removeEnded(ctx, p); err != nil {
		return nil, err
	}
	d := depotOf(m.Bucket, m.task(p, workFolder, 0))
	var err error
	m.common, err = m.basis.store(ctx, d, m.gone, m.scratch)
	return d, err
}

// Run implements planner.Elsewhere.
func (m *making) Run(ctx context.Context, p *manifest.Plan, phase string, shares []json.RawMessage) ([]json.RawMessage, error) {
	in := &manifest.Planning{Phase: phase, Basis: m.common}
	for i, s := range shares {
		if _, err := store.CreateBytes(ctx, m.Bucket, shareKey(m.task(p, phase, i)), s); err != nil {
			return nil, err
		}
		in.Shares = append(in.Shares, manifest.Digest(s))
	}
	results, err := m.run(ctx, p, len(shares), in)
	if err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, len(results))
	for i, r := range results {
		out[i] = r.Share
	}
	return out, nil
}

// Place implements planner.Elsewhere.
func (m *making) Place(ctx context.Context, p *manifest.Plan, from []manifest.File, to []*manifest.File) error {
	keys := make([]string, len(to))
	for i, f := range to {
		keys[i] = f.Key
	}
	of := *p
	of.EstimatedBytes = 0 // these tasks need no scratch space
	_, err := m.run(ctx, &of, min(m.N, len(from)), &manifest.Planning{Phase: phasePlace, From: from, To: keys})
	return err
}

func (m *making) task(p *manifest.Plan, phase string, i int) stages.Task {
	return stages.Task{Stage: stages.PlanningStage(m.id, phase), Crawl: p.Crawl, Round: p.Round, Partition: i}
}

// run runs the tasks of a phase, and returns their results.
func (m *making) run(ctx context.Context, p *manifest.Plan, n int, in *manifest.Planning) ([]*manifest.Result, error) {
	all := make([]stages.Task, n)
	for i := range all {
		all[i] = m.task(p, in.Phase, i)
	}
	if n == 0 {
		return nil, nil
	}
	in.Header, in.Crawl, in.Round, in.Plan, in.Tasks, in.Nonce = manifest.Header{Version: m.Version}, p.Crawl, p.Round, p.ID, n, m.nonce
	if _, err := manifest.Create(ctx, m.Bucket, inputsKey(all[0]), in); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var failed []error
	err := m.Execute(ctx, p, all, func(_ stages.Task, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, err)
		}
	})
	if err == nil && failed != nil {
		err = fmt.Errorf("%d of %d tasks of the plan failed; the first error: %w", len(failed), len(all), failed[0])
	}
	if err != nil {
		return nil, err
	}
	results := make([]*manifest.Result, len(all))
	err = roundstate.EachResult(ctx, m.Bucket, p, all, func(i int, r *manifest.Result, _ string) { results[i] = r })
	for i, r := range results {
		if err == nil && r == nil {
			err = fmt.Errorf("%s has no result, although it has ended; check that all tasks use this store: %w", all[i], stages.ErrPermanent)
		}
	}
	return results, remedied(err)
}

// remedied adds to an error about a lost or damaged document of the plan what to do.
func remedied(err error) error {
	if errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %s", err, spool.Remedy)
	}
	return err
}

func inputsKey(t stages.Task) string { return layout.Inputs(t.Crawl, t.Round, string(t.Stage)) }

// shareKey returns the key of the document with a task's work.
func shareKey(t stages.Task) string {
	return layout.StageDir(t.Crawl, t.Round, string(t.Stage)) + "shares/" + layout.Part(t.Partition) + ".json"
}

// depot implements spool.Depot.
type depot struct {
	bucket store.Bucket
	dir    string
}

// depotOf returns the depot of the plan to which a task belongs.
func depotOf(b store.Bucket, t stages.Task) depot {
	id, _ := t.Stage.Planning()
	return depot{b, layout.StageDir(t.Crawl, t.Round, string(stages.PlanningStage(id, workFolder)))}
}

// Bucket implements spool.Depot.
func (d depot) Bucket() store.Bucket { return d.bucket }

// Commit implements spool.Depot.
func (d depot) Commit(ctx context.Context, l table.Local, name string) (manifest.File, error) {
	return table.Commit(ctx, d.bucket, l, name, d.dir+name)
}

// Worker runs tasks of plans.
type Worker struct {
	Bucket  store.Bucket
	Scratch string // an existing local directory
	Version string
	Lookup  func(string) (string, bool)                                   // returns variables of the environment
	Open    func(ctx context.Context, name string) (source.Source, error) // opens a source
}

// RunTask runs one task. A task that has a result does nothing.
func (w *Worker) RunTask(ctx context.Context, t stages.Task) error {
	done, _, err := roundstate.LoadResult(ctx, w.Bucket, t)
	if err != nil || done != nil {
		return err
	}
	in, err := inputsOf(ctx, w.Bucket, t)
	if err != nil {
		return err
	}
	if in.Version != w.Version {
		return fmt.Errorf("%s: crawlbatch %q plans, and cannot give work to crawlbatch %q: use one version: %w", t, in.Version, w.Version, stages.ErrPermanent)
	}
	r := &manifest.Result{Header: manifest.Header{Version: w.Version}, Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: in.Plan}
	if in.Phase == phasePlace {
		err = placeShare(ctx, w.Bucket, in, t)
	} else {
		r.Share, err = w.runShare(ctx, in, t)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	if _, err := inputsOf(ctx, w.Bucket, t); err != nil { // the plan has ended meanwhile, so nobody would remove a result
		return err
	}
	_, err = manifest.Create(ctx, w.Bucket, roundstate.ResultKey(t), r)
	return err
}

// RunPod is RunTask for a pod of a Job. If a source changed since it was divided, another pod would see the same, so
// the error is permanent.
func (w *Worker) RunPod(ctx context.Context, t stages.Task) error {
	err := w.RunTask(ctx, t)
	if errors.Is(err, source.ErrChanged) {
		err = fmt.Errorf("%w: %w", err, stages.ErrPermanent)
	}
	return err
}

// inputsOf reads the document that says what a task does.
func inputsOf(ctx context.Context, b store.Bucket, t stages.Task) (*manifest.Planning, error) {
	var in manifest.Planning
	_, _, err := manifest.Load(ctx, b, inputsKey(t), &in)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%s: its plan has ended or was stopped: run `crawlbatch plan --month %s` again: %w", t, t.Crawl, stages.ErrPermanent)
	}
	if err == nil && (t.Partition < 0 || t.Partition >= in.Tasks) {
		err = fmt.Errorf("%s: the phase has %d tasks: %w", t, in.Tasks, stages.ErrPermanent)
	}
	return &in, remedied(err)
}

// runShare does the work of a task, and returns its result.
func (w *Worker) runShare(ctx context.Context, in *manifest.Planning, t stages.Task) (json.RawMessage, error) {
	work, _, err := w.Bucket.Get(ctx, shareKey(t), manifest.MaxBytes)
	if err == nil && (t.Partition >= len(in.Shares) || manifest.Digest(work) != in.Shares[t.Partition]) {
		err = fmt.Errorf("%q: %w", shareKey(t), manifest.ErrCorrupt)
	}
	if err != nil {
		return nil, remedied(err)
	}
	scratch, err := os.MkdirTemp(w.Scratch, "planning-")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	basis, err := load(ctx, w.Bucket, in, w.Version, w.Lookup)
	if err != nil {
		return nil, err
	}
	limits, request, err := basis.Request(ctx, scratch)
	if err != nil {
		return nil, err
	}
	open := func(name string) (source.Source, error) { return w.Open(ctx, name) }
	return planner.RunShare(ctx, limits, request, depotOf(w.Bucket, t), in.Phase, t.Partition, work, open)
}

// placeShare copies every file that is the task's to its place in the plan's folder.
func placeShare(ctx context.Context, b store.Bucket, in *manifest.Planning, t stages.Task) error {
	checked := manifest.NewChecked(b)
	checked.Add(spool.Remedy, in.From...)
	for i := t.Partition; i < len(in.From); i += in.Tasks {
		if err := planfile.CopyFile(ctx, checked, &in.From[i], in.To[i]); err != nil {
			return err
		}
	}
	return nil
}
