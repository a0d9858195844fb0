package verify

import (
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

func TestTermsAndTopicsThatDoNotFollowAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	if err := reducecheck.TopicsFollow(t.Context(), d.a, d.load(0)); err != nil {
		t.Fatal(err)
	}
	d.expectClean(7)
	for _, c := range d.a.Report().Checked {
		if (c.Check == "terms add up" || c.Check == "topics follow from terms") && c.Looked == 0 {
			t.Errorf("%s: it read nothing", c.Check)
		}
	}
	terms := func(f func([]schema.Term) []schema.Term) func(*damagedCrawl) {
		return func(d *damagedCrawl) { change(d, d.sealed(0).FilesOf(stages.FileTerms)[0].Key, f) }
	}
	pages := func(f func(*schema.Page)) func(*damagedCrawl) {
		return func(d *damagedCrawl) {
			change(d, d.sealed(0).FilesOf(stages.FilePages)[0].Key, func(rows []schema.Page) []schema.Page {
				f(&rows[firstRow(d, rows, func(i int) bool { return len(rows[i].Topics) > 2 })])
				return rows
			})
		}
	}
	for name, c := range map[string]struct {
		damage  func(*damagedCrawl)
		problem string
	}{
		"a lost row":             {terms(func(rows []schema.Term) []schema.Term { return rows[1:] }), "it has no row"},
		"the last row is lost":   {terms(func(rows []schema.Term) []schema.Term { return rows[:len(rows)-1] }), "it has no row"},
		"a row too many":         {terms(func(rows []schema.Term) []schema.Term { return append(rows, schema.Term{Language: "zzz", Term: "z"}) }), "too few pages"},
		"another frequency":      {terms(func(rows []schema.Term) []schema.Term { rows[0].Pages++; return rows }), "the runs add up to"},
		"another sample":         {terms(func(rows []schema.Term) []schema.Term { rows[0].Sampled++; return rows }), "the runs add up to"},
		"another order":          {pages(func(p *schema.Page) { slices.Reverse(p.Topics) }), "its topics are"},
		"a lost topic":           {pages(func(p *schema.Page) { p.Topics = p.Topics[1:] }), "its topics are"},
		"a topic of other pages": {pages(func(p *schema.Page) { p.Topics[0] = "zzz" }), "its topics are"},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			c.damage(d)
			if err := reducecheck.TopicsFollow(t.Context(), d.a, d.load(0)); err != nil {
				t.Fatal(err)
			}
			d.expectViolation("", c.problem)
		})
	}
}
