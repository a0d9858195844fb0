package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
)

const recomputeCheck = "the same inputs, the same bytes"

// checkRecompute computes the reduce tasks of the sample again from their frozen
// inputs and compares every part and the result with what was committed. Results
// that are missing are another check's; so is whether the stored bytes are those
// that the result names. What another version of crawlbatch made of the same inputs in
// other bytes, and what a reparse made while records were damaged that are whole now,
// is no violation: it is noted, with what to do.
func (a *audit) checkRecompute(ctx context.Context, r *round) error {
	a.note(7, recomputeCheck, "tasks", 0)
	if a.Config == nil {
		return nil
	}
	var tasks []stages.Task
	var names []string
	for _, stage := range stages.Order {
		for n, committed := range r.results[stage] {
			if t := (stages.Task{Stage: stage, Crawl: r.crawl, Round: r.number, Partition: n}); a.computes(stage) && committed != nil && !a.brokenInputs(r, t) {
				tasks = append(tasks, t)
				names = append(names, t.String())
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.Parallel)
	for i, in := range a.sampledOf(names) {
		if t := tasks[i]; in {
			g.Go(func() error { return a.recompute(ctx, t, r.results[t.Stage][t.Partition]) })
		}
	}
	return g.Wait()
}

// brokenInputs tells whether a task may read an object that was reported as
// unreadable already: nothing follows from what it would give.
func (a *audit) brokenInputs(r *round, t stages.Task) bool {
	var files []manifest.File
	if t.Stage == stages.Fetch {
		for _, f := range r.results[t.Stage][t.Partition].Files {
			if !ownFile(r, f) && a.isBroken(f.Key) {
				return true // of the crawl that fetched
			}
		}
	}
	for _, from := range roundstate.Feeds(t.Stage) {
		for n, result := range r.results[from] {
			if result != nil && (t.Stage != stages.Merge || n == t.Partition) {
				files = append(files, result.Files...)
			}
		}
	}
	for _, s := range r.earlier {
		files = append(files, s.FilesOf(stages.FileURLs)...)
		files = append(files, s.FilesOf(stages.FileRepresentatives)...)
	}
	files = slices.DeleteFunc(files, func(f manifest.File) bool { return f.Dataset == stages.FileWARC || f.Dataset == stages.FileCDXJ })
	if p := r.plan; p.RefusedFile != nil {
		files = append(files, *p.RefusedFile)
	}
	for _, p := range r.plan.Partitions {
		files = append(files, p.File)
	}
	return a.isBroken(keysOf(files)...)
}

// recompute compares one task's result.
func (a *audit) recompute(ctx context.Context, t stages.Task, committed *manifest.Result) error {
	v := Violation{
		Invariant: 7, Check: recomputeCheck, Round: t.Round, Row: t.String(),
		Object: layout.Result(t.Crawl, t.Round, string(t.Stage), t.Partition),
	}
	again := worker.Runner{
		Archive: a.Archive, Bucket: a.Bucket, Config: a.Config, Version: "verify", Scratch: a.Scratch, Clock: stages.SystemClock{},
		Log:      slog.New(slog.DiscardHandler), // warnings about rows were logged when the task ran
		Progress: stages.NoProgress{},
	}
	result, _, release, err := again.Recompute(ctx, t)
	if err != nil {
		if !isFault(err) && !errors.Is(err, stages.ErrPermanent) {
			return err
		}
		v.Problem = "it cannot be computed again: " + err.Error()
		a.report(v)
		return nil
	}
	release()
	if t.Stage == stages.Frontier && len(committed.FilesOf(stages.FileURLFilter)) == 0 {
		// An older version made it, without the Bloom file.
		result.Files = slices.DeleteFunc(result.Files, func(f manifest.File) bool { return f.Dataset == stages.FileURLFilter })
	}
	found, err := differences(result, committed, v)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		a.note(7, recomputeCheck, "tasks", 1)
		return nil
	}
	if n := committed.Count(fetch.CountDamaged) - result.Count(fetch.CountDamaged); t.Stage == stages.Fetch && n > 0 {
		a.tell("%s: not looked at: %d records readable now were damaged when %s was made, so their pages have the rows of the crawl that fetched: "+
			"for rows of this parser, reparse under another name", t, n, t.Crawl)
		return nil
	}
	maker, err := a.makerOf(ctx, t)
	if err != nil {
		return err
	}
	if a.Version != "" && maker != "" && maker != a.Version {
		a.mu.Lock()
		a.others[otherMaker{t.Round, maker}]++
		a.mu.Unlock()
		return nil
	}
	a.note(7, recomputeCheck, "tasks", 1)
	for _, v := range found {
		a.report(v)
	}
	return nil
}

// makerOf is the version of crawlbatch that began a task's stage; "" if nothing says it.
// Another may store the same rows in other bytes.
func (a *audit) makerOf(ctx context.Context, t stages.Task) (string, error) {
	var in manifest.Inputs
	_, _, err := manifest.Load(ctx, a.Bucket, layout.Inputs(t.Crawl, t.Round, string(t.Stage)), &in)
	if err == nil {
		return in.Version, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		if isFault(err) {
			return "", nil // reported by who reads the documents
		}
		return "", err
	}
	p, _, err := roundstate.FindPlan(ctx, a.Bucket, t.Crawl, t.Round) // of others' WARC files: nothing is frozen but the plan
	if err != nil {
		return "", err
	}
	return p.Version, nil
}

// differences compares what the inputs of a task give with its result. Each is v with
// what differs.
func differences(result, committed *manifest.Result, v Violation) (found []Violation, err error) {
	made := map[string]manifest.File{}
	for _, f := range result.Files {
		made[f.Key] = f
	}
	for _, f := range committed.Files {
		m, ok := made[f.Key]
		if m == f {
			continue
		}
		v := v
		v.Object = f.Key
		v.Problem = fmt.Sprintf("its inputs give %d rows, %d bytes with SHA-256 %s; the result names %d rows, %d bytes with %s", m.Rows, m.Bytes, m.SHA256, f.Rows, f.Bytes, f.SHA256)
		if !ok {
			v.Problem = "the result names it, and its inputs give no such part"
		}
		found = append(found, v)
	}
	if found != nil {
		return found, nil
	}
	want, err := manifest.Encode(committed)
	if err != nil {
		return nil, err
	}
	got, err := manifest.Encode(result)
	if err != nil {
		return nil, err
	}
	if string(got) != string(want) {
		v.Problem = fmt.Sprintf("its inputs give a result of %d files with SHA-256 %s; %d files with %s are committed",
			len(result.Files), manifest.Digest(got), len(committed.Files), manifest.Digest(want))
		found = append(found, v)
	}
	return found, nil
}
