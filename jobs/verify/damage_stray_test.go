package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

const strayCheck = "nothing stray is read"

// createObject creates a copy of the object with the key like. If like is "", it creates an object
// with a few bytes that no other object has.
func (d *damagedCrawl) createObject(key, like string) {
	d.t.Helper()
	body := []byte("stray")
	if like != "" {
		body = d.body(like)
	}
	if _, err := store.CreateBytes(d.t.Context(), d.b, key, body); err != nil {
		d.t.Fatal(err)
	}
}

// strayCases lists strays in folders that query engines read as a whole. The map's keys describe
// the strays. Each value has the key of the stray, and the key of the object whose bytes the stray
// gets.
func strayCases(d *damagedCrawl) map[string][2]string {
	text, warc := part(stages.FileText), warcOf(d)
	return map[string][2]string{
		"a copy of a part":                    {strings.Replace(text, ".parquet", "-copy.parquet", 1), text},
		"a part of a partition too many":      {layout.Table(stages.FileText, testCrawl, 0, 99), text},
		"a second part of runs":               {layout.Table(stages.FileRuns, testCrawl, 0, 1), text},
		"a part of a round too many":          {layout.Table(stages.FileText, testCrawl, 2, 0), text},
		"a part of a round far away":          {layout.Table(stages.FileText, testCrawl, 7, 0), text},
		"a part in a folder of no round":      {"tables/text/crawl=2026-11/round=00/part-00000.parquet", text},
		"a part beside the rounds":            {"tables/text/crawl=2026-11/part-00000.parquet", text},
		"a part of a subset that is none":     {layout.Captures(testCrawl, "others", 0, 0), captures(schema.SubsetWARC)},
		"a copy of a WARC file":               {strings.Replace(warc, ".warc.gz", "-copy.warc.gz", 1), warc},
		"a WARC file of another plan":         {layout.WARC(testCrawl, 0, "other", 0, 1, 0), warc},
		"a WARC file of a partition too many": {layout.WARC(testCrawl, 0, d.load(0).Plan.ID, 99, 1, 0), warc},
	}
}

func TestStraysThatEnginesReadAreViolations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	cases := damages{}
	for name := range strayCases(copyCrawl(t)) {
		cases[name] = func(d *damagedCrawl) map[string]string {
			s := strayCases(d)[name]
			d.createObject(s[0], s[1])
			return one(strayCheck, s[0])
		}
	}
	findEach(t, cases)
}

func TestLeftoversAreListedAndNoViolations(t *testing.T) {
	d := copyCrawl(t)
	p := d.load(0).Plan.ID
	left := []string{
		"crawl=2026-11/notes.txt",
		layout.RoundDir(testCrawl, 0) + "notes.txt",
		layout.PlanPart(testCrawl, 0, p, 99),
		layout.PlanManifest(testCrawl, 0, "replaced"),
		layout.Working(testCrawl, 0, "merge", "pages", 99),
		layout.Result(testCrawl, 0, "merge", 99),
		layout.Attempt(testCrawl, 0, "merge", 99, 1),
		layout.Segment(testCrawl, 0, p, 0, 1, 99, "fetches"),
		layout.Segment(testCrawl, 0, "other", 0, 1, 0, "fetches"),
		layout.StageDir(testCrawl, 0, "sort") + "part-00000.json",
		layout.RoundDir(testCrawl, 7) + "plan-x/part-00000.parquet",
		layout.WARC(testCrawl, 0, p, 0, 1, 999),
		layout.CDXJ(layout.WARC(testCrawl, 0, p, 0, 1, 999)),
		"tables/text/crawl=2026-11/round=0/_SUCCESS",
	}
	for _, key := range left {
		d.createObject(key, "")
	}
	r := d.audit()
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "14 objects are left over, such as ") }) {
		t.Errorf("notes: %q", r.Notes)
	}
	var found []string
	if r, err := Strays(t.Context(), d.a.Options, func(s Stray) error {
		if s.Read || s.Why == "" {
			t.Errorf("%+v", s)
		}
		found = append(found, s.Key)
		return nil
	}); err != nil || r.Found() > 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	slices.Sort(left)
	slices.Sort(found)
	if diff := cmp.Diff(left, found); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAnUnfinishedTaskMayHaveWrittenIsNoStray(t *testing.T) {
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
	d.createObject(layout.Working(testCrawl, 1, "merge", "another", 0), "")
	if r, err := Strays(t.Context(), d.a.Options, func(s Stray) error {
		t.Errorf("%+v", s)
		return nil
	}); err != nil || r.Found() > 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestNoStrayIsNamedWhileADocumentIsDamaged(t *testing.T) {
	d := copyCrawl(t)
	d.createObject(layout.Table(stages.FileText, testCrawl, 0, 99), "")
	d.replace(result(stages.Merge, 0), []byte("{}"))
	r, err := Strays(t.Context(), d.a.Options, func(s Stray) error {
		t.Errorf("%+v", s)
		return nil
	})
	if err != nil || r.Found() == 0 {
		t.Errorf("%v, %+v", err, r)
	}
}
