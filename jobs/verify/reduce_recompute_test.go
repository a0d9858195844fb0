package verify

import (
	"context"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

func TestEveryReduceTaskGivesTheSameBytesAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	tasks := 0
	for number := range 2 {
		r := d.load(number)
		for _, s := range stages.Order[1:] {
			tasks += s.Tasks(r.Plan)
		}
		if err := reducecheck.SameInputsGiveSameBytes(t.Context(), d.a, r); err != nil {
			t.Fatal(err)
		}
	}
	d.expectClean(7)
	if got := d.itemsRead(recomputeCheck); got != int64(tasks) {
		t.Errorf("%d tasks were computed again, there are %d", got, tasks)
	}
}

func TestASampleIsAShareOfTheTasks(t *testing.T) {
	d := copyCrawl(t)
	d.a.Sample = 0.3
	if err := reducecheck.SameInputsGiveSameBytes(t.Context(), d.a, d.load(0)); err != nil {
		t.Fatal(err)
	}
	d.expectClean(7)
	all := 0
	for _, s := range stages.Order[1:] {
		all += d.load(0).Tasks(s)
	}
	if got := d.itemsRead(recomputeCheck); got >= int64(all) {
		t.Errorf("%d of %d tasks", got, all)
	}
}

func TestAResultThatItsInputsDoNotGiveIsFound(t *testing.T) {
	d := copyCrawl(t)
	forge := func(s stages.Stage, change func(*manifest.Result)) manifest.Result {
		forged := *d.result(0, s, 0)
		forged.Files, forged.Counts = slices.Clone(forged.Files), slices.Clone(forged.Counts)
		change(&forged)
		if err := reducecheck.Recompute(t.Context(), d.a, stages.Task{Stage: s, Crawl: testCrawl}, &forged); err != nil {
			t.Fatal(err)
		}
		return forged
	}
	part := forge(stages.Frontier, func(f *manifest.Result) { f.Files[0].SHA256 = manifest.Digest([]byte("other bytes")) })
	forge(stages.Publish, func(f *manifest.Result) { f.Counts[0].N++ })
	forge(stages.Merge, func(f *manifest.Result) {
		f.Files = append(f.Files, manifest.File{Dataset: "pages", Key: "tables/more"})
	})
	d.expectViolation("frontier@2026-11.0:0", part.Files[0].SHA256)
	d.expectViolation("publish@2026-11.0:0", "its inputs give a result of")
	d.expectViolation("merge@2026-11.0:0", "no such part")
	if n := d.a.Report().Found(); n != 3 {
		t.Errorf("%d violations", n)
	}
}

// A forged result has the digest of the forged part, so only the recomputed task reveals the forgery.
func TestAForgedPartWithAForgedResultIsFound(t *testing.T) {
	for _, sound := range []bool{false, true} {
		d := copyCrawl(t)
		key := layout.Table(stages.FileSkips, testCrawl, 1, 0)
		rewrite(d, key, func(rows []schema.Skip) []schema.Skip { return rows[:len(rows)-1] })
		result := *d.result(1, stages.Frontier, 0)
		result.Files = slices.Clone(result.Files)
		for i := range result.Files {
			if f := &result.Files[i]; f.Key == key {
				got, err := d.a.Digest(t.Context(), key, false)
				if err != nil {
					t.Fatal(err)
				}
				f.Bytes, f.SHA256 = got.Bytes, got.SHA256
				f.Rows--
			}
		}
		d.replace(layout.Result(testCrawl, 1, "frontier", 0), encode(t, &result))
		d.rounds, d.a.Sound = nil, sound
		if err := reducecheck.SameInputsGiveSameBytes(t.Context(), d.a, d.load(1)); err != nil {
			t.Fatal(err)
		}
		// The tasks of publish cannot be computed again, because they read the forged result.
		v := slices.DeleteFunc(slices.Clone(d.a.Report().Violations), func(v audit.Violation) bool { return strings.HasPrefix(v.Row, "publish@2026-11.1:") })
		if len(v) != 1 || v[0].Object != key || v[0].Row != "frontier@2026-11.1:0" {
			t.Errorf("%+v", v)
		}
	}
}

// When an audit recomputes tasks, it skips the comparison of digests only if it has just compared every
// file with its digest.
func TestACrawlIsSoundAfterEveryFileWasCompared(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*damagedCrawl, *audit.Options)
		want   bool
	}{
		{"whole", func(*damagedCrawl, *audit.Options) {}, true},
		{"a sample", func(_ *damagedCrawl, o *audit.Options) { o.Sample = 0.9 }, false},
		{"one round", func(_ *damagedCrawl, o *audit.Options) { o.Round = 1 }, false},
		{"a changed input", func(d *damagedCrawl, _ *audit.Options) {
			key := d.result(0, stages.Fetch, 0).FilesOf(stages.FileFetches)[0].Key
			rewrite(d, key, func(rows []schema.Fetch) []schema.Fetch { return rows })
		}, false},
	} {
		d := copyCrawl(t)
		o := d.a.Options
		c.damage(d, &o)
		rounds := 0
		look := func(_ context.Context, a *audit.Audit, r *audit.Round) error {
			rounds++
			if a.Sound != c.want {
				t.Errorf("%s: sound in round %d: %v", c.name, r.Number, a.Sound)
			}
			return nil
		}
		if _, err := audit.Run(t.Context(), o, []audit.Step{{Round: look, Checks: []audit.Check{{Name: "look"}}, Alone: true}}, nil); err != nil || rounds == 0 {
			t.Errorf("%s: %d rounds: %v", c.name, rounds, err)
		}
	}
}

func TestAnInputThatIsNotWhatWasFrozenIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	r := d.load(0)
	forged := *d.result(0, stages.Merge, 0)
	forged.Counts = nil
	d.replace(layout.Result(testCrawl, 0, "merge", 0), encode(t, &forged))
	if err := d.b.Delete(t.Context(), layout.Working(testCrawl, 0, "rank", stages.FileInlinks, 0)); err != nil {
		t.Fatal(err)
	}
	if err := reducecheck.SameInputsGiveSameBytes(t.Context(), d.a, r); err != nil {
		t.Fatal(err)
	}
	d.expectViolation("dedup@2026-11.0:0", "the result of merge@2026-11.0:0 has changed since inputs.json froze its digest")
	d.expectViolation("frontier@2026-11.0:0", "cannot be computed again")

	again := copyCrawl(t)
	r = again.load(0)
	if err := again.b.Delete(t.Context(), layout.Working(testCrawl, 0, "rank", stages.FileInlinks, 0)); err != nil {
		t.Fatal(err)
	}
	if err := again.a.CheckPresent(t.Context(), r, manifest.File{Key: layout.Working(testCrawl, 0, "rank", stages.FileInlinks, 0)}, "restore it"); err != nil {
		t.Fatal(err)
	}
	if err := reducecheck.SameInputsGiveSameBytes(t.Context(), again.a, r); err != nil {
		t.Fatal(err)
	}
	if v := again.a.Report().Violations; len(v) != 1 || v[0].Check != filesThere {
		t.Errorf("an object that was reported as lost is reported again: %+v", v)
	}
}

func encode(t *testing.T, d manifest.Document) []byte {
	t.Helper()
	body, err := manifest.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestWhatAnotherVersionMadeOtherwiseIsNotedAndNoViolation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, c := range []struct {
		version string
		found   int64
		notes   int
	}{{"v9", 0, 1}, {"test", 1, 0}, {"", 1, 0}} {
		d := copyCrawl(t)
		d.a.Version = c.version
		forged := *d.result(0, stages.Frontier, 0)
		forged.Files = slices.Clone(forged.Files)
		forged.Files[0].SHA256 = manifest.Digest([]byte("other bytes"))
		if err := reducecheck.Recompute(t.Context(), d.a, stages.Task{Stage: stages.Frontier, Crawl: testCrawl}, &forged); err != nil {
			t.Fatal(err)
		}
		s := d.a.Report()
		if s.Found() != c.found || len(s.Notes) != c.notes {
			t.Errorf("checked by %q: %d violations, notes %q", c.version, s.Found(), s.Notes)
		}
		if c.notes > 0 && (!strings.Contains(s.Notes[0], "other bytes than test, which made") || !strings.Contains(s.Notes[0], "check with that version")) {
			t.Errorf("note %q", s.Notes[0])
		}
	}
}
