package publish

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

func put[T any](t *testing.T, b store.Bucket, dataset, key string, rows ...T) *manifest.Result {
	t.Helper()
	f := tabletest.Write(t, b, dataset, key, rows)
	return &manifest.Result{Files: []manifest.File{f}, Counts: []manifest.Count{{Name: "rows", N: f.Rows}}}
}

func key(t *testing.T, url string) urlkey.Key {
	t.Helper()
	k, err := urlkey.KeyOf(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// working returns a page in the form that merge writes, with its term counts.
func working(t *testing.T, url string, indexable bool) schema.WorkingPage {
	p := page(t, url, indexable)
	return schema.Working(&p, schema.WorkingColumns{Terms: []string{"lamp"}, Counts: []int32{3}})
}

func page(t *testing.T, url string, indexable bool) schema.Page {
	return schema.Page{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{SURT: key(t, url).SURT, URL: url}, Title: url, Indexable: indexable}}
}

// input makes a round of three pages in bucket 1. Page a represents only itself, and page b represents
// its copy c. The rank result of bucket 0 lists the hosts of both buckets.
func input(t *testing.T, b store.Bucket) *stages.Input {
	t.Helper()
	ua, ub, uc := "http://h.test/a", "http://h.test/b", "http://h.test/c"
	rank := put(t, b, stages.FileInlinks, layout.Working("2026-11", 0, "rank", stages.FileInlinks, 1),
		schema.Inlink{SURT: key(t, "http://h.test/0").SURT, URL: "http://h.test/0", Inlinks: 99},
		schema.Inlink{SURT: key(t, ub).SURT, URL: ub, Inlinks: 7},
		schema.Inlink{SURT: key(t, "http://h.test/z").SURT, URL: "http://h.test/z", Inlinks: 98})
	first := put(t, b, stages.FileInlinks, layout.Working("2026-11", 0, "rank", stages.FileInlinks, 0), schema.Inlink{SURT: key(t, ub).SURT, URL: ub, Inlinks: 97})
	for n, rank := range []float64{0.25, 0.5} {
		first.Files = append(first.Files, put(t, b, stages.FileHosts, layout.Table(stages.FileHosts, "2026-11", 0, n), schema.Host{Host: "h.test", Domain: "h.test", Rank: rank}).Files...)
	}
	return &stages.Input{
		Task: stages.Task{Stage: stages.Publish, Crawl: "2026-11"},
		Plan: &manifest.Plan{ID: "p", Crawl: "2026-11", URLs: 3, Buckets: 2, Partitions: []manifest.PlanPartition{{Bucket: 1}}},
		Results: map[stages.Stage][]*manifest.Result{
			stages.Merge: {put(t, b, stages.FilePages, layout.Working("2026-11", 0, "merge", stages.FilePages, 0),
				working(t, ua, true), working(t, ub, false), working(t, uc, true))},
			stages.Dedup: {put(t, b, stages.FileDuplicates, layout.Table(stages.FileDuplicates, "2026-11", 0, 1),
				schema.Duplicate{SURT: key(t, ub).SURT, URL: ub, Representative: ub, Kind: schema.DupRepresentative, ClusterSize: 2},
				schema.Duplicate{SURT: key(t, uc).SURT, URL: uc, Representative: ub, Kind: schema.DupNear, ClusterSize: 2})},
			stages.Rank: {first, rank},
			stages.Frontier: {nil, put(t, b, stages.FileURLs, layout.Table(stages.FileURLs, "2026-11", 0, 1),
				schema.URLRecord{SURT: key(t, ub).SURT, URL: ub, Change: schema.ChangeText, ChangeDistance: new(int32(3)), TitleChanged: new(false), LinksAdded: new(int32(2)), LinksRemoved: new(int32(0))},
				schema.URLRecord{SURT: key(t, "http://h.test/z").SURT, URL: "http://h.test/z", Change: schema.ChangeGone})},
		},
	}
}

func TestPagesCarryWhatTheReducesFound(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	env := &stages.Env{Bucket: b, Scratch: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	in := input(t, b)
	r, err := Run(t.Context(), env, in)
	if err != nil {
		t.Fatal(err)
	}
	if n, c, i := r.Count("pages"), r.Count("duplicates"), r.Count("indexable"); n != 3 || c != 1 || i != 2 {
		t.Errorf("%d pages, %d duplicates, %d indexable", n, c, i)
	}
	got := tabletest.Read[schema.Page](t, b, layout.Table("pages", "2026-11", 0, 0))
	want := []schema.Page{page(t, "http://h.test/a", true), page(t, "http://h.test/b", false), page(t, "http://h.test/c", true)}
	for i := range want {
		want[i].ClusterSize, want[i].Rank = 1, 0.5
	}
	want[1].Inlinks, want[1].ClusterSize = 7, 2
	want[1].Change, want[1].ChangeDistance, want[1].TitleChanged = schema.ChangeText, new(int32(3)), new(false)
	want[1].LinksAdded, want[1].LinksRemoved = new(int32(2)), new(int32(0))
	want[2].ClusterSize, want[2].DuplicateOf, want[2].DuplicateKind = 2, "http://h.test/b", "near"
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	type counted struct {
		URL string `parquet:"url"`
		schema.WorkingColumns
	}
	for row, err := range table.Concat[counted](t.Context(), b, []string{layout.Table("pages", "2026-11", 0, 0)}) {
		if err != nil || len(row.Terms)+len(row.Counts) > 0 {
			t.Errorf("published pages carry term counts: %v, %v", row, err)
		}
	}
	again, err := Run(t.Context(), env, in)
	if err != nil {
		t.Fatalf("the second run of the task: %v", err)
	}
	if d := cmp.Diff(r, again); d != "" {
		t.Errorf("the second run gave another result: %s", d)
	}
}

func TestASealListsWhatOutlivesTheRoundAndNeedsEveryResult(t *testing.T) {
	p := &manifest.Plan{ID: "p", Crawl: "2026-11", URLs: 3, Buckets: 1, Partitions: make([]manifest.PlanPartition, 2)}
	file := func(dataset, key string) *manifest.Result {
		return &manifest.Result{Files: []manifest.File{{Dataset: dataset, Key: key}}, Counts: []manifest.Count{{Name: "n", N: 2}}}
	}
	results := map[stages.Stage][]*manifest.Result{
		stages.Fetch:    {file("warc", "warc/b"), file("pages", "crawl=2026-11/round=0/fetch/part-00001/x")},
		stages.Merge:    {file("links", "tables/links/b"), file("hostedges", "crawl=2026-11/round=0/merge/work/x")},
		stages.Dedup:    {file("duplicates", "tables/duplicates/a")},
		stages.Rank:     {file("inlinks", "crawl=2026-11/round=0/rank/work/inlinks/x")},
		stages.Frontier: {file("known", "crawl=2026-11/round=0/frontier/work/known/x")},
		stages.Publish:  {file("pages", "tables/pages/a"), file("pages", "tables/pages/b")},
	}
	results[stages.Rank][0].Files = append(results[stages.Rank][0].Files, manifest.File{Dataset: stages.FileWebGraph, Key: layout.WebGraph("2026-11", 0, "host-edges")})
	s, err := sealing(p, results).Listed()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, f := range s.Files {
		keys = append(keys, f.Key)
	}
	want := []string{"crawl=2026-11/round=0/frontier/work/known/x", "tables/duplicates/a", "tables/links/b", "tables/pages/a", "tables/pages/b", "warc/b", "webgraph/crawl=2026-11/round=0/host-edges.txt.gz"}
	if d := cmp.Diff(want, keys); d != "" {
		t.Error(d)
	}
	if i := slices.Index(s.Counts, manifest.Count{Name: "publish.n", N: 4}); i < 0 {
		t.Errorf("counts are not summed over tasks: %v", s.Counts)
	}
	results[stages.Fetch][1] = nil
	if _, err := sealing(p, results).Listed(); err == nil {
		t.Error("sealed a round with a missing result")
	}
}

func sealing(p *manifest.Plan, results map[stages.Stage][]*manifest.Result) *Sealing {
	s := NewSealing(p)
	for from, all := range results {
		for n, r := range all {
			if r != nil {
				s.Add(from, n, r)
			}
		}
	}
	return s
}
