package publish

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// publishPages publishes pages and the clusters of some of them as a round of one partition, and returns
// the URLs of the pages in families of soft 404s.
func publishPages(t *testing.T, pages []schema.WorkingPage, duplicates []schema.Duplicate) (marked []string) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pages, func(a, b schema.WorkingPage) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
	slices.SortFunc(duplicates, func(a, b schema.Duplicate) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
	in := &stages.Input{
		Task: stages.Task{Stage: stages.Publish, Crawl: "2026-11"},
		Plan: &manifest.Plan{ID: "p", Crawl: "2026-11", Buckets: 1, Partitions: []manifest.PlanPartition{{}}},
		Results: map[stages.Stage][]*manifest.Result{
			stages.Merge: {put(t, b, stages.FilePages, layout.Working("2026-11", 0, "merge", stages.FilePages, 0), pages...)},
			stages.Dedup: {put(t, b, stages.FileDuplicates, layout.Table(stages.FileDuplicates, "2026-11", 0, 0), duplicates...)},
			stages.Rank:  {put[schema.Inlink](t, b, stages.FileInlinks, layout.Working("2026-11", 0, "rank", stages.FileInlinks, 0))},
		},
	}
	in.Results[stages.Rank][0].Files = append(in.Results[stages.Rank][0].Files,
		put[schema.Host](t, b, stages.FileHosts, layout.Table(stages.FileHosts, "2026-11", 0, 0)).Files...)
	env := &stages.Env{Bucket: b, Scratch: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if _, err := Run(t.Context(), env, in); err != nil {
		t.Fatal(err)
	}
	for _, p := range tabletest.Read[schema.Page](t, b, layout.Table("pages", "2026-11", 0, 0)) {
		if p.Soft404Family {
			marked = append(marked, p.URL)
		}
	}
	return marked
}

// clusterOf returns n pages of one cluster. The place %d in the form of their URLs holds their number.
func clusterOf(t *testing.T, form string, n int, edit func(int, *schema.PageColumns)) (pages []schema.WorkingPage, duplicates []schema.Duplicate) {
	for i := range n {
		p := working(t, strings.ReplaceAll(form, "%d", fmt.Sprint(i)), true)
		p.FetchStatus, p.WordCount = 200, 50
		if edit != nil {
			edit(i, &p.PageColumns)
		}
		pages = append(pages, p)
		duplicates = append(duplicates, schema.Duplicate{SURT: p.SURT, URL: p.URL, Representative: pages[0].URL, Kind: schema.DupExact, ClusterSize: int32(n)})
	}
	return pages, duplicates
}

func TestFamiliesOfSoft404sAreMarkedAndLegitimateCopiesAreNot(t *testing.T) {
	for name, c := range map[string]struct {
		form string
		n    int
		edit func(int, *schema.PageColumns)
		want bool
	}{
		"the same page at many paths":      {"http://h.test/%d/page", 10, nil, true},
		"with hints":                       {"http://h.test/%d", 12, func(_ int, p *schema.PageColumns) { p.PageHint = schema.HintSoft404 }, true},
		"too few paths: mirrored folders":  {"http://h.test/%d/page", 9, nil, false},
		"a print version":                  {"http://h.test/article/%d", 2, nil, false},
		"parameters: sessions":             {"http://h.test/page?id=%d", 50, nil, false},
		"many hosts: a default page":       {"http://h%d.test/page", 50, nil, false},
		"declared copies":                  {"http://h.test/%d", 50, func(_ int, p *schema.PageColumns) { p.CanonicalURL = "http://h.test/0" }, false},
		"few words: pages made by scripts": {"http://h.test/%d", 50, func(_ int, p *schema.PageColumns) { p.WordCount = 9 }, false},
		"pages that answered an error":     {"http://h.test/%d", 50, func(_ int, p *schema.PageColumns) { p.FetchStatus = 503 }, false},
		"another hint: a blocking server":  {"http://h.test/%d", 50, func(_ int, p *schema.PageColumns) { p.PageHint = schema.HintBlocked }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pages, duplicates := clusterOf(t, c.form, c.n, c.edit)
			if got := len(publishPages(t, pages, duplicates)); got != 0 != c.want || c.want && got != c.n {
				t.Errorf("%d of %d pages are marked", got, c.n)
			}
		})
	}
	pages, duplicates := clusterOf(t, "http://h.test/%d", 20, nil)
	root, _ := clusterOf(t, "http://h.test/", 1, nil)
	duplicates = append(duplicates, schema.Duplicate{SURT: root[0].SURT, URL: root[0].URL, Representative: duplicates[0].Representative, ClusterSize: 21})
	if got := publishPages(t, append(pages, root...), duplicates); len(got) > 0 {
		t.Errorf("a site with one text everywhere, also at its front page, is no soft 404: %q", got)
	}
	// The front page may be of an earlier round. Then only the name of the representative shows it.
	for front, marked := range map[string]int{"http://h.test/": 0, "https://h.test/?a=b": 0, "http://other.test/": 20, "http://h.test/index.html": 20} {
		pages, duplicates := clusterOf(t, "http://h.test/%d", 20, nil)
		for i := range duplicates {
			duplicates[i].Representative, duplicates[i].ClusterSize = front, 21
		}
		if got := len(publishPages(t, pages, duplicates)); got != marked {
			t.Errorf("%d pages like %s of an earlier round are marked, want %d", got, front, marked)
		}
	}
}

// The synthetic web has soft 404s, exact copies, near copies and chains of them. Of these, only soft 404s
// are marked: those of each host with at least familyPaths of them.
func TestFamiliesOfASyntheticWeb(t *testing.T) {
	cfg := simweb.Default()
	cfg.Hosts, cfg.PagesPerHost = 6, 400
	for _, f := range faults.All {
		if f.Name != "soft-404" {
			cfg.Without = append(cfg.Without, f.Name)
		}
	}
	cfg.FaultShare, cfg.ExactShare, cfg.NearShare, cfg.ChainShare = 0.5, 0.15, 0.15, 0.5
	web, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	correct, err := truth.Compute(web, truth.Default())
	if err != nil {
		t.Fatal(err)
	}
	r := correct.Rounds[0]
	var pages []schema.WorkingPage
	soft := map[string][]string{}
	for _, p := range r.Pages {
		w := working(t, p.URL, p.Indexable)
		w.FetchStatus, w.WordCount, w.CanonicalURL = 200, p.WordCount, p.CanonicalURL
		pages = append(pages, w)
		if p.Title == "Page not found" {
			host := key(t, p.URL).Host
			soft[host] = append(soft[host], p.URL)
		}
	}
	var duplicates []schema.Duplicate
	for _, c := range r.Clusters {
		for _, m := range c.Members {
			duplicates = append(duplicates, schema.Duplicate{SURT: key(t, m.URL).SURT, URL: m.URL, Representative: c.Representative, Kind: m.Kind, ClusterSize: int32(len(c.Members))})
		}
	}
	var want []string
	for _, urls := range soft {
		if len(urls) >= familyPaths {
			want = append(want, urls...)
		}
	}
	got := publishPages(t, pages, duplicates)
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d pages are marked, %d are soft 404s at many paths of a host, %d pages are in clusters", len(got), len(want), len(duplicates))
	}
}
