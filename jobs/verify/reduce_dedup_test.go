package verify

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/verify/reducecheck"
	"crawlbatch.io/crawlbatch/stages"
)

func TestClustersAreThoseThatWereStored(t *testing.T) {
	d := copyCrawl(t)
	for number := range 2 {
		r := d.load(number)
		if err := reducecheck.ClustersAreTheComponents(t.Context(), d.a, r); err != nil {
			t.Fatal(err)
		}
	}
	d.expectClean(5)
	// The crawl must contain each kind of row. Otherwise, the checks would prove nothing.
	kinds, chains, earlier := map[schema.DuplicateKind]int{}, 0, 0
	for number := range 2 {
		for _, row := range rowsOf[schema.Duplicate](d, stages.FileDuplicates, number) {
			kinds[row.Kind]++
			if row.Via != "" && row.Via != row.Representative {
				chains++
			}
			if int(row.RepresentativeRound) < number {
				earlier++
			}
		}
	}
	if len(kinds) != 3 || chains == 0 || earlier == 0 {
		t.Errorf("kinds %v, %d by chains, %d with an earlier representative", kinds, chains, earlier)
	}
}

func TestDamageToClustersIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	type rows = func(*schema.Duplicate) []schema.Duplicate
	duplicate := func(fits func(*schema.Duplicate) bool, change rows) func(*damagedCrawl) string {
		return func(d *damagedCrawl) string {
			return damageRow(d, stages.FileDuplicates, func(r *schema.Duplicate) string { return r.URL }, fits, change)
		}
	}
	set := func(change func(*schema.Duplicate)) rows {
		return func(r *schema.Duplicate) []schema.Duplicate {
			change(r)
			return []schema.Duplicate{*r}
		}
	}
	exact := func(r *schema.Duplicate) bool { return r.Kind == schema.DupExact }
	chained := func(r *schema.Duplicate) bool { return r.Via != "" && r.Via != r.Representative }
	page := func(fits func(*schema.Page) bool, change func(*schema.Page)) func(*damagedCrawl) string {
		return func(d *damagedCrawl) string {
			for _, p := range d.load(0).Plan.Partitions {
				key := layout.Table(stages.FilePages, testCrawl, 0, p.Partition)
				url := ""
				rewrite(d, key, func(rows []schema.Page) []schema.Page {
					for i := range rows {
						if fits(&rows[i]) {
							change(&rows[i])
							url = rows[i].URL
							break
						}
					}
					return rows
				})
				if url != "" {
					return url
				}
			}
			d.t.Fatal("no page fits")
			return ""
		}
	}
	representative := func(fits func(*schema.Representative, *damagedCrawl) bool, change func(*schema.Representative) []schema.Representative) func(*damagedCrawl) string {
		return func(d *damagedCrawl) string {
			url := ""
			for bucket := range d.load(0).Plan.Buckets {
				rewrite(d, layout.Working(testCrawl, 0, "dedup", stages.FileRepresentatives, bucket), func(rows []schema.Representative) []schema.Representative {
					var out []schema.Representative
					for _, r := range rows {
						if url == "" && fits(&r, d) {
							url = r.URL
							out = append(out, change(&r)...)
							continue
						}
						out = append(out, r)
					}
					return out
				})
			}
			return url
		}
	}
	any := func(*schema.Representative, *damagedCrawl) bool { return true }
	for name, c := range map[string]struct {
		damage  func(*damagedCrawl) string
		problem string
	}{
		"a dropped row":              {duplicate(exact, func(*schema.Duplicate) []schema.Duplicate { return nil }), "it is missing in duplicates"},
		"a row twice":                {duplicate(exact, func(r *schema.Duplicate) []schema.Duplicate { return []schema.Duplicate{*r, *r} }), "duplicates has 2 rows for it"},
		"another representative":     {duplicate(exact, set(func(r *schema.Duplicate) { r.Representative = r.URL })), "representative is "},
		"a representative's round":   {duplicate(exact, set(func(r *schema.Duplicate) { r.RepresentativeRound = 7 })), "representative_round is 0, not 7"},
		"a kind":                     {duplicate(exact, set(func(r *schema.Duplicate) { r.Kind = schema.DupNear })), "kind is exact, not near"},
		"a distance":                 {duplicate(exact, set(func(r *schema.Duplicate) { r.Distance = 1 })), "distance is 0, not 1"},
		"a size":                     {duplicate(exact, set(func(r *schema.Duplicate) { r.ClusterSize++ })), "cluster_size is "},
		"no via":                     {duplicate(exact, set(func(r *schema.Duplicate) { r.Via = "" })), "via is "},
		"a chain that leads nowhere": {duplicate(chained, set(func(r *schema.Duplicate) { r.Via = "http://elsewhere.test/" })), "is not a member of its cluster"},
		"a chain with a wide gap":    {duplicate(chained, set(func(r *schema.Duplicate) { r.Via = r.Representative })), "is beyond the distance limit"},
		"a row of no page": {func(d *damagedCrawl) string {
			return duplicate(exact, func(r *schema.Duplicate) []schema.Duplicate {
				more := *r
				more.URL += "~"
				return []schema.Duplicate{*r, more}
			})(d) + "~"
		}, "it is in duplicates but not in pages"},
		"a page that knows nothing of its cluster": {page(func(p *schema.Page) bool { return p.DuplicateKind == "exact" },
			func(p *schema.Page) { p.DuplicateOf, p.DuplicateKind, p.ClusterSize = "", "", 1 }), `pages says duplicate_of "", duplicate_kind "", cluster_size 1`},
		"a page with another text": {page(func(p *schema.Page) bool { return p.DuplicateKind == "exact" },
			func(p *schema.Page) { p.TextDigest, p.SimHash = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ^p.SimHash }), "it resembles no other page"},
		"a digest that is none": {page(func(p *schema.Page) bool { return p.TextDigest != "" },
			func(p *schema.Page) { p.TextDigest = "x" }), "is not a SHA-1"},
		"a representative that is gone": {representative(any, func(*schema.Representative) []schema.Representative { return nil }), "missing among the representatives"},
		"a representative of other text": {representative(any, func(r *schema.Representative) []schema.Representative {
			r.SimHash++
			return []schema.Representative{*r}
		}), "differs from the page"},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyCrawl(t)
			r := d.load(0)
			url := c.damage(d)
			if err := reducecheck.ClustersAreTheComponents(t.Context(), d.a, r); err != nil {
				t.Fatal(err)
			}
			d.expectViolation(url, c.problem)
		})
	}
}

func TestAChangedRepresentativeOfASealedRoundIsFound(t *testing.T) {
	d := copyCrawl(t)
	r := d.load(1)
	d.a.Round = 1 // otherwise, the audit would also check round 0
	key := layout.Working(testCrawl, 0, "dedup", stages.FileRepresentatives, 0)
	rewrite(d, key, func(rows []schema.Representative) []schema.Representative { return rows[1:] })
	if err := reducecheck.ClustersAreTheComponents(t.Context(), d.a, r); err != nil {
		t.Fatal(err)
	}
	v := d.a.Report().Violations
	if len(v) == 0 || !(v[0].Object == key || v[len(v)-1].Object == key) {
		t.Errorf("%+v", v)
	}
	d.expectViolation("", "representatives changed after round 2026-11.0 was sealed")
}
