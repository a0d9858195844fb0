package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

// rewrite replaces the rows of an object by change(rows).
func rewrite[T any](d *damagedCrawl, key string, change func([]T) []T, opts ...table.WriterOption) {
	d.t.Helper()
	ctx := d.t.Context()
	rows := tabletest.Read[T](d.t, d.b, key)
	if err := d.b.Delete(ctx, key); err != nil {
		d.t.Fatal(err)
	}
	tabletest.Write(d.t, d.b, "", key, change(rows), opts...)
}

// rowsOf reads a dataset of a round.
func rowsOf[T any](d *damagedCrawl, dataset string, number int) []T {
	d.t.Helper()
	rows := tabletest.ReadFiles[T](d.t, d.b, d.sealed(number).FilesOf(dataset))
	if len(rows) == 0 {
		d.t.Fatalf("%s of round %d has no rows", dataset, number)
	}
	return rows
}

func TestEveryLinkTargetIsAccountedFor(t *testing.T) {
	d := copyCrawl(t)
	for number := range 2 {
		if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, d.load(number)); err != nil {
			t.Fatal(err)
		}
	}
	d.expectClean(6)
	if got := d.itemsRead(linksCheck); got < 500 {
		t.Errorf("only %d link targets", got)
	}
}

// damageRow replaces a row of a dataset of round 0 by the rows that change returns for it, and returns
// the URL of the row. The row is the first one for which fits returns true.
func damageRow[T any](d *damagedCrawl, dataset string, url func(*T) string, fits func(*T) bool, change func(*T) []T) string {
	d.t.Helper()
	for bucket := range d.load(0).Plan.Buckets {
		key := layout.Table(dataset, testCrawl, 0, bucket)
		rows := tabletest.Read[T](d.t, d.b, key)
		if i := slices.IndexFunc(rows, func(r T) bool { return fits(&r) }); i >= 0 {
			found := url(&rows[i])
			rewrite(d, key, func(rows []T) []T { return slices.Concat(rows[:i], change(&rows[i]), rows[i+1:]) })
			return found
		}
	}
	d.t.Fatalf("no row of %s fits", dataset)
	return ""
}

func TestDamageToURLsAndSkipsIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	urlOf := func(r *schema.URLRecord) string { return r.URL }
	inState := func(s schema.URLState) func(*schema.URLRecord) bool {
		return func(r *schema.URLRecord) bool { return r.State == s }
	}
	drop := func(*schema.URLRecord) []schema.URLRecord { return nil }
	set := func(change func(*schema.URLRecord)) func(*schema.URLRecord) []schema.URLRecord {
		return func(r *schema.URLRecord) []schema.URLRecord {
			change(r)
			return []schema.URLRecord{*r}
		}
	}
	for name, c := range map[string]struct {
		damage  func(d *damagedCrawl) string
		problem string
	}{
		"a link target that is in no table": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, inState(schema.StateFound), drop)
		}, "links to it ("},
		"a skipped target without its row": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileSkips, func(s *schema.Skip) string { return s.URL },
				func(s *schema.Skip) bool { return s.Reason == schema.SkipNofollow || s.Reason == schema.SkipOutOfScope },
				func(*schema.Skip) []schema.Skip { return nil })
		}, "links to it ("},
		"a skip without a reason": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileSkips, func(s *schema.Skip) string { return s.URL },
				func(s *schema.Skip) bool { return s.SURT != "" },
				func(s *schema.Skip) []schema.Skip { s.Reason = "because"; return []schema.Skip{*s} })
		}, "does not exist"},
		"a redirect's target": {func(d *damagedCrawl) string {
			targets := map[string]bool{}
			for _, f := range rowsOf[schema.Fetch](d, stages.FileFetches, 0) {
				targets[f.RedirectTarget] = f.Outcome == schema.Redirected
			}
			return damageRow(d, stages.FileSkips, func(s *schema.Skip) string { return s.URL },
				func(s *schema.Skip) bool { return targets[s.URL] }, func(*schema.Skip) []schema.Skip { return nil })
		}, "(redirect)"},
		"a fetched URL without a row": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, inState(schema.StateFetched), drop)
		}, "has no row in urls"},
		"a state that does not follow": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, inState(schema.StateFetched), set(func(r *schema.URLRecord) { r.State = schema.StateFailed }))
		}, "its state is fetched; urls says failed"},
		"a state that there is not": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, inState(schema.StateFound), set(func(r *schema.URLRecord) { r.State = "lost" }))
		}, `its state "lost"`},
		"two rows of a URL": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, inState(schema.StateFound), func(r *schema.URLRecord) []schema.URLRecord { return []schema.URLRecord{*r, *r} })
		}, "2 rows in one round"},
		"a round that planned it not": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, inState(schema.StateFetched), set(func(r *schema.URLRecord) { r.LastPlanned = "2026-10.4" }))
		}, `planned last in "2026-10.4"`},
		"planned, but not fetched": {func(d *damagedCrawl) string {
			return damageRow(d, stages.FileURLs, urlOf, inState(schema.StateFound), set(func(r *schema.URLRecord) { r.LastPlanned = "2026-11.0" }))
		}, "fetches has no row for it"},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			r := d.load(0)
			url := c.damage(d)
			if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, r); err != nil {
				t.Fatal(err)
			}
			d.expectViolation(url, c.problem)
			if n := d.a.Report().Found(); n != 1 && c.problem != "has no row in urls" { // each link to a URL without a row may be a violation, too
				t.Errorf("%d violations: %+v", n, d.a.Report().Violations)
			}
		})
	}
}

func TestARedirectToNowhereIsFound(t *testing.T) {
	d := copyCrawl(t)
	key, url := "", ""
	for _, p := range d.load(0).Plan.Partitions {
		at := layout.Table(stages.FileFetches, testCrawl, 0, p.Partition)
		rewrite(d, at, func(rows []schema.Fetch) []schema.Fetch {
			for i := range rows {
				if url == "" && rows[i].Outcome == schema.Redirected {
					rows[i].RedirectTarget = ""
					key, url = at, rows[i].URL
				}
			}
			return rows
		})
	}
	if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, d.load(0)); err != nil {
		t.Fatal(err)
	}
	d.expectViolation(url, "does not name the target")
	if v := d.a.Report().Violations; len(v) != 1 || v[0].Object != key {
		t.Errorf("%+v", v)
	}
}

func TestAPartThatCannotBeReadIsAViolation(t *testing.T) {
	d := copyCrawl(t)
	r := d.load(0)
	key := layout.Table(stages.FileURLs, testCrawl, 0, 1)
	d.replace(key, []byte("not a table"))
	if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, r); err != nil {
		t.Fatal(err)
	}
	v := d.a.Report().Violations
	if len(v) != 1 || v[0].Object != key {
		t.Errorf("%+v", v)
	}
}

// A crawl that is years old has hundreds of earlier rounds. Only some of their parts are open at a time, and still each
// of them counts.
func TestPartsOfManyEarlierRoundsAreMergedInPasses(t *testing.T) {
	const rounds = 100
	for name, c := range map[string]struct {
		has     func(round int) bool // whether the round has a row of the target
		damaged bool                 // whether a part cannot be read
		problem string
	}{
		"the oldest round has the target": {func(round int) bool { return round == 0 }, false, ""},
		"the newest round has the target": {func(round int) bool { return round == rounds-1 }, false, ""},
		"no round has the target":         {func(round int) bool { return false }, false, "links to it ("},
		"a part is damaged":               {func(round int) bool { return true }, true, "it cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			r := d.load(1)
			known := map[string]bool{}
			for _, u := range rowsOf[schema.URLRecord](d, stages.FileURLs, 0) {
				known[u.URL] = true
			}
			var row schema.URLRecord // of a target of a link, which the round no longer has
			for bucket := range r.Plan.Buckets {
				rewrite(d, layout.Table(stages.FileURLs, testCrawl, 1, bucket), func(rows []schema.URLRecord) []schema.URLRecord {
					i := slices.IndexFunc(rows, func(u schema.URLRecord) bool { return !known[u.URL] && u.State == schema.StateFound })
					if i < 0 || row.URL != "" {
						return rows
					}
					row = rows[i]
					return slices.Delete(rows, i, i+1)
				})
			}
			var more []schema.URLRecord // keep the parts open, because a reader reads several rows ahead
			for i := range 100 {
				more = append(more, schema.URLRecord{SURT: fmt.Sprintf("zz,%03d)/", i), URL: fmt.Sprintf("http://%03d.zz/", i)})
			}
			var earlier []*manifest.Sealed
			for n := range rounds {
				all := more
				if c.has(n) {
					all = append([]schema.URLRecord{row}, more...)
				}
				s := &manifest.Sealed{Crawl: "2026-10", Round: n, Buckets: 1}
				s.Files = append(s.Files, tabletest.Write(t, d.b, stages.FileURLs, layout.Table(stages.FileURLs, s.Crawl, n, 0), all))
				earlier = append(earlier, s)
			}
			where := row.URL
			if c.damaged {
				where = earlier[rounds/2].Files[0].Key
				d.replace(where, []byte(strings.Repeat("damaged", 20)))
			}
			r.Earlier = append(earlier, r.Earlier...)
			opened := &storetest.OpenCounter{Bucket: d.b}
			d.a.Bucket = opened
			if err := reducecheck.NoLinkTargetIsLost(t.Context(), d.a, r); err != nil {
				t.Fatal(err)
			}
			found := d.a.Report().Violations
			if c.problem == "" && len(found) > 0 || c.problem != "" && (len(found) != 1 || !strings.Contains(found[0].Problem, c.problem) || found[0].Row != where && found[0].Object != where) {
				t.Errorf("found %+v, want %q of %s", found, c.problem, where)
			}
			if open, most := opened.Counts(); most > 64+16 || open != 0 {
				t.Errorf("%d objects were open at a time, %d still are", most, open)
			}
		})
	}
}
