package verify

import (
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

// TestForgottenSpellingsAreFound removes spellings, or adds spellings that do not exist.
func TestForgottenSpellingsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const other = "http://a.test/%41"
	urlOf := func(r *schema.URLRecord) string { return r.URL }
	inside := func(l *schema.Link) bool {
		from, err1 := urlkey.KeyOf(l.Source)
		to, err2 := urlkey.KeyOf(l.Target)
		return err1 == nil && err2 == nil && from.Domain == to.Domain
	}
	own := func(l *schema.Link) bool { return inside(l) && l.Kind == schema.KindA && !l.Nofollow }
	linked := func(d *damagedCrawl, fits func(*schema.Link) bool) string {
		for n := range d.load(0).Plan.Partitions {
			key := layout.Table(stages.FileLinks, testCrawl, 0, n)
			found := ""
			rewrite(d, key, func(rows []schema.Link) []schema.Link {
				if i := slices.IndexFunc(rows, func(l schema.Link) bool { return fits(&l) }); i >= 0 {
					found, rows[i].Spelling = rows[i].Target, other
				}
				return rows
			})
			if found != "" {
				return found
			}
		}
		t.Fatal("no link fits")
		return ""
	}
	planned := func(d *damagedCrawl, round int, fits func(*schema.PlannedURL) bool, change func(*schema.PlannedURL)) string {
		for _, p := range d.load(round).Plan.Partitions {
			found := ""
			rewrite(d, p.File.Key, func(rows []schema.PlannedURL) []schema.PlannedURL {
				if i := slices.IndexFunc(rows, func(u schema.PlannedURL) bool { return fits(&u) }); i >= 0 {
					found = rows[i].URL
					change(&rows[i])
				}
				return rows
			})
			if found != "" {
				return found
			}
		}
		t.Fatal("no planned URL fits")
		return ""
	}
	// know adds spellings to a row of urls in round 0 whose URL round 1 planned.
	know := func(d *damagedCrawl, spellings ...string) string {
		again := map[string]bool{}
		for _, f := range rowsOf[schema.Fetch](d, stages.FileFetches, 1) {
			again[f.URL] = true
		}
		url := damageRow(d, stages.FileURLs, urlOf, func(r *schema.URLRecord) bool { return again[r.URL] }, func(r *schema.URLRecord) []schema.URLRecord {
			r.Spellings = spellings
			return []schema.URLRecord{*r}
		})
		rewrite(d, layout.Table(stages.FileURLs, testCrawl, 1, 0), func(rows []schema.URLRecord) []schema.URLRecord {
			for i := range rows {
				if rows[i].URL == url {
					rows[i].Spellings = spellings
				}
			}
			return rows
		})
		return url
	}
	for name, c := range map[string]struct {
		round   int
		damage  func(d *damagedCrawl) string
		problem string // the expected problem; "" if no problem is expected
	}{
		"of a planned URL": {0, func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, func(r *schema.URLRecord) bool { return len(r.Spellings) > 0 }, func(r *schema.URLRecord) []schema.URLRecord {
				r.Spellings = nil
				return []schema.URLRecord{*r}
			})
		}, "its row does not list this spelling"},
		"of a source": {0, func(d *damagedCrawl) string {
			return planned(d, 0, func(*schema.PlannedURL) bool { return true }, func(u *schema.PlannedURL) { u.Spellings = []string{other} })
		}, "spells it " + other},
		"of its own domain": {0, func(d *damagedCrawl) string { return linked(d, own) }, "spells it " + other},
		"of a link that is not followed": {0, func(d *damagedCrawl) string {
			return linked(d, func(l *schema.Link) bool { return inside(l) && l.Kind == schema.KindImg })
		}, "spells it " + other},
		"of a stranger": {0, func(d *damagedCrawl) string {
			return linked(d, func(l *schema.Link) bool { return !own(l) && l.Kind == schema.KindA })
		}, ""},
		"by the plan": {1, func(d *damagedCrawl) string { return know(d, other) }, "it was planned without its spelling " + other},
		"that were too many": {1, func(d *damagedCrawl) string { return know(d, other+"1", other+"2", other+"3", other+"4", other+"5") },
			"it was planned, although"},
		"that the plan has": {1, func(d *damagedCrawl) string {
			url := know(d, other)
			return planned(d, 1, func(u *schema.PlannedURL) bool { return u.URL == url }, func(u *schema.PlannedURL) { u.Spellings = []string{other} })
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			r := d.load(c.round)
			url := c.damage(d)
			if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, r); err != nil {
				t.Fatal(err)
			}
			if c.problem == "" {
				if n := d.a.Report().Found(); n > 0 {
					t.Errorf("%+v", d.a.Report().Violations)
				}
				return
			}
			d.expectViolation(url, c.problem)
		})
	}
}
