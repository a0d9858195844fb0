package verify

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/jobs/verify/fetchcheck"
	"crawlbatch.io/crawlbatch/stages"
)

// These are the names of the checks in reports.
const (
	documents      = "documents"
	filesThere     = "files are there"
	fileDigests    = "file digests"
	tablesRead     = "tables can be read"
	checkpoints    = "checkpoints"
	oneOutcome     = "one outcome a URL"
	knownOutcomes  = "known outcomes"
	apart          = "a domain is in one partition"
	obeyed         = "robots.txt is obeyed"
	verdicts       = "robots.txt verdicts"
	crawlDelay     = "Crawl-delay"
	pace           = "delay between requests"
	inFlight       = "requests in flight"
	records        = "WARC records"
	pointers       = "pointers to captures"
	asked          = "requests for sitemaps"
	indexes        = "CDXJ indexes"
	linksCheck     = "no link target is lost"
	knownCheck     = "no URL is lost to a Bloom filter"
	recomputeCheck = "the same inputs, the same bytes"
)

// audit runs the checks of the store's structure and of invariants 1 to 4 on the crawl's
// present state.
func (d *damagedCrawl) audit(change ...func(*Options)) *Report {
	d.t.Helper()
	o := d.a.Options
	o.OneClock = true
	for _, c := range change {
		c(&o)
	}
	r, err := audit.Run(d.t.Context(), o, fetchcheck.Steps(), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *damagedCrawl) body(key string) []byte {
	d.t.Helper()
	body, _, err := d.b.Get(d.t.Context(), key, 1<<30)
	if err != nil {
		d.t.Fatal(err)
	}
	return body
}

func (d *damagedCrawl) delete(key string) {
	d.t.Helper()
	if err := d.b.Delete(d.t.Context(), key); err != nil {
		d.t.Fatal(err)
	}
}

// edit changes a stored document.
func edit[T any, D interface {
	*T
	manifest.Document
}](d *damagedCrawl, key string, change func(D)) {
	d.t.Helper()
	doc := D(new(T))
	if _, _, err := manifest.Load(d.t.Context(), d.b, key, doc); err != nil {
		d.t.Fatal(err)
	}
	change(doc)
	d.replace(key, encode(d.t, doc))
}

// editSeal changes the seal of round 0. For this, it lets the seal list its files itself, without a
// manifest.
func editSeal(d *damagedCrawl, change func(*manifest.Sealed)) {
	d.t.Helper()
	edit(d, layout.Sealed(testCrawl, 0), func(s *manifest.Sealed) {
		filled, err := roundstate.WithFiles(d.t.Context(), d.b, []*manifest.Sealed{s}, roundstate.Selection{})
		if err != nil {
			d.t.Fatal(err)
		}
		for _, m := range s.Manifests {
			d.delete(m.Key)
		}
		*s = *filled[0]
		s.Manifests = nil
		change(s)
	})
}

// manifestOf returns the key of the manifest of round 0.
func manifestOf(d *damagedCrawl) string {
	d.t.Helper()
	var s manifest.Sealed
	if _, _, err := manifest.Load(d.t.Context(), d.b, layout.Sealed(testCrawl, 0), &s); err != nil || len(s.Manifests) != 1 {
		d.t.Fatalf("%v, the seal names %d manifests, want 1", err, len(s.Manifests))
	}
	return s.Manifests[0].Key
}

// noColumn is a row type for opening any part without reading a column.
type noColumn struct {
	None string `parquet:"none,optional"`
}

// settle rewrites all documents of round 0 so that their sizes and digests match the present bytes of
// an object. Checks can then find only faults in the object's content.
func (d *damagedCrawl) settle(key string) {
	d.t.Helper()
	body := d.body(key)
	rows := int64(-1)
	if t, err := table.Open[noColumn](d.t.Context(), d.b, key); strings.HasSuffix(key, ".parquet") && err == nil {
		rows = t.Rows()
		if err := t.Close(); err != nil {
			d.t.Fatal(err)
		}
	}
	update := func(files []manifest.File) (found bool) {
		for i := range files {
			if f := &files[i]; f.Key == key {
				f.Bytes, f.SHA256, found = int64(len(body)), manifest.Digest(body), true
				if rows >= 0 {
					f.Rows = rows
				}
			}
		}
		return found
	}
	p, _, err := roundstate.FindPlan(d.t.Context(), d.b, testCrawl, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := range p.Partitions {
		if one := []manifest.File{p.Partitions[i].File}; update(one) {
			p.Partitions[i].File = one[0]
			d.replace(layout.PlanManifest(testCrawl, 0, p.ID), encode(d.t, p))
		}
	}
	for _, stage := range stages.Order {
		for n := range stage.Tasks(p) {
			d.editIf(layout.Result(testCrawl, 0, string(stage), n), &manifest.Result{}, func(doc manifest.Document) bool { return update(doc.(*manifest.Result).Files) })
			if stage == stages.Fetch {
				d.editIf(layout.Checkpoint(testCrawl, 0, n), &manifest.Checkpoint{}, func(doc manifest.Document) bool { return update(doc.(*manifest.Checkpoint).Files) })
			}
		}
	}
	editSeal(d, func(s *manifest.Sealed) { update(s.Files) })
	d.freezeInputs(p)
}

// recordDigests writes the digests of the present documents into the ledger.
func (d *damagedCrawl) recordDigests() {
	d.t.Helper()
	ledgertest.Edit(d.t, d.b, testCrawl, func(all []manifest.Entry) []manifest.Entry {
		for i := range all {
			if all[i].SHA256 != "" {
				all[i].SHA256 = manifest.ContentDigest(d.body(all[i].Object))
			}
		}
		return all
	})
}

// freezeInputs writes the digests of the present results into inputs.json, and the digests of all
// documents into the ledger.
func (d *damagedCrawl) freezeInputs(p *manifest.Plan) {
	d.t.Helper()
	for _, stage := range stages.Order {
		if len(roundstate.Feeds(stage)) == 0 {
			continue
		}
		edit(d, layout.Inputs(testCrawl, 0, string(stage)), func(in *manifest.Inputs) {
			for i := range in.Tasks {
				t := &in.Tasks[i]
				t.SHA256 = manifest.Digest(d.body(layout.Result(testCrawl, 0, t.Stage, t.Partition)))
			}
		})
	}
	d.recordDigests()
}

func (d *damagedCrawl) editIf(key string, doc manifest.Document, change func(manifest.Document) bool) {
	d.t.Helper()
	if _, _, err := manifest.Load(d.t.Context(), d.b, key, doc); err != nil {
		d.t.Fatal(err)
	}
	if change(doc) {
		d.replace(key, encode(d.t, doc))
	}
}

// forget removes from the ledger the entries which show that round 1 finished its fetch stage.
func (d *damagedCrawl) forget() {
	d.t.Helper()
	ledgertest.Edit(d.t, d.b, testCrawl, func(all []manifest.Entry) []manifest.Entry {
		return slices.DeleteFunc(all, func(e manifest.Entry) bool {
			return e.InRound(1) && (e.What == manifest.EntryFrozen || e.What == manifest.EntrySealed)
		})
	})
}

// part returns the key of part 0 of a published dataset in round 0.
func part(dataset string) string { return layout.Table(dataset, testCrawl, 0, 0) }

// change rewrites the rows of a part and corrects the documents that list the part.
func change[T any](d *damagedCrawl, key string, f func([]T) []T) {
	d.t.Helper()
	rewrite(d, key, f)
	d.settle(key)
}

// firstRow returns the first index i for which fits(i) is true.
func firstRow[T any](d *damagedCrawl, rows []T, fits func(i int) bool) int {
	d.t.Helper()
	for i := range rows {
		if fits(i) {
			return i
		}
	}
	d.t.Fatalf("no row of %d fits", len(rows))
	return 0
}

func result(stage stages.Stage, n int) string {
	return layout.Result(testCrawl, 0, string(stage), n)
}

// warcOf returns the first WARC file of partition 0.
func warcOf(d *damagedCrawl) string {
	d.t.Helper()
	r, _, err := roundstate.LoadResult(d.t.Context(), d.b, stages.Task{Stage: stages.Fetch, Crawl: testCrawl})
	if err != nil || len(r.FilesOf(stages.FileWARC)) == 0 {
		d.t.Fatalf("no WARC file: %v", err)
	}
	return r.FilesOf(stages.FileWARC)[0].Key
}

func captures(subset string) string { return layout.Captures(testCrawl, subset, 0, 0) }

func TestACrawlIsAsPromised(t *testing.T) {
	d := copyCrawl(t)
	r := d.audit()
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	if !slices.Equal(r.Rounds, []int{0, 1}) || len(r.Unsealed) > 0 {
		t.Errorf("rounds %v, not sealed %v", r.Rounds, r.Unsealed)
	}
	for _, c := range r.Checked {
		t.Logf("%d %s: %d %s", c.Invariant, c.Check, c.Looked, c.Of)
		if c.Looked == 0 || c.Of == "" {
			t.Errorf("%q looked at %d %q", c.Check, c.Looked, c.Of)
		}
	}
	for _, parallel := range []int{1, 7} {
		if diff := cmp.Diff(r, d.audit(func(o *Options) { o.Parallel = parallel })); diff != "" {
			t.Errorf("the report depends on the number of checks that run at the same time: %s", diff)
		}
	}
}

func TestAnUnfinishedRoundIsCheckedAsFarAsItGoes(t *testing.T) {
	d := copyCrawl(t)
	p := d.load(1).Plan
	d.delete(layout.Sealed(testCrawl, 1))
	for _, stage := range stages.Order[1:] {
		d.delete(layout.Inputs(testCrawl, 1, string(stage)))
		for n := range stage.Tasks(p) {
			d.delete(layout.Result(testCrawl, 1, string(stage), n))
		}
	}
	d.forget()
	r := d.audit(func(o *Options) { o.Round = 1 })
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	if !slices.Equal(r.Unsealed, []int{1}) {
		t.Errorf("not sealed: %v", r.Unsealed)
	}
	for _, c := range r.Checked {
		if c.Looked == 0 && c.Check != asked { // the first round has requested all sitemaps
			t.Errorf("%q read no segments", c.Check)
		}
	}

	// The files of an unfinished task are the files that its checkpoint lists.
	d.delete(layout.Result(testCrawl, 1, "fetch", 0))
	edit(d, layout.Checkpoint(testCrawl, 1, 0), func(c *manifest.Checkpoint) { c.Complete = false })
	if r := d.audit(); r.Found() > 0 {
		t.Errorf("violations while a task is unfinished: %+v", r.Violations)
	}
	var c manifest.Checkpoint
	if _, _, err := manifest.Load(t.Context(), d.b, layout.Checkpoint(testCrawl, 1, 0), &c); err != nil {
		t.Fatal(err)
	}
	d.delete(c.Files[0].Key)
	if r := d.audit(); r.Found() != 1 || r.Violations[0].Object != c.Files[0].Key || r.Violations[0].Check != filesThere {
		t.Errorf("a lost segment of an unfinished task: %+v", r.Violations)
	}
}

func TestLaterPolitenessMayAllowMoreInFlight(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
		i := second(d, rows, func(_, _ *schema.Request) bool { return true })
		rows[i-1].TotalMS = rows[i].Start.Sub(rows[i-1].Start).Milliseconds() + 2
		return rows
	})
	if d.audit().Found() == 0 {
		t.Error("verify did not find two requests in flight where one is allowed")
	}
	later := d.a.Config.Politeness
	later.InFlightPerHost = 2
	if _, err := roundstate.PublishPoliteness(t.Context(), d.b, testCrawl, later, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	if r := d.audit(); r.Found() > 0 {
		t.Errorf("%+v", r.Violations)
	}
}

func TestASampleLooksAtPartOfEachKind(t *testing.T) {
	d := copyCrawl(t)
	all := map[string]int64{}
	for _, c := range d.audit().Checked {
		all[c.Check] = c.Looked
	}
	for _, c := range d.audit(func(o *Options) { o.Sample = 0.2 }).Checked {
		t.Logf("%s: %d of %d", c.Check, c.Looked, all[c.Check])
		everything := c.Check == documents || c.Check == strayCheck || c.Check == filesThere || c.Check == tablesRead // these checks are cheap and always read everything
		if everything != (c.Looked == all[c.Check]) {
			t.Errorf("%s looked at %d of %d", c.Check, c.Looked, all[c.Check])
		}
	}
	if r := d.audit(func(o *Options) { o.Round = 1 }); !slices.Equal(r.Rounds, []int{1}) {
		t.Errorf("round 1 alone: %v", r.Rounds)
	}
	_, err := Run(t.Context(), Options{Bucket: d.b, Crawl: testCrawl, Round: 5, Config: d.a.Config, Scratch: t.TempDir(), Sample: 1})
	if !errors.Is(err, roundstate.ErrNoPlan) {
		t.Errorf("a missing round: %v", err)
	}
}

// documentsOnly is a store that answers only reads of documents.
type documentsOnly struct{ store.Bucket }

func (b documentsOnly) Open(ctx context.Context, key string) (store.Object, error) {
	if path.Ext(key) == ".json" {
		return b.Bucket.Open(ctx, key)
	}
	return nil, fmt.Errorf("open %q: %w", key, store.ErrUnavailable)
}

func TestAStoreThatIsAwayIsNoViolation(t *testing.T) {
	d := copyCrawl(t)
	o := d.a.Options
	o.Bucket = documentsOnly{d.b}
	if r, err := Run(t.Context(), o); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestTheListOfViolationsIsBoundedAndTheRestCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const listed = 20 // number of listed violations of one check and round
	d := copyCrawl(t)
	change(d, part(stages.FileFetches), func([]schema.Fetch) []schema.Fetch { return nil })
	r := d.audit()
	if len(r.Violations) != listed || r.Found() < listed+5 {
		t.Errorf("%d listed, %d found", len(r.Violations), r.Found())
	}
	if diff := cmp.Diff(r, d.audit(func(o *Options) { o.Parallel = 1 })); diff != "" {
		t.Error(diff)
	}
}
