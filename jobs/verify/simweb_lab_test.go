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

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// simwebLab is a planned crawl of a synthetic web that is served until the test ends.
type simwebLab struct {
	bucket store.Bucket
	web    *simweb.Web
	cfg    *config.Config
	driver *jobs.Driver
}

func newSimwebLab(t *testing.T, w simweb.Config, change func(*config.Config)) *simwebLab {
	t.Helper()
	web, err := simweb.New(w)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	serving, stop := context.WithCancel(context.Background())
	go func() { served <- simweb.NewServer(web, nil).Serve(serving, ln) }()
	t.Cleanup(func() {
		stop()
		<-served
	})
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
	cfg.Plan.PartitionURLs = 300
	change(cfg)
	if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: b, Crawl: testCrawl, Sources: []source.Source{from}, Config: cfg, Clock: clock, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
	try := worker.Runner{Bucket: b, Config: cfg, Version: "test", Scratch: scratch, Clock: clock, Log: log, Progress: stages.NoProgress{}}
	return &simwebLab{b, web, cfg, &jobs.Driver{
		Bucket: b, Observer: jobs.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 1, Clock: clock, Log: log},
	}}
}

// verify reports each violation.
func (l *simwebLab) verify(t *testing.T, oneClock bool) {
	t.Helper()
	r, err := Run(t.Context(), Options{Bucket: l.bucket, Crawl: testCrawl, Round: -1, Config: l.cfg, Scratch: t.TempDir(), Sample: 1, OneClock: oneClock})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
}
