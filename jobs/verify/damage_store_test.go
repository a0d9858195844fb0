package verify

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// damages maps names to functions that damage a crawl. Each function returns the checks that must
// find the damage, and for each the key of the object that the check must name, or "" for any object.
// The entry "*" holds the key of an object that all other checks may report, but need not.
type damages map[string]func(d *damagedCrawl) map[string]string

func one(check, object string) map[string]string { return map[string]string{check: object} }

// findEach applies each damage to a copy of the crawl. Each expected check must find the damage,
// and no other check may report a violation.
func findEach(t *testing.T, cases damages) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := copyCrawl(t)
			want := cases[name](d)
			r := d.audit()
			if r.Found() == 0 {
				t.Fatal("nothing was found")
			}
			for _, v := range r.Violations {
				object, ok := want[v.Check]
				if others, more := want["*"]; more && !ok { // any check that reads the object may report it
					object, ok = others, true
				}
				if !ok || object != "" && v.Object != object {
					t.Errorf("found besides: %+v", v)
				}
				if strings.TrimSpace(v.Problem) == "" {
					t.Errorf("a violation without an explanation: %+v", v)
				}
			}
			for check := range want {
				if check != "*" && !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Check == check }) {
					t.Errorf("%q found nothing; found %+v", check, r.Violations)
				}
			}
		})
	}
}

func TestDamageToTheStoreIsFoundByItsCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	findEach(t, damages{
		"crawl.json of another crawl": func(d *damagedCrawl) map[string]string {
			edit(d, layout.CrawlManifest(testCrawl), func(c *manifest.Crawl) { c.Crawl = "2026-12" })
			return one(documents, layout.CrawlManifest(testCrawl))
		},
		"crawl.json cut short": func(d *damagedCrawl) map[string]string {
			d.replace(layout.CrawlManifest(testCrawl), d.body(layout.CrawlManifest(testCrawl))[:40])
			return one(documents, layout.CrawlManifest(testCrawl))
		},
		"politeness that is none": func(d *damagedCrawl) map[string]string {
			d.replace(layout.Politeness(testCrawl), encode(d.t, &manifest.Politeness{Revision: 1, Config: "politeness: {dely: 1s}"}))
			return one(documents, layout.Politeness(testCrawl))
		},
		"politeness cut short, which leaves no config": func(d *damagedCrawl) map[string]string {
			d.a.Config = nil
			d.replace(layout.Politeness(testCrawl), []byte("{"))
			return one(documents, layout.Politeness(testCrawl))
		},
		"a plan of a newer format": func(d *damagedCrawl) map[string]string {
			key := layout.PlanManifest(testCrawl, 0, d.load(0).Plan.ID)
			d.replace(key, bytes.Replace(d.body(key), []byte(`"format_version": `), []byte(`"format_version": 99`), 1))
			return one(documents, key)
		},
		"a plan of another round": func(d *damagedCrawl) map[string]string {
			key := layout.PlanManifest(testCrawl, 1, d.load(1).Plan.ID)
			edit(d, key, func(p *manifest.Plan) { p.Round = 0 })
			return one(documents, key)
		},
		"no ledger": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Ledger(testCrawl))
			return one(documents, layout.Ledger(testCrawl))
		},
		"inputs of other results": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Inputs(testCrawl, 0, "merge"), func(in *manifest.Inputs) { in.Tasks[0].SHA256 = strings.Repeat("0", 64) })
			return one(documents, layout.Inputs(testCrawl, 0, "merge"))
		},
		"another result than the frozen one": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Inputs(testCrawl, 0, "merge"), func(in *manifest.Inputs) { in.Tasks[0].SHA256 = strings.Repeat("0", 64) })
			d.recordDigests()
			return one(documents, result(stages.Fetch, 0))
		},
		"inputs that lack a result": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Inputs(testCrawl, 0, "merge"), func(in *manifest.Inputs) { in.Tasks = in.Tasks[1:] })
			return one(documents, layout.Inputs(testCrawl, 0, "merge"))
		},
		"no inputs": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Inputs(testCrawl, 0, "rank"))
			return one(documents, layout.Inputs(testCrawl, 0, "rank"))
		},
		"the result of another partition": func(d *damagedCrawl) map[string]string {
			d.replace(result(stages.Merge, 0), d.body(result(stages.Merge, 1)))
			return one(documents, result(stages.Merge, 0))
		},
		"a result that is missing": func(d *damagedCrawl) map[string]string {
			d.delete(result(stages.Publish, 0))
			return one(documents, result(stages.Publish, 0))
		},
		"a result that feeds no stage is missing": func(d *damagedCrawl) map[string]string {
			d.delete(result(stages.Frontier, 0))
			return one(documents, result(stages.Frontier, 0))
		},
		"a seal that lacks a file": func(d *damagedCrawl) map[string]string {
			editSeal(d, func(s *manifest.Sealed) { s.Files = s.Files[1:] })
			return one(documents, layout.Sealed(testCrawl, 0))
		},
		"a seal that counts wrong": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Sealed(testCrawl, 0), func(s *manifest.Sealed) { s.Counts[0].N++ })
			return one(documents, layout.Sealed(testCrawl, 0))
		},
		"a manifest that is gone": func(d *damagedCrawl) map[string]string {
			d.delete(manifestOf(d))
			return one(documents, manifestOf(d))
		},
		"a manifest with a changed byte": func(d *damagedCrawl) map[string]string {
			key := manifestOf(d)
			body := bytes.Clone(d.body(key))
			body[len(body)/2]++
			d.replace(key, body)
			return one(documents, key)
		},
		"a round before the last without a seal": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Sealed(testCrawl, 0))
			return one(documents, layout.Sealed(testCrawl, 0))
		},
		"a part that is gone": func(d *damagedCrawl) map[string]string {
			d.delete(part(stages.FileFetches))
			return one(filesThere, part(stages.FileFetches))
		},
		"a part cut short": func(d *damagedCrawl) map[string]string {
			d.replace(part(stages.FileRequests), d.body(part(stages.FileRequests))[:2000])
			return one(filesThere, part(stages.FileRequests))
		},
		"a part that is no table": func(d *damagedCrawl) map[string]string {
			d.replace(part(stages.FileText), d.body(part(stages.FileText))[:2000])
			d.settle(part(stages.FileText))
			return one(tablesRead, part(stages.FileText))
		},
		"a part that cannot be decoded, though its digest is right": func(d *damagedCrawl) map[string]string {
			body := bytes.Clone(d.body(part(stages.FileText)))
			clear(body[len(body)/3:][:100])
			d.replace(part(stages.FileText), body)
			d.settle(part(stages.FileText))
			return one(tablesRead, part(stages.FileText))
		},
		"a part with fewer rows": func(d *damagedCrawl) map[string]string {
			rewrite(d, part(stages.FileText), func(rows []schema.Text) []schema.Text { return rows[1:] })
			d.settle(part(stages.FileText))
			edit(d, result(stages.Merge, 0), func(r *manifest.Result) { r.Files[slices.IndexFunc(r.Files, isPart(stages.FileText))].Rows++ })
			editSeal(d, func(s *manifest.Sealed) {
				s.Files[slices.IndexFunc(s.Files, func(f manifest.File) bool { return f.Key == part(stages.FileText) })].Rows++
			})
			d.freezeInputs(d.load(0).Plan)
			return one(tablesRead, part(stages.FileText))
		},
		"a byte that no reader looks at": func(d *damagedCrawl) map[string]string {
			key := warcOf(d)
			body := bytes.Clone(d.body(key))
			body[9]++ // this byte names the operating system in the first gzip header
			d.replace(key, body)
			return one(fileDigests, key)
		},
		"no checkpoint": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Checkpoint(testCrawl, 0, 0))
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a checkpoint that is not complete": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Checkpoint(testCrawl, 0, 0), func(c *manifest.Checkpoint) { c.Complete = false })
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a checkpoint of another partition": func(d *damagedCrawl) map[string]string {
			d.replace(layout.Checkpoint(testCrawl, 0, 0), d.body(layout.Checkpoint(testCrawl, 0, 1)))
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a checkpoint that lacks a row": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Checkpoint(testCrawl, 0, 0), func(c *manifest.Checkpoint) { c.Recorded = nil })
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a result that lists another segment than its checkpoint": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Checkpoint(testCrawl, 0, 0), func(c *manifest.Checkpoint) { c.Files = c.Files[1:] })
			return one(checkpoints, result(stages.Fetch, 0))
		},
	})
}
