package verify

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// BenchmarkVerify audits two sealed rounds with about 100,000 planned URLs of a synthetic web, and
// reports the CPU of the whole audit and the largest heap. If CRAWLBATCH_BENCH_STORE is set,
// BenchmarkVerify audits the crawl 2026-11 of the store that the variable names. Without the
// variable, BenchmarkVerify first crawls for some minutes.
func BenchmarkVerify(b *testing.B) {
	dir := os.Getenv("CRAWLBATCH_BENCH_STORE")
	if dir == "" {
		dir = crawlForBench(b)
	}
	bucket, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	_, cfg, err := roundstate.OpenCrawl(b.Context(), bucket, testCrawl, os.LookupEnv)
	if err != nil {
		b.Fatal(err)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(400 << 20)) // the command sets the same limit
	defer debug.SetGCPercent(debug.SetGCPercent(400))           // and the same growth between two collections
	for b.Loop() {
		ctx, stop := context.WithCancel(b.Context())
		heap := peakHeap(ctx)
		began := cpuTime(b)
		r, err := Run(ctx, Options{Bucket: bucket, Crawl: testCrawl, Round: -1, Config: cfg, Scratch: b.TempDir(), Sample: 1, OneClock: true})
		if err != nil {
			b.Fatal(err)
		}
		took := cpuTime(b) - began
		stop()
		urls := int64(0)
		for _, c := range r.Checked {
			if c.Check == oneOutcome {
				urls = c.Looked
			}
		}
		if r.Found() > 0 || urls == 0 {
			b.Logf("%d violations in %d URLs: %+v", r.Found(), urls, r.Violations)
		}
		b.ReportMetric(took.Seconds()*100_000/float64(max(urls, 1)), "s-cpu/100k-URLs")
		b.ReportMetric(float64(<-heap)/(1<<20), "MiB-heap")
	}
}

// peakHeap samples the heap size until ctx ends, then sends the largest size in bytes.
func peakHeap(ctx context.Context) <-chan uint64 {
	peak := make(chan uint64, 1)
	go func() {
		var m runtime.MemStats
		most := uint64(0)
		for ctx.Err() == nil {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		peak <- most
	}()
	return peak
}

// cpuTime returns the user and system time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crawlForBench makes the store of BenchmarkVerify.
func crawlForBench(b *testing.B) (dir string) {
	b.Helper()
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.FaultShare, w.CrawlDelay, w.RetryAfter = 2200, 50, 0, 0, 0
	web, err := simweb.New(w)
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	serving, stop := context.WithCancel(context.Background())
	go func() { served <- simweb.NewServer(web, nil).Serve(serving, ln) }()
	defer func() {
		stop()
		<-served
	}()
	dir = filepath.Join(b.TempDir(), "store")
	bucket, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	seeds, scratch := filepath.Join(b.TempDir(), "urls.txt"), b.TempDir()
	if err := os.WriteFile(seeds, []byte(strings.Join(slices.Collect(web.Seeds()), "\n")), 0o644); err != nil {
		b.Fatal(err)
	}
	from, err := source.Files(seeds, nil)
	if err != nil {
		b.Fatal(err)
	}
	cfg := testConfig(ln.Addr().String())
	cfg.Politeness.Delay, cfg.Politeness.InFlightPerHost, cfg.Fetch.Retries.Robots = 0, 4, 0
	cfg.Plan.PartitionURLs = 12_500
	if _, _, err := jobs.Plan(b.Context(), jobs.PlanRequest{
		Bucket: bucket, Crawl: testCrawl, Sources: []source.Source{from}, Config: cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
	}); err != nil {
		b.Fatal(err)
	}
	if err := drive(b.Context(), bucket, cfg, scratch, 2); err != nil {
		b.Fatal(err)
	}
	return dir
}
