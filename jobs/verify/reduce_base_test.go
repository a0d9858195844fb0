package verify

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// crawlDeep crawls a small web in several rounds, beginning with a single page. It returns the store,
// its directory, and the config.
func crawlDeep(t *testing.T, rounds int) (store.Bucket, string, *config.Config) {
	t.Helper()
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.FaultShare, w.CrawlDelay, w.RetryAfter = 6, 40, 0, 0, 0
	web, err := simweb.New(w)
	if err != nil {
		t.Fatal(err)
	}
	addr, stop, err := serveWeb(web)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	dir := t.TempDir()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seeds := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(seeds, []byte(slices.Collect(web.Seeds())[0]+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(addr)
	cfg.Politeness.Delay, cfg.Frontier.Follow = 0, "any"
	request := jobs.PlanRequest{
		Bucket: b, Crawl: testCrawl, Sources: []source.Source{from}, Config: cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	}
	if _, _, err := jobs.Plan(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := drive(t.Context(), b, cfg, t.TempDir(), rounds); err != nil {
		t.Fatal(err)
	}
	return b, dir, cfg
}

// A crawl of several rounds writes a base of urls. Later rounds read the base instead of the earlier
// parts of urls. The audit reads these parts, and compares the rounds' decisions with them. A lost base
// is a violation, and can be rebuilt.
func TestABaseOfURLsIsReadAuditedAndRebuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	b, dir, cfg := crawlDeep(t, 5)
	sealed, err := roundstate.Sealed(t.Context(), b, testCrawl)
	if err == nil {
		sealed, err = roundstate.WithFiles(t.Context(), b, sealed, roundstate.Selection{})
	}
	if err != nil {
		t.Fatal(err)
	}
	based := slices.IndexFunc(sealed[:len(sealed)-1], func(s *manifest.Sealed) bool { return len(s.FilesOf(stages.FileURLsBase)) > 0 })
	if based < 0 {
		t.Fatalf("no round before the last of %d has a base", len(sealed))
	}
	key := sealed[based].FilesOf(stages.FileURLsBase)[0].Key
	if keys := urlstate.After(sealed).Chain(0, 1).Keys(); !slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(k, stages.FileURLsBase) }) || slices.Contains(keys, layout.Table(stages.FileURLs, testCrawl, 0, 0)) {
		t.Errorf("the next round would read %v", keys)
	}
	audit := func() *Report {
		r, err := Run(t.Context(), Options{Bucket: b, Crawl: testCrawl, Round: -1, Config: cfg, Scratch: t.TempDir(), Sample: 1, OneClock: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := audit(); r.Found() > 0 {
		t.Fatalf("%+v", r.Violations)
	}
	lost, err := os.ReadFile(filepath.Join(dir, key))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, key)); err != nil {
		t.Fatal(err)
	}
	if r := audit(); r.Found() != 1 || r.Violations[0].Object != key || !strings.Contains(r.Violations[0].Problem, "retry --month 2026-11 --rebuild") {
		t.Errorf("a lost base: %+v", r.Violations)
	}
	rebuilt(t, b, cfg, stages.Task{Stage: stages.Frontier, Crawl: testCrawl, Round: based}, key)
	if again, err := os.ReadFile(filepath.Join(dir, key)); err != nil || !slices.Equal(again, lost) {
		t.Errorf("the rebuilt base has %d bytes, the lost one %d: %v", len(again), len(lost), err)
	}
}

// rebuilt rebuilds a task, and fails the test unless the rebuild recreates exactly the object with
// the given key.
func rebuilt(t *testing.T, b store.Bucket, cfg *config.Config, task stages.Task, key string) {
	t.Helper()
	r := worker.Runner{Bucket: b, Config: cfg, Version: "test", Scratch: t.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
	keys, err := r.Rebuild(t.Context(), task)
	if err != nil || !slices.Equal(keys, []string{key}) {
		t.Errorf("rebuilt %v: %v", keys, err)
	}
}
