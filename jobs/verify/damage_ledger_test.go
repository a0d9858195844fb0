package verify

import (
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// deleteAll deletes every object whose key has one of the prefixes.
func (d *damagedCrawl) deleteAll(prefixes ...string) {
	d.t.Helper()
	for _, key := range d.keys() {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			d.delete(key)
		}
	}
}

func TestWhatTheLedgerNamesIsMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	cases := damages{
		"all rounds": func(d *damagedCrawl) map[string]string {
			d.deleteAll("crawl=2026-11/round=", "tables/", "warc/")
			return one(documents, "")
		},
		"the newest round, with tables and WARC files": func(d *damagedCrawl) map[string]string {
			var gone []string
			for _, key := range d.keys() {
				if strings.Contains(key, "/round=1/") {
					gone = append(gone, key)
				}
			}
			d.deleteAll(gone...)
			return one(documents, layout.RoundDir(testCrawl, 1))
		},
		"the newest round, without them": func(d *damagedCrawl) map[string]string {
			d.deleteAll(layout.RoundDir(testCrawl, 1))
			return one(documents, layout.RoundDir(testCrawl, 1))
		},
		"an earlier round": func(d *damagedCrawl) map[string]string {
			d.deleteAll(layout.RoundDir(testCrawl, 0))
			return map[string]string{documents: layout.RoundDir(testCrawl, 0), "*": ""}
		},
		"the last seal": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Sealed(testCrawl, 1))
			return one(documents, layout.Sealed(testCrawl, 1))
		},
		"the last seal, with results": func(d *damagedCrawl) map[string]string {
			d.deleteAll(layout.Sealed(testCrawl, 1), layout.Results(testCrawl, 1, "publish"))
			return one(documents, layout.Sealed(testCrawl, 1))
		},
		"a plan": func(d *damagedCrawl) map[string]string {
			key := layout.PlanManifest(testCrawl, 1, d.load(1).Plan.ID)
			d.delete(key)
			return one(documents, key)
		},
		"the contents of a seal": func(d *damagedCrawl) map[string]string {
			edit(d, layout.Sealed(testCrawl, 1), func(s *manifest.Sealed) { s.Counts = s.Counts[1:] })
			return one(documents, layout.Sealed(testCrawl, 1))
		},
		"crawl.json": func(d *damagedCrawl) map[string]string {
			d.delete(layout.CrawlManifest(testCrawl))
			return one(documents, layout.CrawlManifest(testCrawl))
		},
		"the contents of crawl.json": func(d *damagedCrawl) map[string]string {
			edit(d, layout.CrawlManifest(testCrawl), func(c *manifest.Crawl) { c.CreatedAt = "2026-11-01T00:00:00Z" })
			return one(documents, layout.CrawlManifest(testCrawl))
		},
		"politeness.json": func(d *damagedCrawl) map[string]string {
			if _, err := roundstate.PublishPoliteness(d.t.Context(), d.b, testCrawl, d.a.Config.Politeness, ledgertest.Writer()); err != nil {
				d.t.Fatal(err)
			}
			later := d.a.Config.Politeness
			later.InFlightPerHost++
			if _, err := roundstate.PublishPoliteness(d.t.Context(), d.b, testCrawl, later, ledgertest.Writer()); err != nil {
				d.t.Fatal(err)
			}
			d.delete(layout.Politeness(testCrawl))
			return one(documents, layout.Politeness(testCrawl))
		},
		"the head": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Crawls())
			return one(documents, layout.Crawls())
		},
		"active.json": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Active())
			return one(documents, layout.Active())
		},
		"the ledger": func(d *damagedCrawl) map[string]string {
			d.delete(layout.Ledger(testCrawl))
			return one(documents, layout.Ledger(testCrawl))
		},
		"the end of the ledger": func(d *damagedCrawl) map[string]string {
			d.replace(layout.Ledger(testCrawl), d.body(layout.Ledger(testCrawl))[:500])
			return one(documents, layout.Ledger(testCrawl))
		},
		"the newer part of the ledger": func(d *damagedCrawl) map[string]string {
			ledgertest.Edit(d.t, d.b, testCrawl, func(all []manifest.Entry) []manifest.Entry {
				return all[:slices.IndexFunc(all, func(e manifest.Entry) bool { return e.What == manifest.EntryStarted && e.InRound(1) })]
			})
			return one(documents, layout.Ledger(testCrawl))
		},
		"a link of the ledger's chain": func(d *damagedCrawl) map[string]string {
			body := string(d.body(layout.Ledger(testCrawl)))
			d.replace(layout.Ledger(testCrawl), []byte(strings.Replace(body, `"what": "sealed"`, `"what": "frozen"`, 1)))
			return one(documents, layout.Ledger(testCrawl))
		},
	}
	findEach(t, cases)
}

func TestALostRoundIsReportedOnceWithARemedyThatAsksNothingTwice(t *testing.T) {
	d := copyCrawl(t)
	d.deleteAll(layout.RoundDir(testCrawl, 1))
	r := d.audit()
	if r.Found() != 1 || !strings.Contains(r.Violations[0].Problem, "restore it from a copy") || r.Violations[0].Round != 1 {
		t.Errorf("%+v", r.Violations)
	}
}
