package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
)

// checkInputs compares the frozen inputs of a stage with the results in the store.
func (a *Audit) checkInputs(ctx context.Context, r *Round, stage stages.Stage) error {
	if stage == stages.Fetch {
		return a.checkSource(ctx, r)
	}
	key := layout.Inputs(r.Crawl, r.Number, string(stage))
	in, err := a.inputs(ctx, r, stage)
	if err != nil || in == nil || a.lost[key] { // an inputs.json that differs from the ledger proves nothing about the results
		return err
	}
	next := 0
	for _, from := range roundstate.Feeds(stage) {
		for n, digest := range r.digests[from] {
			t := stages.Task{Stage: from, Crawl: r.Crawl, Round: r.Number, Partition: n}
			if next >= len(in.Tasks) || in.Tasks[next].Stage != string(from) || in.Tasks[next].Partition != n {
				a.misplaced(r.Number, key, "it lacks the result of %s, or lists it in another place", t)
				return nil
			}
			frozen, result := in.Tasks[next].SHA256, roundstate.ResultKey(t)
			next++
			switch {
			case a.Broken(result):
			case digest == "":
				if exists, err := manifest.Exists(ctx, a.Bucket, result); err != nil || exists { // another process has created the result since the audit looked for it
					return err
				}
				a.misplaced(r.Number, result, "it is missing, though %s was made from it: restore the one with SHA-256 %s", stage, frozen)
			case digest != frozen:
				a.misplaced(r.Number, result, "its SHA-256 is %s, but %s was made from a result with SHA-256 %s: restore that result", digest, stage, frozen)
			}
		}
	}
	if next < len(in.Tasks) {
		a.misplaced(r.Number, key, "it lists %d results, the stage reads %d", len(in.Tasks), next)
	}
	return nil
}

// checkSource compares the frozen inputs of the fetch stage of a reparse with the results in the
// store.
func (a *Audit) checkSource(ctx context.Context, r *Round) error {
	if a.Reparse == nil || a.Reparse.Of == "" {
		return nil
	}
	in, err := a.inputs(ctx, r, stages.Fetch)
	if err != nil || in == nil {
		return err
	}
	if len(in.Tasks) != len(r.Plan.Partitions) {
		a.misplaced(r.Number, layout.Inputs(r.Crawl, r.Number, string(stages.Fetch)), "it lists %d results, the plan has %d partitions: restore it from a copy", len(in.Tasks), len(r.Plan.Partitions))
		return nil
	}
	for n, task := range in.Tasks {
		source := layout.Result(a.Reparse.Of, r.Number, string(stages.Fetch), n)
		if a.Broken(source) {
			continue
		}
		digest, ok, err := a.readDocument(ctx, r.Number, source, &manifest.Result{}, true)
		if err != nil {
			return err
		}
		if ok && digest != task.SHA256 {
			a.misplaced(r.Number, source, "its SHA-256 is %s, but %s was made from a result with SHA-256 %s: restore that result", digest, r.Crawl, task.SHA256)
		}
	}
	return nil
}

// inputs reads inputs.json of a stage. It returns nil if the document is missing or belongs to another
// stage or plan. If a task of the stage has a result, a missing document is a violation.
func (a *Audit) inputs(ctx context.Context, r *Round, stage stages.Stage) (*manifest.Inputs, error) {
	begun := slices.ContainsFunc(r.digests[stage], func(digest string) bool { return digest != "" })
	key := layout.Inputs(r.Crawl, r.Number, string(stage))
	var in manifest.Inputs
	_, ok, err := a.readDocument(ctx, r.Number, key, &in, begun)
	if err != nil || !ok {
		return nil, err
	}
	if in.Stage != string(stage) || in.Plan != r.Plan.ID {
		a.misplaced(r.Number, key, "it holds the inputs of %s for plan %q, not of %s for plan %q: restore it from a copy", in.Stage, in.Plan, stage, r.Plan.ID)
		return nil, nil
	}
	return &in, nil
}

// loadSealed reads the seal of the round and its manifests, if the round is sealed. If one of the
// manifests is lost, the seal counts as unreadable.
func (a *Audit) loadSealed(ctx context.Context, r *Round) error {
	key := layout.Sealed(r.Crawl, r.Number)
	var s manifest.Sealed
	_, ok, err := a.readDocument(ctx, r.Number, key, &s, false)
	if err != nil || !ok {
		return err
	}
	if s.Crawl != r.Crawl || s.Round != r.Number || s.Plan != r.Plan.ID {
		a.setBroken(key)
		a.misplaced(r.Number, key, "it seals round %d of crawl %q with plan %q: restore the one that belongs here", s.Round, s.Crawl, s.Plan)
		return nil
	}
	filled, err := roundstate.WithFiles(ctx, a.Bucket, []*manifest.Sealed{&s}, roundstate.Selection{})
	a.Count(documents, int64(len(s.Manifests)))
	if lost, ok := errors.AsType[*ledger.Lost](err); ok {
		a.reportLoss(lost)
		a.setBroken(key)
		return nil
	}
	if err != nil {
		return a.Fault(err, documents, r.Number, key)
	}
	r.Sealed = filled[0]
	return nil
}

// checkSealed compares the seal with sealing, which was made from the results.
func (a *Audit) checkSealed(r *Round, sealing *publish.Sealing) error {
	if r.Sealed == nil {
		return nil
	}
	whole := true
	for _, stage := range stages.Of(r.Plan) {
		for n := range r.Tasks(stage) {
			if r.Has(stage, n) {
				continue
			}
			whole = false
			// If another stage reads the missing result, checkInputs reports it.
			if missing := layout.Result(r.Crawl, r.Number, string(stage), n); !a.Broken(missing) && !feedsSome(stage) {
				a.misplaced(r.Number, missing, "it is missing, though the round is sealed: restore it from a copy")
			}
		}
	}
	if !whole {
		return nil
	}
	sealing.AddAccounts(r.accounts())
	want, err := sealing.Listed()
	if err != nil {
		return err
	}
	key := layout.Sealed(r.Crawl, r.Number)
	advice := "restore from a copy whichever was changed"
	vouched := a.Ledger != nil && a.Ledger.Newest(manifest.EntrySealed, r.Number) != nil && !a.lost[key]
	if vouched {
		advice = "the seal has the recorded digest, so the result was changed: restore it from a copy"
	}
	for _, d := range Differences(want.Files, r.Sealed.Files, func(f manifest.File) string { return f.Key }) {
		at := At{Object: key, Row: d.Name}
		if maker := r.resultOf(d.Got); vouched && maker != "" {
			at.Object = maker
		}
		a.Wrong(documents, r.Number, at, "the seal %s this file: the results list %s, the seal lists %s; %s", d.How, FileText(d.Want), FileText(d.Got), advice)
	}
	for _, d := range Differences(want.Counts, r.Sealed.Counts, func(c manifest.Count) string { return c.Name }) {
		a.Wrong(documents, r.Number, At{Object: key, Row: d.Name}, "the seal %s this count: the results sum to %d, the seal says %d; %s", d.How, d.Want.N, d.Got.N, advice)
	}
	return nil
}

// accounts returns the parts of the datasets stages and runs that the seal lists. Their contents
// depend on times, so the audit cannot compute what they should be.
func (r *Round) accounts() (files []manifest.File) {
	for _, dataset := range publish.Accounts {
		for _, f := range r.Sealed.FilesOf(dataset) {
			if f.Key == publish.AccountKey(r.Plan, dataset) {
				files = append(files, f)
			}
		}
	}
	return files
}

// resultOf returns the key of the result that lists a part of a reduce task. If no result lists the
// part, resultOf returns "".
func (r *Round) resultOf(f manifest.File) string {
	stage := makerOf[f.Dataset]
	if rest, ok := strings.CutPrefix(f.Key, layout.RoundDir(r.Crawl, r.Number)); ok {
		folder, _, _ := strings.Cut(rest, "/")
		stage = stages.Stage(folder)
	}
	n, err := layout.PartOf(f.Key)
	if writer, ok := domains.Writer(r.Plan, n); f.Dataset == stages.FileDomains && ok {
		n = writer
	}
	if err != nil || stage == "" {
		return ""
	}
	return layout.Result(r.Crawl, r.Number, string(stage), n)
}

// feedsSome reports whether any stage of a round reads the results of the given stage.
func feedsSome(stage stages.Stage) bool {
	return slices.ContainsFunc(stages.Order, func(s stages.Stage) bool { return slices.Contains(roundstate.Feeds(s), stage) })
}

// FileText describes a file that a document lists. For the zero value, the text is "no such file".
func FileText(f manifest.File) string {
	if f.Key == "" {
		return "no such file"
	}
	return fmt.Sprintf("%d rows of %s in %d bytes with SHA-256 %s", f.Rows, strings.TrimSpace(f.Dataset+" "+f.Subset), f.Bytes, f.SHA256)
}

// Difference is an entry in which a list differs from the wanted list.
type Difference[T any] struct {
	Name, How string // name of the entry, and what the list does: it "lacks", "should not list" or "differs in" the entry
	Want, Got T
}

// Differences compares two lists that are sorted by name.
func Differences[T comparable](want, got []T, name func(T) string) []Difference[T] {
	var out []Difference[T]
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && name(want[0]) < name(got[0]):
			out = append(out, Difference[T]{Name: name(want[0]), How: "lacks", Want: want[0]})
			want = want[1:]
		case len(want) == 0 || name(got[0]) < name(want[0]):
			out = append(out, Difference[T]{Name: name(got[0]), How: "should not list", Got: got[0]})
			got = got[1:]
		default:
			if want[0] != got[0] {
				out = append(out, Difference[T]{name(want[0]), "differs in", want[0], got[0]})
			}
			want, got = want[1:], got[1:]
		}
	}
	return out
}
