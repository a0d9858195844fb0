package verify

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// TestACrawlThatWasInterruptedIsAsPromised stops a crawl again and again: rules of
// robots.txt, pace and outcomes go from epoch to epoch.
func TestACrawlThatWasInterruptedIsAsPromised(t *testing.T) {
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.CrawlDelay, w.RetryAfter = 20, 60, 40*time.Millisecond, 0
	w.Faults = simweb.Quick
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
	cfg.Plan.PartitionURLs = 300
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
	interruptions := 0
	for range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := d.Run(ctx, testCrawl, 1)
		cancel()
		if errors.Is(err, stages.ErrInterrupted) {
			interruptions++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Bucket: b, Crawl: testCrawl, Round: -1, Config: cfg, Scratch: t.TempDir(), Sample: 1, OneClock: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	if interruptions < 2 {
		t.Errorf("the crawl was interrupted %d times only", interruptions)
	}
}
