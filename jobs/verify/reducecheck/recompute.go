package reducecheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/reparse"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
)

// SameInputsGiveSameBytes recomputes the reduce tasks in the sample and in the audit's share from their
// frozen inputs. It compares the rows of every part, and the result, with those that the task committed.
// If they differ, it writes the task's parts again and compares their bytes. Different bytes are a
// violation, with two exceptions that only cause a note: another version of crawlbatch made the result,
// or the source of a reparse was damaged during the reparse and is whole now. Other checks report missing
// results, and stored bytes that do not match the result.
func SameInputsGiveSameBytes(ctx context.Context, a *audit.Audit, r *audit.Round) error {
	a.Count(resultsReproduced, 0)
	if a.Config == nil {
		return nil
	}
	unreadable, err := unreadableInputs(ctx, a, r)
	if err != nil {
		return err
	}
	var tasks []stages.Task
	for _, stage := range stages.Of(r.Plan) {
		for n := range r.Tasks(stage) {
			t := stages.Task{Stage: stage, Crawl: r.Crawl, Round: r.Number, Partition: n}
			switch {
			case !computable(a, stage) || !r.Has(stage, n):
			case unreadable.mayBeReadBy(r.Plan, t):
				a.NoteOwnPruned(r.Number, resultsReproduced)
			case !readsPruned(a, r, t):
				tasks = append(tasks, t)
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.Parallel)
	for i, in := range a.SampledOf(len(tasks), func(i int) string { return tasks[i].String() }) {
		if t := tasks[i]; in && a.Share.HasNamed(t.String()) {
			g.Go(func() error {
				committed, err := r.Result(ctx, t.Stage, t.Partition)
				if err != nil {
					return a.Skip(err, resultsReproduced, r)
				}
				return Recompute(ctx, a, t, committed)
			})
		}
	}
	return g.Wait()
}

// readsPruned reports whether a task read files of months that were pruned since then.
func readsPruned(a *audit.Audit, r *audit.Round, t stages.Task) bool {
	switch t.Stage {
	case stages.Merge:
		return a.AnyPruned(r.Earlier, r.Number, resultsReproduced)
	case stages.Digest, stages.Cluster, stages.Dedup:
		reads := t.Stage != stages.Dedup || stages.Cluster.Tasks(r.Plan) == 0 // with a cluster task, dedup tasks only write
		return reads && a.AnyPruned(stages.Since(r.Earlier, r.Crawl, a.Config.Dedup.Months), r.Number, resultsReproduced)
	case stages.Frontier:
		cut := urlstate.After(r.Earlier).Chain(t.Partition, r.Plan.Buckets).Cut()
		if cut {
			a.NotePruned(r.Number, resultsReproduced)
		}
		return cut
	case stages.Publish:
		return domains.WrittenBy(r.Plan, t.Partition) && a.AnyPruned(domains.Earlier(r.Earlier), r.Number, resultsReproduced)
	}
	return false
}

// computable reports whether this program can compute the results of a stage from stored data.
func computable(a *audit.Audit, stage stages.Stage) bool {
	return stage != stages.Fetch || a.Reparse != nil && a.Reparse.Parser == worker.ParserVersion
}

// unreadableFiles tells which results list an unreadable file. The audit has reported these files.
type unreadableFiles struct {
	all     bool // true: every task reads an unreadable file
	results map[stages.Stage][]bool
	foreign []bool // for each fetch task of a reparse, whether an unreadable file of the crawl that fetched is among its inputs
}

// mayBeReadBy reports whether an unreadable file could be among a task's inputs. Recomputing such a task
// proves nothing.
func (u *unreadableFiles) mayBeReadBy(p *manifest.Plan, t stages.Task) bool {
	if u.all || t.Stage == stages.Fetch && u.foreign != nil && u.foreign[t.Partition] {
		return true
	}
	for _, from := range roundstate.Feeds(t.Stage) {
		for n, unreadable := range u.results[from] {
			if unreadable && (t.Stage != stages.Merge || n == t.Partition) {
				return true
			}
		}
	}
	return false
}

// unreadableInputs looks for unreadable files among those that the tasks of a round read.
func unreadableInputs(ctx context.Context, a *audit.Audit, r *audit.Round) (u unreadableFiles, err error) {
	if !a.AnyBroken() {
		return u, nil
	}
	var files []manifest.File
	for _, s := range r.Earlier {
		files = append(files, s.FilesOf(stages.FileURLs)...)
		files = append(files, s.FilesOf(stages.FileURLsBase)...)
		files = append(files, s.FilesOf(stages.FileRepresentatives)...)
		files = append(files, s.FilesOf(stages.FileDomains)...)
	}
	files = append(files, r.Plan.Lists()...)
	for _, p := range r.Plan.Partitions {
		files = append(files, p.File)
	}
	u = unreadableFiles{all: a.Broken(audit.Keys(files)...), results: map[stages.Stage][]bool{}, foreign: make([]bool, r.Tasks(stages.Fetch))}
	for _, stage := range stages.Of(r.Plan) {
		u.results[stage] = make([]bool, r.Tasks(stage))
		for n := range r.Tasks(stage) {
			result, err := r.Result(ctx, stage, n)
			if err != nil {
				return u, err
			}
			if result == nil {
				continue
			}
			// The texts of pages that kept their rows may now come from the published table, which has one for each URL.
			if stage == stages.Fetch && a.SourcePruned() && result.Count(reparse.CountWithheld)+result.Count(reparse.CountDamaged) > 0 {
				u.foreign[n] = true
			}
			for _, f := range result.Files {
				if !a.Broken(f.Key) {
					continue
				}
				u.results[stage][n] = u.results[stage][n] || f.Dataset != stages.FileWARC && f.Dataset != stages.FileCDXJ
				if stage == stages.Fetch {
					u.foreign[n] = u.foreign[n] || !r.OwnFile(f)
				}
			}
		}
	}
	return u, nil
}

// Recompute recomputes one task and compares the result with the committed result.
func Recompute(ctx context.Context, a *audit.Audit, t stages.Task, committed *manifest.Result) error {
	again := worker.Runner{
		Archive: a.Archive, Bucket: a.Bucket, Config: a.Config, Version: "verify", Scratch: a.Scratch, Clock: stages.SystemClock{},
		Log:      slog.New(slog.DiscardHandler), // because the task logged its warnings when it first ran
		Progress: stages.NoProgress{},
	}
	sound := committed
	if !a.Sound {
		sound = nil
	}
	if result, err := again.Reproduce(ctx, t, sound); err == nil {
		if found, err := differences(result, committed, roundstate.ResultKey(t)); err == nil && len(found) == 0 {
			a.Decoded(t)
			a.Count(resultsReproduced, 1)
			return nil
		}
	}
	// Reproduce does not say which objects differ, so Recompute makes all parts again, and their bytes
	// are compared.
	result, _, release, err := again.Recompute(ctx, t)
	if err != nil {
		if !audit.IsFault(err) && !errors.Is(err, stages.ErrPermanent) {
			return err
		}
		a.Wrong(resultsReproduced, t.Round, audit.At{Object: roundstate.ResultKey(t), Row: t.String()}, "it cannot be computed again: %v", err)
		return nil
	}
	release()
	found, err := differences(result, committed, roundstate.ResultKey(t))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		a.Count(resultsReproduced, 1)
		return nil
	}
	if n := committed.Count(reparse.CountDamaged) - result.Count(reparse.CountDamaged); t.Stage == stages.Fetch && n > 0 {
		a.Note("%s: not compared: %d records that are readable now were damaged when %s was made, so their pages have the rows of the crawl that fetched: "+
			"for rows of this parser, reparse under another name", t, n, t.Crawl)
		return nil
	}
	maker, err := makerOf(ctx, a, t)
	if err != nil {
		return err
	}
	if a.Version != "" && maker != "" && maker != a.Version {
		a.CountNote(fmt.Sprintf("round %d, %s: not compared: for {n} tasks, this crawlbatch %s computes other bytes than %s, which made the results: check with that version",
			t.Round, resultsReproduced.Name, a.Version, maker), "")
		return nil
	}
	a.Count(resultsReproduced, 1)
	for _, d := range found {
		a.Wrong(resultsReproduced, t.Round, audit.At{Object: d.key, Row: t.String()}, "%s", d.problem)
	}
	return nil
}

// makerOf returns the version of crawlbatch that began a task's stage, or "" if the version is
// unknown. Another version may store the same rows as different bytes.
func makerOf(ctx context.Context, a *audit.Audit, t stages.Task) (string, error) {
	var in manifest.Inputs
	_, _, err := manifest.Load(ctx, a.Bucket, layout.Inputs(t.Crawl, t.Round, string(t.Stage)), &in)
	if err == nil {
		return in.Version, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		if audit.IsFault(err) {
			return "", nil // the checks of documents have reported the fault
		}
		return "", err
	}
	p, _, err := roundstate.FindPlan(ctx, a.Bucket, t.Crawl, t.Round) // a reparse of external WARC files has no inputs.json; only its plan names the version
	if err != nil {
		return "", err
	}
	return p.Version, nil
}

// differingObject names an object that differs from its recomputed version.
type differingObject struct{ key, problem string }

// differences compares a recomputed result with the committed result, whose key is given.
func differences(result, committed *manifest.Result, key string) (found []differingObject, err error) {
	made := map[string]manifest.File{}
	for _, f := range result.Files {
		made[f.Key] = f
	}
	for _, f := range committed.Files {
		m, ok := made[f.Key]
		if m == f {
			continue
		}
		problem := fmt.Sprintf("its inputs give %d rows, %d bytes with SHA-256 %s; the result names %d rows, %d bytes with %s", m.Rows, m.Bytes, m.SHA256, f.Rows, f.Bytes, f.SHA256)
		if !ok {
			problem = "the result names it, but its inputs give no such part"
		}
		found = append(found, differingObject{f.Key, problem})
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
		found = append(found, differingObject{key, fmt.Sprintf("its inputs give a result of %d files with SHA-256 %s; %d files with %s are committed",
			len(result.Files), manifest.Digest(got), len(committed.Files), manifest.Digest(want))})
	}
	return found, nil
}
