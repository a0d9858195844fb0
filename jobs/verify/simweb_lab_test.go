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
	"crawlbatch.io/crawlbatch/jobs/jobstest"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// crawlLab is a planned crawl of a server.
type crawlLab struct {
	bucket store.Bucket
	dir    string // directory of the store
	cfg    *config.Config
	driver *jobs.Driver
}

// reparse plans the crawl as, which parses the responses of the lab's crawl again.
func (l *crawlLab) reparse(t *testing.T, as string) {
	t.Helper()
	if _, err := jobs.Reparse(t.Context(), jobs.ReparseRequest{
		Bucket: l.bucket, As: as, Of: testCrawl, Config: l.cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
}

// simwebLab is a planned crawl of a synthetic web which a server serves until the test ends.
type simwebLab struct {
	*crawlLab
	web *simweb.Web
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
	return &simwebLab{newCrawlLab(t, ln.Addr().String(), slices.Collect(web.Seeds()), change), web}
}

// newCrawlLab plans a crawl of the given URLs. The server at addr answers all requests of the
// crawl.
func newCrawlLab(t *testing.T, addr string, urls []string, change func(*config.Config)) *crawlLab {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seeds, scratch := filepath.Join(t.TempDir(), "urls.txt"), t.TempDir()
	if err := os.WriteFile(seeds, []byte(strings.Join(urls, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, clock, log := testConfig(addr), stages.SystemClock{}, slog.New(slog.DiscardHandler)
	cfg.Plan.PartitionURLs = 300
	change(cfg)
	if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: b, Crawl: testCrawl, Sources: []source.Source{from}, Config: cfg, Clock: clock, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
	try := worker.Runner{Bucket: b, Config: cfg, Version: "test", Scratch: scratch, Clock: clock, Log: log, Progress: stages.NoProgress{}}
	return &crawlLab{b, dir, cfg, &jobs.Driver{
		Bucket: b, Observer: jobstest.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 1, Clock: clock, Log: log},
	}}
}

// verify fails the test for each violation.
func (l *crawlLab) verify(t *testing.T, oneClock bool) {
	t.Helper()
	for _, v := range l.report(t, oneClock).Violations {
		t.Errorf("%+v", v)
	}
}

func (l *crawlLab) report(t *testing.T, oneClock bool) *Report {
	t.Helper()
	r, err := Run(t.Context(), Options{Bucket: l.bucket, Crawl: testCrawl, Round: -1, Config: l.cfg, Scratch: t.TempDir(), Sample: 1, OneClock: oneClock})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
