package verify

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

func TestDomainsThatDoNotAddUpAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	if err := reducecheck.DomainsAddUp(t.Context(), d.a, d.load(0)); err != nil {
		t.Fatal(err)
	}
	d.expectClean(7)
	for name, c := range map[string]struct {
		change  func([]schema.Domain) []schema.Domain
		problem string
	}{
		"a lost row":                 {func(rows []schema.Domain) []schema.Domain { return rows[1:] }, "it has no row"},
		"the last row is lost":       {func(rows []schema.Domain) []schema.Domain { return rows[:len(rows)-1] }, "it has no row"},
		"a row too many":             {func(rows []schema.Domain) []schema.Domain { return append(rows, schema.Domain{Domain: "zzz.test"}) }, "it has a row, but no planned URL"},
		"another number of URLs":     {editBusy(func(row *schema.Domain) { row.Planned++ }), "its column planned is"},
		"another number of pages":    {editBusy(func(row *schema.Domain) { row.Pages++ }), "its column pages is"},
		"another number of requests": {editBusy(func(row *schema.Domain) { row.Requests += 2 }), "its column requests is"},
		"languages without pages":    {editBusy(func(row *schema.Domain) { row.LanguagePages = nil }), "differ in length"},
		"percentiles in disorder":    {editBusy(func(row *schema.Domain) { *row.TotalP50 = *row.TotalP99 + 1 }), "percentiles are not in order"},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			change(d, d.sealed(0).FilesOf(stages.FileDomains)[0].Key, c.change)
			if err := reducecheck.DomainsAddUp(t.Context(), d.a, d.load(0)); err != nil {
				t.Fatal(err)
			}
			d.expectViolation("", c.problem)
		})
	}
}

// editBusy returns a function that changes the first row with responses and with pages of a known language.
func editBusy(change func(*schema.Domain)) func([]schema.Domain) []schema.Domain {
	return func(rows []schema.Domain) []schema.Domain {
		for i := range rows {
			if rows[i].TotalP99 != nil && len(rows[i].Languages) > 0 {
				change(&rows[i])
				break
			}
		}
		return rows
	}
}
