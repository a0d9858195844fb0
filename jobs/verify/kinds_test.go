package verify

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// TestOnlyLinksOfTheKindsThatConfigNamesAreFollowed crawls a web by its areas, frames
// and redirects alone.
func TestOnlyLinksOfTheKindsThatConfigNamesAreFollowed(t *testing.T) {
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.CrawlDelay, w.RetryAfter, w.Faults = 6, 40, 20*time.Millisecond, 0, simweb.Quick
	web, err := simweb.New(w)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	serving, stop := context.WithCancel(t.Context())
	go func() { served <- simweb.NewServer(web, nil).Serve(serving, ln) }()
	defer func() {
		stop()
		<-served
	}()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seeds, scratch := filepath.Join(t.TempDir(), "urls.txt"), t.TempDir()
	if err := os.WriteFile(seeds, []byte(strings.Join(slices.Collect(web.Seeds()), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, clock, log := testConfig(ln.Addr().String()), stages.SystemClock{}, slog.New(slog.DiscardHandler)
	cfg.Plan.PartitionURLs, cfg.Frontier.Follow = 300, "any"
	cfg.Frontier.Kinds = []string{"area", "iframe", "redirect"}
	if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: b, Crawl: testCrawl, Sources: []source.Source{from}, Config: cfg, Clock: clock, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
	try := worker.Runner{Bucket: b, Config: cfg, Version: "test", Scratch: scratch, Clock: clock, Log: log, Progress: stages.NoProgress{}}
	d := &jobs.Driver{
		Bucket: b, Observer: jobs.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 1, Clock: clock, Log: log},
	}
	if err := d.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Bucket: b, Crawl: testCrawl, Round: -1, Config: cfg, Scratch: t.TempDir(), Sample: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}

	met := map[string]bool{}
	for line := range web.Seeds() {
		met[line] = true
	}
	found := 0
	for l, err := range table.Concat[schema.Link](t.Context(), b, []string{layout.Table("links", testCrawl, 0, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		met[l.Target] = met[l.Target] || slices.Contains(cfg.Frontier.Kinds, string(l.Kind))
	}
	for u, err := range table.Concat[schema.URLRecord](t.Context(), b, []string{layout.Table("urls", testCrawl, 0, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		if u.State != schema.StateFound {
			continue
		}
		if found++; !met[u.URL] {
			t.Errorf("%s was found, and no link of a followed kind leads there", u.URL)
		}
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}
