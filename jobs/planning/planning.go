// Package planning has tasks sort and write the files of a plan's partitions.
//
// The driver reads the sources, joins them with earlier rounds, and decides what is planned and in which
// partition. It stores the rows of each partition. The tasks of the phase write sort the rows, and write
// the same files as a plan in one process. The plan's ID follows from these files, so that only then the
// tasks of the phase place copy them to the plan's folder. The driver stores plan.json last.
//
// No round waits for these tasks. Their documents and working files are in the folders planning-ID-write and
// planning-ID-place of the round, and are removed at the end. A plan that was killed begins anew: it reads
// nothing of what the killed one left. A day later, the next plan in tasks of the round removes this.
package planning

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/stages"
)

// The phases of a plan in tasks.
const (
	phaseWrite = "write"
	phasePlace = "place"
)

// Execute runs tasks of the round of p, and calls done when a task has ended. Each task calls RunTask.
type Execute func(ctx context.Context, p *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error

// Tasks implements planner.Elsewhere. The caller calls Remove at the end.
type Tasks struct {
	bucket  store.Bucket
	n       int
	id      string
	now     time.Time
	version string
	execute Execute

	begin sync.Once
	dir   string // prefix of the folders of this plan; "" before the first write
	begun error
}

// New returns Tasks that divide each phase into at most n tasks.
func New(b store.Bucket, n int, now time.Time, version string, execute Execute) *Tasks {
	return &Tasks{bucket: b, n: n, id: stages.PlanningID(now), now: now, version: version, execute: execute}
}

// Store implements planner.Elsewhere.
func (t *Tasks) Store(ctx context.Context, m *manifest.Plan, partition int, path string) error {
	t.begin.Do(func() {
		t.dir = layout.RoundDir(m.Crawl, m.Round) + string(stages.PlanningStage(t.id, ""))
		t.begun = t.removeEnded(ctx, m)
	})
	if t.begun != nil {
		return t.begun
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = t.bucket.Create(ctx, rowsKey(t.task(m, phaseWrite, 0), partition), f, info.Size())
	}
	return errors.Join(err, f.Close())
}

// Write implements planner.Elsewhere.
func (t *Tasks) Write(ctx context.Context, m *manifest.Plan, parts *manifest.PlanParts) ([]manifest.PlanPart, error) {
	results, err := t.run(ctx, m, len(parts.Parts), &manifest.Planning{Phase: phaseWrite, Parts: parts})
	var written []manifest.PlanPart
	for _, r := range results {
		written = append(written, r.Parts...)
	}
	return written, err
}

// Place implements planner.Elsewhere.
func (t *Tasks) Place(ctx context.Context, m *manifest.Plan, from []manifest.File, to []*manifest.File) error {
	keys := make([]string, len(to))
	for i, f := range to {
		keys[i] = f.Key
	}
	_, err := t.run(ctx, m, len(from), &manifest.Planning{Phase: phasePlace, From: from, To: keys})
	return err
}

// Remove deletes the documents and working files of the plan.
func (t *Tasks) Remove(ctx context.Context) error {
	if t.dir == "" {
		return nil
	}
	return t.removeAll(ctx, t.dir, func(string) bool { return true })
}

// removeEnded deletes what plans in tasks of the round that were killed more than a day ago have left.
func (t *Tasks) removeEnded(ctx context.Context, m *manifest.Plan) error {
	dir := layout.RoundDir(m.Crawl, m.Round)
	return t.removeAll(ctx, dir+stages.PlanningPrefix, func(key string) bool {
		folder, _, _ := strings.Cut(key[len(dir):], "/")
		id, ok := stages.Stage(folder).Planning()
		return ok && stages.PlanningEnded(id, t.now)
	})
}

func (t *Tasks) removeAll(ctx context.Context, prefix string, which func(key string) bool) error {
	for o, err := range t.bucket.List(ctx, prefix) {
		if err == nil && which(o.Key) {
			err = t.bucket.Delete(ctx, o.Key)
		}
		if err != nil {
			return fmt.Errorf("remove the working files of a plan in tasks: %w", err)
		}
	}
	return nil
}

func (t *Tasks) task(m *manifest.Plan, phase string, i int) stages.Task {
	return stages.Task{Stage: stages.PlanningStage(t.id, phase), Crawl: m.Crawl, Round: m.Round, Partition: i}
}

// run runs a phase that has work for at most the given number of tasks, and returns the results of its tasks.
func (t *Tasks) run(ctx context.Context, m *manifest.Plan, most int, in *manifest.Planning) ([]*manifest.Result, error) {
	all := make([]stages.Task, min(t.n, most))
	for i := range all {
		all[i] = t.task(m, in.Phase, i)
	}
	in.Header, in.Crawl, in.Round, in.Plan, in.Tasks, in.Nonce = manifest.Header{Version: t.version}, m.Crawl, m.Round, m.ID, len(all), rand.Text()
	if _, err := manifest.Create(ctx, t.bucket, inputsKey(all[0]), in); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var failed []error
	err := t.execute(ctx, m, all, func(_ stages.Task, err error) {
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
	err = roundstate.EachResult(ctx, t.bucket, m, all, func(i int, r *manifest.Result, _ string) { results[i] = r })
	for i, r := range results {
		if err == nil && r == nil {
			err = fmt.Errorf("%s has no result, although it has ended; check that all tasks use this store: %w", all[i], stages.ErrPermanent)
		}
	}
	return results, err
}

func inputsKey(t stages.Task) string { return layout.Inputs(t.Crawl, t.Round, string(t.Stage)) }

// rowsKey returns the key of the rows of a partition.
func rowsKey(t stages.Task, partition int) string {
	return layout.StageDir(t.Crawl, t.Round, string(t.Stage)) + "rows/" + layout.Part(partition) + ".s2"
}

// RunTask runs one task. A task that has a result does nothing. The directory scratch is for working files.
func RunTask(ctx context.Context, b store.Bucket, scratch, version string, t stages.Task) error {
	done, _, err := roundstate.LoadResult(ctx, b, t)
	if err != nil || done != nil {
		return err
	}
	in, err := inputsOf(ctx, b, t)
	if err != nil {
		return err
	}
	if in.Version != version {
		return fmt.Errorf("%s: crawlbatch %q plans, and cannot give work to crawlbatch %q: use one version: %w", t, in.Version, version, stages.ErrPermanent)
	}
	r := &manifest.Result{Header: manifest.Header{Version: version}, Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: in.Plan}
	if in.Parts != nil {
		r.Parts, err = writeShare(ctx, b, scratch, in, t)
	} else {
		err = placeShare(ctx, b, in, t)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	if _, err := inputsOf(ctx, b, t); err != nil { // the plan has ended meanwhile, so nobody would remove a result
		return err
	}
	_, err = manifest.Create(ctx, b, roundstate.ResultKey(t), r)
	return err
}

// inputsOf reads the document that says what a task does.
func inputsOf(ctx context.Context, b store.Bucket, t stages.Task) (*manifest.Planning, error) {
	var in manifest.Planning
	_, _, err := manifest.Load(ctx, b, inputsKey(t), &in)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%s: its plan has ended or was stopped: run `crawlbatch plan --month %s` again: %w", t, t.Crawl, stages.ErrPermanent)
	}
	return &in, err
}

// writeShare writes the files of every partition that is the task's, and returns them.
func writeShare(ctx context.Context, b store.Bucket, scratch string, in *manifest.Planning, t stages.Task) (written []manifest.PlanPart, err error) {
	round := fmt.Sprintf("%s.%d", in.Crawl, in.Round)
	for i := t.Partition; i < len(in.Parts.Parts); i += in.Tasks {
		part := in.Parts.Parts[i]
		rows, err := b.Open(ctx, rowsKey(t, part.Partition))
		if err != nil {
			return nil, err
		}
		urls, spellings, err := planner.WritePart(ctx, scratch, round, in.Parts, &part, io.NewSectionReader(rows, 0, rows.Size()))
		if err = errors.Join(err, rows.Close()); err != nil {
			return nil, fmt.Errorf("partition %d: %w", part.Partition, err)
		}
		commit := func(l table.Local, dataset string) (*manifest.File, error) {
			f, err := table.Commit(ctx, b, l, dataset, layout.Working(t.Crawl, t.Round, string(t.Stage), dataset, part.Partition))
			return &f, err
		}
		if part.URLs, err = commit(urls, planfile.URLs); err != nil {
			return nil, err
		}
		if spellings.Path != "" {
			if part.Spellings, err = commit(spellings, planfile.Spellings); err != nil {
				return nil, err
			}
		}
		written = append(written, part)
	}
	return written, nil
}

// placeShare copies every file that is the task's to its place in the plan's folder.
func placeShare(ctx context.Context, b store.Bucket, in *manifest.Planning, t stages.Task) error {
	checked := manifest.NewChecked(b)
	checked.Add("plan again", in.From...)
	for i := t.Partition; i < len(in.From); i += in.Tasks {
		if err := planfile.CopyFile(ctx, checked, &in.From[i], in.To[i]); err != nil {
			return err
		}
	}
	return nil
}
