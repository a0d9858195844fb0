package reducecheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/topics"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// TestARareTermOfALargeLanguageNeedsNoRow expects the rows of terms that the rank stage writes, in languages on both
// sides of each threshold.
func TestARareTermOfALargeLanguageNeedsNoRow(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rows []schema.TermPages
	for _, l := range []schema.TermPages{
		{Language: "deu", Pages: 599_999}, {Language: "eng", Pages: 600_000}, {Language: "fra", Pages: 999}, {Language: "ita", Pages: 3999}, {Language: "jpn", Pages: 10_000_000},
	} {
		rows = append(rows, l)
		for i, n := range []int64{1, 3, 4, 5, 6, 99, 100} {
			rows = append(rows, schema.TermPages{Language: l.Language, Term: string(rune('a' + i)), Pages: n})
		}
	}
	run := tabletest.WriteRun(t, b, stages.FileTerms, "run", rows, func(*schema.TermPages) int32 { return 0 })
	sections, err := run.Sections()
	if err != nil {
		t.Fatal(err)
	}
	a := audit.New(audit.Options{Bucket: b, Scratch: t.TempDir()})
	var want, got []schema.Term
	merged := table.MergeSections(t.Context(), b, t.TempDir(), sections, schema.TermPagesKey)
	if err := topics.Terms(10_000_000, merged, func(row *schema.Term) error { want = append(want, *row); return nil }); err != nil {
		t.Fatal(err)
	}
	c := &topicsCheck{a: a, r: &audit.Round{Plan: &manifest.Plan{URLs: 10_000_000}}}
	if err := c.wanted(t.Context(), sections, func(row *schema.Term) error { got = append(got, *row); return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || len(got) == 0 {
		t.Errorf("%d rows: %s", len(got), d)
	}
}
