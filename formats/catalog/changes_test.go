package catalog_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// changing is a month of a web in which each URL changes in its own way.
type changing struct {
	crawl   string
	pages   []schema.Page
	fetches []schema.Fetch
}

func (c *changing) page(path, payload, text, title string, simhash int64) *schema.Page {
	p := schema.Page{}
	p.URL, p.ContentDigest, p.TextDigest, p.Title, p.SimHash = "https://a.org/"+path, payload, text, title, simhash
	p.PlannedURL = p.URL
	c.pages = append(c.pages, p)
	return &c.pages[len(c.pages)-1]
}

func (c *changing) answer(path string, outcome schema.Outcome, status int16, final string) {
	f := schema.Fetch{URL: "https://a.org/" + path, Outcome: outcome, HTTPStatus: status}
	if final != "" {
		f.FinalURL = "https://a.org/" + final
	}
	c.fetches = append(c.fetches, f)
}

// seal writes the rows in two parts, as two buckets do, or in one. Both must give the same answers.
func (c *changing) seal(t *testing.T, f *fixture, parts int) *manifest.Sealed {
	s := &manifest.Sealed{Crawl: c.crawl}
	for i := range parts {
		of := func(n int) (from, to int) { return n * i / parts, n * (i + 1) / parts }
		from, to := of(len(c.pages))
		s.Files = append(s.Files, put(t, f, "pages", layout.Table("pages", c.crawl, 0, i), c.pages[from:to]))
		from, to = of(len(c.fetches))
		s.Files = append(s.Files, put(t, f, "fetches", layout.Table("fetches", c.crawl, 0, i), c.fetches[from:to]))
	}
	return s
}

// threeMonths returns a web that changes by each kind of change. Its reparse must not count.
func threeMonths() []*changing {
	sep, oct, reparse, nov := &changing{crawl: "2026-09"}, &changing{crawl: "2026-10"}, &changing{crawl: "2026-10r1"}, &changing{crawl: "2026-11"}
	changed := true
	for _, path := range []string{"back", "cosmetic", "gone", "none", "redirected", "soft", "text", "title", "unmodified"} {
		sep.page(path, "P1", "T1", "Title", -1)
	}
	sep.page("empty", "P1", "", "", 0)
	sep.page("hinted", "P1", "T0", "Not found", 3).PageHint = "soft_404"
	sep.answer("missing", schema.HTTP4xx, 404, "")

	oct.answer("back", schema.HTTP4xx, 404, "")
	oct.page("cosmetic", "P2", "T1", "Title", -1)
	oct.page("empty", "P2", "", "", 0)
	oct.answer("gone", schema.HTTP4xx, 410, "")
	oct.page("hinted", "P2", "T2", "Title", 7)
	oct.page("late", "P1", "T1", "Title", 1).Changed = &changed // its last fetch is in no open round
	led := oct.page("led", "P1", "T1", "Title", 1)              // the redirecting URL had another content before
	led.PlannedURL, led.Changed = "https://a.org/leads", &changed
	oct.answer("missing", schema.HTTP4xx, 404, "")
	oct.page("none", "P1", "T1", "Title", -1)
	oct.answer("old", schema.HTTP4xx, 404, "redirected") // the target is gone, the redirecting URL was no page
	oct.page("soft", "P2", "T0", "Not found", 3).PageHint = "soft_404"
	oct.page("text", "P2", "T2", "Title", 0)
	oct.page("title", "P2", "T1", "Other", -1)
	oct.answer("unmodified", schema.NotModified, 304, "")
	oct.answer("none", schema.HTTP4xx, 403, "") // a refusal says nothing about the page

	reparse.page("text", "P9", "T9", "Title", 5)

	nov.page("back", "P2", "T2", "Title", -4)
	nov.page("text", "P2", "T2", "Title", 0)
	nov.page("unmodified", "P2", "T1", "Title", -1)
	nov.answer("gone", schema.HTTP4xx, 404, "")
	distance, other := int32(9), true
	stored := nov.page("stored", "P2", "T2", "Title", -1) // its last capture is in no open round
	stored.Change, stored.ChangeDistance, stored.TitleChanged = schema.ChangeText, &distance, &other
	stored.LinksAdded, stored.LinksRemoved = new(int32(2)), new(int32(1))
	return []*changing{sep, oct, reparse, nov}
}

func TestDuckDBComparesPagesWithTheirLastCaptures(t *testing.T) {
	duckdbtest.Need(t)
	asked := func(name string) string { return filepath.Join("..", "..", "cmd", "sql", "queries", name+".sql") }
	for parts := 1; parts <= 2; parts++ {
		t.Run(fmt.Sprintf("%d parts", parts), func(t *testing.T) {
			f, sealed := newFixture(t), []*manifest.Sealed(nil)
			for _, month := range threeMonths() {
				sealed = append(sealed, month.seal(t, f, parts))
			}
			all := duckdbtest.SQLFile(t, `SELECT substr(url, 15) AS path, crawl, change, distance, title_changed, last_crawl FROM page_changes
				WHERE crawl > '2026-09' ORDER BY path, crawl`)
			first := duckdbtest.SQLFile(t, "SELECT change, count(*) AS n FROM page_changes WHERE crawl = '2026-09' GROUP BY change")
			links := duckdbtest.SQLFile(t, `SELECT substr(url, 15) AS path, crawl, links_added, links_removed FROM page_changes
				WHERE links_added IS NOT NULL OR links_removed IS NOT NULL ORDER BY ALL`)
			most, gone := asked("what-changed-most"), asked("gone-pages")
			answers := duckdbtest.Ask(t, f.views(t, sealed...), all, first, links, most, gone)
			for file, want := range map[string][]string{
				all: {
					"back|2026-10|gone|<nil>|<nil>|2026-09", "back|2026-11|text|2|false|2026-09",
					"cosmetic|2026-10|cosmetic|0|false|2026-09", "empty|2026-10|cosmetic|0|false|2026-09",
					"gone|2026-10|gone|<nil>|<nil>|2026-09", "gone|2026-11|gone|<nil>|<nil>|2026-09",
					"hinted|2026-10|new|<nil>|<nil>|<nil>", "late|2026-10|<nil>|<nil>|<nil>|<nil>",
					"led|2026-10|new|<nil>|<nil>|<nil>",
					"none|2026-10|none|0|false|2026-09", "redirected|2026-10|gone|<nil>|<nil>|2026-09", "soft|2026-10|gone|<nil>|<nil>|2026-09",
					"stored|2026-11|text|9|true|<nil>",
					"text|2026-10|text|64|false|2026-09", "text|2026-11|none|0|false|2026-10",
					"title|2026-10|cosmetic|0|true|2026-09",
					"unmodified|2026-10|none|<nil>|<nil>|2026-09", "unmodified|2026-11|cosmetic|0|false|2026-09",
				},
				first: {"new|10"},
				links: {"none|2026-10|0|0", "stored|2026-11|2|1", "text|2026-11|0|0"}, // old formats tell only equal payloads
				most:  {"https://a.org/text|64|false|2026-09|0|2026-10|0", "https://a.org/stored|9|true|<nil>|<nil>|2026-11|0", "https://a.org/back|2|false|2026-09|0|2026-11|0"},
				gone: {
					"https://a.org/gone|2026-09|0|2026-10|0", "https://a.org/gone|2026-09|0|2026-11|0",
					"https://a.org/redirected|2026-09|0|2026-10|0", "https://a.org/soft|2026-09|0|2026-10|0",
				},
			} {
				if diff := cmp.Diff(want, answers[file].Lines()); diff != "" {
					t.Errorf("(- want, + DuckDB):\n%s", diff)
				}
			}
		})
	}
}
