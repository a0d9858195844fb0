package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/prune"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	removal "crawlbatch.io/crawlbatch/jobs/takedown"
	"crawlbatch.io/crawlbatch/stages"
)

// recount counts again, from the files of a crawl's rounds, what their seals and plans count.
func (l *crawlLab) recount(t *testing.T, crawls ...string) (want, have map[string]int64) {
	t.Helper()
	ctx := t.Context()
	want, have = map[string]int64{}, map[string]int64{}
	for _, crawl := range crawls {
		sealed, err := roundstate.Sealed(ctx, l.bucket, crawl)
		if err == nil {
			sealed, err = roundstate.WithFiles(ctx, l.bucket, sealed, roundstate.Selection{})
		}
		if err != nil {
			t.Fatal(err)
		}
		for n, s := range sealed {
			p, _, err := roundstate.FindPlan(ctx, l.bucket, crawl, n)
			if err != nil {
				t.Fatal(err)
			}
			at := func(name string) string { return fmt.Sprintf("%s.%d %s", crawl, n, name) }
			names := map[string]bool{}
			count := func(kind, name string) {
				if !names[kind+" "+name] {
					want[at("plan."+kind)]++
					names[kind+" "+name] = true
				}
			}
			for _, part := range p.Partitions {
				for _, r := range tabletest.Read[schema.PlannedURL](t, l.bucket, part.File.Key) {
					want[at("plan.urls")]++
					count("hosts", r.Host)
					count("domains", r.Domain)
					if key := fmt.Sprintf("%d.", part.Partition); !names[key+r.Host] {
						want[at("hosts of partitions")]++
						names[key+r.Host] = true
					}
				}
				have[at("hosts of partitions")] += part.Hosts
			}
			for _, r := range tabletest.Read[schema.Refused](t, l.bucket, p.RefusedFile.Key) {
				want[at("refused."+string(r.Reason))]++
			}
			for _, c := range p.Refused {
				if c.Name != string(schema.SkipDuplicate) && c.N > 0 { // no row says what was a duplicate
					have[at("refused."+c.Name)] = c.N
				}
			}
			for _, r := range tabletest.ReadFiles[schema.Page](t, l.bucket, s.FilesOf(stages.FilePages)) {
				want[at("publish.pages")]++
				if r.Indexable {
					want[at("publish.indexable")]++
				}
				if r.DuplicateOf != "" {
					want[at("publish.duplicates")]++
				}
			}
			for _, r := range tabletest.ReadFiles[schema.Duplicate](t, l.bucket, s.FilesOf(stages.FileDuplicates)) {
				if r.Kind != schema.DupRepresentative {
					want[at("dedup."+string(r.Kind))]++
				}
			}
			for _, r := range tabletest.ReadFiles[schema.Request](t, l.bucket, s.FilesOf(stages.FileRequests)) {
				want[at("fetch.bytes")] += r.BytesReceived
			}
			for partition := range p.Partitions {
				res, _, err := roundstate.LoadResultOf(ctx, l.bucket, p, stages.Task{Crawl: crawl, Round: n, Stage: stages.Merge, Partition: partition})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range res.FilesOf(stages.FileTargets) {
					want[at("rank.edges")] += int64(len(tabletest.ReadRun[schema.TargetLinks](t, l.bucket, f)))
				}
			}
			for _, c := range s.Counts {
				if _, ok := want[at(c.Name)]; ok {
					have[at(c.Name)] = c.N
				}
			}
		}
	}
	return want, have
}

// The counts of seals and plans are those of the rows that are left. The clusters lose members and
// representatives, hosts and domains go as a whole and in part, and URLs wait that no round has planned.
func TestCountsFollowWhatIsTakenDown(t *testing.T) {
	const same = "<p>one text of many words that several pages share, so that they are duplicates of each other and one of them represents them all"
	pages := map[string]string{"a.test/": "/1 /2 /3 /same http://b.test/ http://gone.test/ http://www.gone.test/", "b.test/": "http://gone.test/deep /same /only"}
	for i := range 9 {
		pages[fmt.Sprintf("a.test/%d", i)] = fmt.Sprintf("/%d http://gone.test/%d http://x.gone.test/%d", i+1, i+1, i)
		pages[fmt.Sprintf("gone.test/%d", i)] = fmt.Sprintf("/%d /wait/%d http://a.test/%d http://c.test/%d", i+1, i, i, i)
	}
	for _, url := range []string{"gone.test/", "www.gone.test/", "x.gone.test/0", "b.test/only", "c.test/1"} {
		pages[url] = "/1 /2"
	}
	for _, host := range []string{"a.test", "b.test", "gone.test"} {
		pages[host+"/same"] = same
	}
	_, addr := serveLinks(t, pages)
	seeds := []string{"http://a.test/", "http://a.test/0", "http://gone.test/same", "http://gone.test/0", "http://b.test/", "http://www.gone.test/", "http://only.test/gone", "ftp://gone.test/"}
	l := newCrawlLab(t, addr, seeds, func(c *config.Config) {
		withKey(t, c, takedownSecret)
		c.Frontier.Follow, c.Plan.PartitionURLs = "any", 4
	})
	const next = "2026-12"
	if err := l.driver.Run(t.Context(), testCrawl, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := l.planNext(t, next, []string{"http://a.test/", "http://gone.test/9"}); err != nil {
		t.Fatal(err)
	}
	if err := l.driver.Run(t.Context(), next, 1); err != nil {
		t.Fatal(err)
	}
	before, have := l.recount(t, testCrawl, next)
	if diff := cmp.Diff(before, have); diff != "" {
		t.Fatalf("before any takedown, the counts are not those of the rows (-rows +counts):\n%s", diff)
	}
	// The second takedown finds the counts of the first, and rows that the first gave another representative.
	for _, domain := range []string{"gone.test", "b.test"} {
		request := removal.Request{
			Bucket: l.bucket, Domains: []string{domain}, URLs: []string{"http://only.test/gone", "http://a.test/2"}, Reason: "asked", Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
		}
		if _, err := removal.Apply(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		after, have := l.recount(t, testCrawl, next)
		for name := range before {
			if _, ok := after[name]; !ok && have[name] == 0 {
				delete(have, name)
			}
		}
		if diff := cmp.Diff(after, have); diff != "" {
			t.Errorf("%s: the counts are not those of the rows that are left (-rows +counts):\n%s", domain, diff)
		}
		if domain == "gone.test" {
			for _, name := range []string{"plan.hosts", "plan.domains", "publish.indexable", "dedup.exact", "fetch.bytes", "rank.edges", "refused.bad_scheme"} {
				var was, is int64
				for round := range 2 {
					at := fmt.Sprintf("%s.%d %s", testCrawl, round, name)
					was, is = was+before[at], is+after[at]
				}
				if is >= was {
					t.Errorf("%s: %d before the takedown and %d after it: the test shows nothing", name, was, is)
				}
			}
		}
	}
	l.verify(t, false)
}

// A reparse repeats the fetched rows of its month. Their counts follow a takedown, although the month's segments, which
// the reparse lists, were pruned.
func TestCountsOfAReparseFollowAfterAPrune(t *testing.T) {
	_, addr := serveLinks(t, map[string]string{"a.test/": "/1 http://gone.test/", "a.test/1": "/", "gone.test/": "http://a.test/"})
	l := newCrawlLab(t, addr, []string{"http://a.test/", "http://a.test/1", "http://gone.test/"}, func(c *config.Config) { withKey(t, c, takedownSecret) })
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	as := testCrawl + "r1"
	l.reparse(t, as)
	if err := l.driver.Run(t.Context(), as, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := prune.Apply(t.Context(), prune.Request{Bucket: l.bucket, Raw: 1, Clock: ahead{days: 4000}, Version: "test"}); err != nil {
		t.Fatal(err)
	}
	removeDomain(t, l.bucket, "gone.test")
	for _, crawl := range []string{testCrawl, as} {
		r, err := Run(t.Context(), Options{Bucket: l.bucket, Crawl: crawl, Round: -1, Config: l.cfg, Scratch: t.TempDir(), Sample: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.Violations {
			t.Errorf("%s: %+v", crawl, v)
		}
	}
	if have := fetchedCounts(t, l.bucket, as); have["fetch.urls"] != 2 || have["fetch.outcome.ok"] != 2 {
		t.Errorf("2 URLs are left, but the counts are %v", have)
	}
}

// removeDomain takes a domain down.
func removeDomain(t *testing.T, b store.Bucket, domain string) {
	t.Helper()
	if _, err := removal.Apply(t.Context(), removal.Request{
		Bucket: b, Domains: []string{domain}, Reason: "asked", Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
	}); err != nil {
		t.Error(err)
	}
}

// fetchedCounts returns what the seal of a crawl's first round counts as fetched.
func fetchedCounts(t *testing.T, b store.Bucket, crawl string) map[string]int64 {
	t.Helper()
	sealed, err := roundstate.Sealed(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, c := range sealed[0].Counts {
		if strings.HasPrefix(c.Name, "fetch.") {
			counts[c.Name] = c.N
		}
	}
	return counts
}

// The published links have those of unchanged pages, which the rounds before counted.
func TestTheCountOfFetchedLinksStaysAfterAPrune(t *testing.T) {
	m := year(t, directory(t), 2, 3, 4)
	second := monthAfter(firstOfYear, 1)
	m.apply(14)
	before := fetchedCounts(t, m.b, second)
	domain := rowsOfMonth[schema.Fetch](m, second, stages.FileFetches)[0].Domain
	removeDomain(t, m.b, domain)
	after := fetchedCounts(t, m.b, second)
	if after["fetch.links"] != before["fetch.links"] || after["fetch.urls"] >= before["fetch.urls"] || after["fetch.bytes"] >= before["fetch.bytes"] {
		t.Errorf("before %v, after %v", before, after)
	}
	for name, n := range after {
		if n < 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
	m.notes(second)
}
