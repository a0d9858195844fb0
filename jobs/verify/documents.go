package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// checkpoints is the check that the result of a fetch task is what its complete
// checkpoint lists.
const checkpoints = "checkpoints"

// checkInputs compares the frozen inputs of a stage with the results that stand there.
func (a *audit) checkInputs(ctx context.Context, r *round, stage stages.Stage) error {
	if stage == stages.Fetch && a.reparse != nil {
		return a.checkSource(ctx, r)
	}
	feeds := roundstate.Feeds(stage)
	if len(feeds) == 0 {
		return nil
	}
	begun := slices.ContainsFunc(r.results[stage], func(res *manifest.Result) bool { return res != nil })
	key := layout.Inputs(r.crawl, r.number, string(stage))
	var in manifest.Inputs
	_, ok, err := a.document(ctx, r.number, key, &in, begun)
	if err != nil || !ok {
		return err
	}
	if in.Stage != string(stage) || in.Plan != r.plan.ID {
		a.misplaced(r.number, key, "it holds the inputs of %s for plan %q, not of %s for plan %q: restore it", in.Stage, in.Plan, stage, r.plan.ID)
		return nil
	}
	next := 0
	for _, from := range feeds {
		for n, digest := range r.digests[from] {
			t := stages.Task{Stage: from, Crawl: r.crawl, Round: r.number, Partition: n}
			result := layout.Result(r.crawl, r.number, string(from), n)
			if next >= len(in.Tasks) || in.Tasks[next].Stage != string(from) || in.Tasks[next].Partition != n {
				a.misplaced(r.number, key, "it lacks the result of %s, or does not list it in its place", t)
				return nil
			}
			frozen := in.Tasks[next].SHA256
			next++
			switch {
			case a.isBroken(result):
			case r.results[from][n] == nil:
				if there, err := manifest.Exists(ctx, a.Bucket, result); err != nil || there { // by now
					return err
				}
				a.misplaced(r.number, result, "it is missing, though %s was made from it: restore the one with SHA-256 %s", stage, frozen)
			case digest != frozen:
				a.misplaced(r.number, result, "its SHA-256 is %s, %s was made from one with %s: restore that", digest, stage, frozen)
			}
		}
	}
	if next < len(in.Tasks) {
		a.misplaced(r.number, key, "it lists %d results, %d feed the stage", len(in.Tasks), next)
	}
	return nil
}

// loadSealed reads the seal of the round, if it has one.
func (a *audit) loadSealed(ctx context.Context, r *round) error {
	key := layout.Sealed(r.crawl, r.number)
	var s manifest.Sealed
	_, ok, err := a.document(ctx, r.number, key, &s, false)
	if err != nil || !ok {
		return err
	}
	if s.Crawl != r.crawl || s.Round != r.number || s.Plan != r.plan.ID {
		a.setBroken(key)
		a.misplaced(r.number, key, "it seals round %d of crawl %q with plan %q: restore the one that belongs here", s.Round, s.Crawl, s.Plan)
		return nil
	}
	r.sealed = &s
	return nil
}

// checkSealed compares the seal with what the results say.
func (a *audit) checkSealed(r *round) error {
	if r.sealed == nil {
		return nil
	}
	key, s := layout.Sealed(r.crawl, r.number), r.sealed
	whole := true
	for _, stage := range stages.Order {
		for n, result := range r.results[stage] {
			if result != nil {
				continue
			}
			whole = false
			if missing := layout.Result(r.crawl, r.number, string(stage), n); !a.isBroken(missing) && !feedsSome(stage) {
				// Those that feed a stage are missed by its inputs.json.
				a.misplaced(r.number, missing, "it is missing, though the round is sealed: restore it")
			}
		}
	}
	if !whole {
		return nil
	}
	want, err := publish.Seal(r.plan, r.results)
	if err != nil {
		return err
	}
	for _, d := range difference(want.Files, s.Files, func(f manifest.File) string { return f.Key }) {
		a.report(Violation{Check: documents, Round: r.number, Object: key, Row: d.name, Problem: fmt.Sprintf("the seal %s this file: the results say %+v, it says %+v", d.how, d.want, d.got)})
	}
	for _, d := range difference(want.Counts, s.Counts, func(c manifest.Count) string { return c.Name }) {
		a.report(Violation{Check: documents, Round: r.number, Object: key, Row: d.name, Problem: fmt.Sprintf("the seal %s this count: the results sum to %d, it says %d", d.how, d.want.N, d.got.N)})
	}
	return nil
}

// feedsSome reports whether some stage reads the results of this one.
func feedsSome(stage stages.Stage) bool {
	return slices.ContainsFunc(stages.Order, func(s stages.Stage) bool { return slices.Contains(roundstate.Feeds(s), stage) })
}

// differing is an entry that two lists do not agree on.
type differing[T any] struct {
	name, how string
	want, got T
}

// difference compares two lists that are sorted by name.
func difference[T comparable](want, got []T, name func(T) string) []differing[T] {
	var out []differing[T]
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && name(want[0]) < name(got[0]):
			out = append(out, differing[T]{name: name(want[0]), how: "lacks", want: want[0]})
			want = want[1:]
		case len(want) == 0 || name(got[0]) < name(want[0]):
			out = append(out, differing[T]{name: name(got[0]), how: "should not list", got: got[0]})
			got = got[1:]
		default:
			if want[0] != got[0] {
				out = append(out, differing[T]{name: name(want[0]), how: "differs in", want: want[0], got: got[0]})
			}
			want, got = want[1:], got[1:]
		}
	}
	return out
}

// checkCheckpoint compares the result of a fetch task with the checkpoint that it
// was made from. Of a task under way, it looks for the files that are recorded.
func (a *audit) checkCheckpoint(ctx context.Context, r *round, n int) error {
	if a.reparse != nil {
		return nil // it has none: what its fetch tasks make is computed again
	}
	key := layout.Checkpoint(r.crawl, r.number, n)
	result := r.results[stages.Fetch][n]
	var c manifest.Checkpoint
	_, _, err := manifest.Load(ctx, a.Bucket, key, &c)
	if err != nil {
		if result == nil && isMissing(err) {
			return nil // not begun
		}
		return a.fault(err, 0, checkpoints, r.number, key)
	}
	a.note(0, checkpoints, "checkpoints", 1)
	wrong := func(format string, args ...any) {
		a.report(Violation{Check: checkpoints, Round: r.number, Object: key, Problem: fmt.Sprintf(format, args...)})
	}
	if c.Plan != r.plan.ID || c.Partition != n {
		wrong("it is of partition %d of plan %q, not of %d of %q: restore the one that belongs here", c.Partition, c.Plan, n, r.plan.ID)
		return nil
	}
	recorded := roaring.New()
	if len(c.Recorded) > 0 {
		if err := recorded.UnmarshalBinary(c.Recorded); err != nil {
			wrong("its bitmap of recorded rows cannot be read: %v", err)
			return nil
		}
	}
	planned := r.plan.Partitions[n].URLs
	rows := int64(recorded.GetCardinality())
	if rows > planned || rows > 0 && int64(recorded.Maximum()) >= planned {
		wrong("it records %d rows up to row %d of a partition of %d", rows, recorded.Maximum(), planned)
	}
	if result == nil {
		for _, f := range c.Files {
			if err := a.present(ctx, r, f, "a checkpoint lists it: what was fetched is lost; restore it"); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case a.isBroken(layout.Result(r.crawl, r.number, string(stages.Fetch), n)):
	case !c.Complete:
		wrong("it is not complete, though the task has a result")
	case rows != planned:
		wrong("it records %d of %d planned URLs, and says complete", rows, planned)
	case !slices.Equal(c.Files, result.Files):
		for _, d := range difference(c.Files, result.Files, func(f manifest.File) string { return f.Key }) {
			a.report(Violation{Check: checkpoints, Round: r.number, Object: layout.Result(r.crawl, r.number, string(stages.Fetch), n), Row: d.name,
				Problem: fmt.Sprintf("the result %s this file: the checkpoint says %+v, it says %+v", d.how, d.want, d.got)})
		}
	case !slices.Equal(c.Counts, result.Counts):
		wrong("its counts %v are not those of the result %v", c.Counts, result.Counts)
	}
	return nil
}
