package publish

import (
	"log/slog"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/stages"
)

// TestTopicsAreWeighed publishes a page whose terms are in the parts of both buckets. The rare term comes first.
func TestTopicsAreWeighed(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := input(t, b)
	p := working(t, "http://h.test/a", true)
	p.Terms, p.Counts, p.Topics = []string{"frequent", "rare", "too rare"}, []int32{4, 3, 9}, []string{"frequent", "rare"}
	in.Results[stages.Merge][0] = put(t, b, stages.FilePages, layout.Working("2026-11", 0, "merge", stages.FilePages, 1), p)
	for bucket, row := range []schema.Term{
		{Language: schema.UnknownLanguage, Term: "rare", Pages: 1, Sampled: 500}, {Language: schema.UnknownLanguage, Term: "frequent", Pages: 400, Sampled: 500},
	} {
		r := in.Results[stages.Rank][bucket]
		r.Files = append(r.Files, put(t, b, stages.FileTerms, layout.Table(stages.FileTerms, "2026-11", 0, bucket), row).Files...)
	}
	in.Results[stages.Dedup][0] = put(t, b, stages.FileDuplicates, layout.Table(stages.FileDuplicates, "2026-11", 0, 2), []schema.Duplicate{}...)
	if _, err := writePages(t.Context(), &stages.Env{Bucket: b, Scratch: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, in); err != nil {
		t.Fatal(err)
	}
	got := tabletest.Read[schema.Page](t, b, layout.Table("pages", "2026-11", 0, 0))
	if want := []string{"rare", "frequent"}; len(got) != 1 || !slices.Equal(got[0].Topics, want) {
		t.Errorf("topics %v, want %v", got[0].Topics, want)
	}
}
