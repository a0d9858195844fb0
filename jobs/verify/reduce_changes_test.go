package verify

import (
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

func TestChangesThatDoNotFollowAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	if err := reducecheck.ChangesFollow(t.Context(), d.a, d.load(0)); err != nil {
		t.Fatal(err)
	}
	d.expectClean(6)
	one := int32(1)
	page := func(edit func(*schema.Page)) func(*damagedCrawl) {
		return func(d *damagedCrawl) {
			change(d, d.sealed(0).FilesOf(stages.FilePages)[0].Key, func(rows []schema.Page) []schema.Page { edit(&rows[0]); return rows })
		}
	}
	state := func(edit func(*schema.URLRecord)) func(*damagedCrawl) {
		return func(d *damagedCrawl) {
			change(d, d.sealed(0).FilesOf(stages.FileURLs)[0].Key, func(rows []schema.URLRecord) []schema.URLRecord {
				for i := range rows {
					if rows[i].CapturedIn != "" {
						edit(&rows[i])
						break
					}
				}
				return rows
			})
		}
	}
	for name, c := range map[string]struct {
		damage  func(*damagedCrawl)
		problem string
	}{
		"another change":            {page(func(p *schema.Page) { p.Change = schema.ChangeText }), "its last capture gives new, null, null"},
		"no change":                 {page(func(p *schema.Page) { p.Change = "" }), "its last capture gives new, null, null"},
		"a distance too many":       {page(func(p *schema.Page) { p.ChangeDistance = &one }), "links_removed are new, 1, null, null, null"},
		"new links too many":        {page(func(p *schema.Page) { p.LinksAdded = &one }), "links_removed are new, null, null, 1, null"},
		"another set of links":      {state(func(r *schema.URLRecord) { r.LinkSketch = schema.SketchLinks(slices.Values([]string{"X"})) }), `link_sketch "1:`},
		"missing links in a state":  {state(func(r *schema.URLRecord) { r.LinksRemoved = &one }), "links_removed are new, null, null, null, 1"},
		"another state":             {state(func(r *schema.URLRecord) { r.Change = schema.ChangeGone }), "links_removed are gone, null, null"},
		"another fingerprint":       {state(func(r *schema.URLRecord) { r.SimHash++ }), "its last capture is of"},
		"another text":              {state(func(r *schema.URLRecord) { r.TextDigest = "X" }), "its row says of"},
		"another title":             {state(func(r *schema.URLRecord) { r.TitleHash++ }), "its last capture is of"},
		"another number of words":   {state(func(r *schema.URLRecord) { r.WordCount++ }), "word_count"},
		"a forgotten capture":       {state(func(r *schema.URLRecord) { r.CapturedIn = "" }), "its row says unknown"},
		"another payload":           {state(func(r *schema.URLRecord) { r.CaptureDigest = "X" }), "payload X"},
		"a capture of another time": {state(func(r *schema.URLRecord) { r.CapturedIn = "2001-01.0" }), "of 2001-01.0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			c.damage(d)
			if err := reducecheck.ChangesFollow(t.Context(), d.a, d.load(0)); err != nil {
				t.Fatal(err)
			}
			d.expectViolation("", c.problem)
		})
	}
}
