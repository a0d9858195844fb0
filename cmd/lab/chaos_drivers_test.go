//go:build lab

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/jobstest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// driverIn makes a driver that runs tasks in this process.
func driverIn(b store.Bucket, cfg *config.Config, clock stages.Clock, log *slog.Logger, scratch string) *jobs.Driver {
	try := worker.Runner{Bucket: b, Config: cfg, Version: version, Scratch: scratch, Clock: clock, Log: log, Progress: stages.NoProgress{}}
	return &jobs.Driver{
		Bucket: b, Observer: jobstest.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: version, Scratch: scratch, Lookup: os.LookupEnv,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 3, Pause: 100 * time.Millisecond, Clock: clock, Log: log},
	}
}

// laterDriver is the environment variable that makes the test binary drive a crawl with a clock that is
// ahead of the machine's clock. Its value is a laterConfig as JSON.
const laterDriver = "CRAWLBATCH_CHAOS_LATER"

type laterConfig struct {
	Store  string
	Rounds int
	Ahead  time.Duration
}

// aheadClock is a clock that is ahead of the machine's clock.
type aheadClock struct {
	stages.SystemClock
	ahead time.Duration
}

func (c aheadClock) Now() time.Time { return time.Now().Add(c.ahead) }

// driveLater drives a crawl with a clock that is ahead, and returns the exit code. value is the value of
// the environment variable laterDriver.
func driveLater(value string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	err := func() error {
		var l laterConfig
		if err := json.Unmarshal([]byte(value), &l); err != nil {
			return err
		}
		ctx := context.Background()
		scratch, err := os.MkdirTemp("", "later-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		b, err := openStore(ctx, l.Store)
		if err != nil {
			return err
		}
		_, cfg, err := roundstate.OpenCrawl(ctx, b, demo.Crawl, os.LookupEnv)
		if err != nil {
			return err
		}
		return driverIn(b, cfg, aheadClock{ahead: l.Ahead}, log, scratch).Run(ctx, demo.Crawl, l.Rounds)
	}()
	if err != nil {
		log.Error("the driver ended", "error", err)
		return exitInternal
	}
	return exitDone
}

// openStore opens the store at an address, as the program does.
func openStore(ctx context.Context, address string) (store.Bucket, error) {
	if !strings.HasPrefix(address, s3store.Scheme) {
		return dirstore.Open(address, dirstore.Options{})
	}
	b, err := s3store.Open(ctx, address, s3store.Options{})
	if err != nil {
		return nil, err
	}
	return store.WithRetry(b, store.Retry{}), nil
}

// driversInADirectory lets two drivers plan the next rounds of a crawl in a directory.
func driversInADirectory(t *testing.T, r *chaosRun, salt uint64) {
	for killed := 0; killed < r.kills; salt++ {
		c := r.crawl(t, filepath.Join(t.TempDir(), "store"), salt, chaosDelay)
		twoDrivers(t, r, c, c.objects, r.kills-killed)
		killed += max(c.killed, 10)
	}
}

// driversInS3 lets two drivers plan the next rounds of a crawl in S3.
func driversInS3(t *testing.T, r *chaosRun, salt uint64) {
	for killed := 0; killed < r.kills; salt++ {
		server, address := s3(t)
		c := r.crawl(t, address, salt, chaosDelay, server.Env(server.Endpoint)...)
		c.objects = openS3(t, server, address)
		twoDrivers(t, r, c, c.objects, r.kills-killed)
		killed += max(c.killed, 10)
	}
}

// twoDrivers runs a crawl with two drivers. It kills drivers while they plan and start round 1.
// After round 1, two drivers whose clocks differ plan round 2 while URLs become due.
func twoDrivers(t *testing.T, r *chaosRun, c *chaos, b store.Bucket, kills int) {
	began := time.Now()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				p := c.run()
				if c.waitSealed(p, b) {
					c.mu.Lock()
					more := c.killed < min(kills, 20)
					c.mu.Unlock()
					if more && p.outlives(c.randomDuration(0, 400*time.Millisecond)) {
						c.kill(p)
						continue
					}
				}
				if code, out := p.wait(); code != 0 {
					t.Errorf("run: exit %d\n%s", code, out)
				}
				return
			}
		})
	}
	wg.Wait()
	span := time.Since(began)
	c.onePlan(b, 1)
	c.check(r, b, nil) // check checks the first two rounds and stops the web
	if !t.Failed() {
		c.aroundDueTime(r, b, began, span)
	}
}

// waitSealed waits until round 0 is sealed or the process has ended. It returns true if round 0 is sealed
// and round 1 has not started.
func (c *chaos) waitSealed(p *process, b store.Bucket) bool {
	for {
		sealed, err := manifest.Exists(c.t.Context(), b, layout.Sealed(demo.Crawl, 0))
		if err != nil {
			c.t.Error(err)
			return false
		}
		if sealed {
			l, err := ledger.Load(c.t.Context(), b, demo.Crawl)
			if err != nil {
				c.t.Error(err)
				return false
			}
			return l.Started(1) == nil
		}
		if !p.outlives(20 * time.Millisecond) {
			return false
		}
	}
}

// onePlan checks that the store has exactly one plan of a round, and that the ledger has one entry that
// chooses the plan and one entry that starts the round. onePlan returns the URLs of the plan.
func (c *chaos) onePlan(b store.Bucket, round int) (urls []string) {
	t := c.t
	t.Helper()
	l, err := ledger.Load(t.Context(), b, demo.Crawl)
	if err != nil {
		t.Fatal(err)
	}
	chosen, started := 0, 0
	for _, e := range l.Entries() {
		if e.Round != nil && *e.Round == round {
			switch e.What {
			case manifest.EntryPlan:
				chosen++
			case manifest.EntryStarted:
				started++
			}
		}
	}
	if chosen != 1 || started != 1 {
		t.Errorf("the plan of round %d was chosen %d times, the round started %d times", round, chosen, started)
	}
	plans := map[string]bool{}
	for o, err := range b.List(t.Context(), layout.RoundDir(demo.Crawl, round)+"plan-") {
		if err != nil {
			t.Fatal(err)
		}
		plan, _, _ := strings.Cut(strings.TrimPrefix(o.Key, layout.RoundDir(demo.Crawl, round)), "/")
		plans[plan] = true
	}
	if len(plans) != 1 {
		t.Errorf("round %d has the plans %v, want one", round, plans)
	}
	p, _, err := roundstate.FindPlan(t.Context(), b, demo.Crawl, round)
	if err != nil {
		t.Fatal(err)
	}
	for n := range p.Partitions {
		for _, row := range tabletest.Read[schema.PlannedURL](t, b, layout.PlanPart(demo.Crawl, round, p.ID, n)) {
			urls = append(urls, row.URL)
		}
	}
	return urls
}

// aroundDueTime lets two drivers plan and run round 2 while URLs become due. URLs that failed become due a
// day after their fetch, so the clocks of both drivers are a day ahead. They also differ from each other.
func (c *chaos) aroundDueTime(r *chaosRun, b store.Bucket, began time.Time, span time.Duration) {
	t := c.t
	killed := c.killed
	c.addr = c.serve(c.addr)
	ahead := 24*time.Hour - time.Since(began) + c.randomDuration(span/8, span)
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			for life := 0; ; life++ {
				// Each process has its own clock, which never goes back.
				p := c.laterDriver(ahead + c.randomDuration(0, 3*time.Second))
				if n == 0 && life == 0 && p.outlives(c.randomDuration(0, 1500*time.Millisecond)) {
					c.kill(p)
					continue
				}
				if code, out := p.wait(); code != 0 {
					t.Errorf("a driver: exit %d\n%s", code, out)
				}
				return
			}
		})
	}
	wg.Wait()
	if code, out := c.start("verify").wait(); code != 0 {
		t.Errorf("verify of round 2: exit %d\n%s", code, out)
	}
	planned := c.onePlan(b, 2)
	entries := c.stop()
	for _, v := range truth.CheckLog(c.web, entries, c.pace) {
		t.Errorf("the server saw in round 2: %s", v)
	}
	sealed, err := crawltest.SealedFiles(t.Context(), b, demo.Crawl)
	if err != nil || len(sealed) != 3 {
		t.Fatalf("round 2 is not sealed: %d rounds, %v", len(sealed), err)
	}
	recorded, seen := map[string]int{}, map[string]int{}
	for _, row := range crawltest.RowsOf[schema.Request](t, b, sealed[2:], "requests") {
		recorded[row.URL]++
	}
	for _, e := range entries {
		if url := "http://" + e.Host + e.Path; !strings.HasSuffix(url, "robots.txt") {
			// A killed process loses the rows of all its requests for a URL that it had not finished. For a
			// URL that fails, these are its retries too.
			lost := (c.killed - killed) * max(1, r.repeated[e.Host+e.Path])
			if seen[url]++; seen[url] == recorded[url]+lost+1 {
				t.Errorf("%s was asked for more than %d times, %d requests are recorded and %d processes were killed", url, seen[url]-1, recorded[url], c.killed-killed)
			}
		}
	}
	t.Logf("round 2: %d URLs planned, %d URLs asked for, clocks %v ahead, %d kills", len(planned), len(seen), ahead, c.killed-killed)
	if len(planned) == 0 {
		t.Error("round 2 has no URL: nothing was due")
	}
}

// laterDriver starts a driver whose clock is ahead.
func (c *chaos) laterDriver(ahead time.Duration) *process {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	value, err := json.Marshal(laterConfig{c.store, 3, ahead})
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s", laterDriver, value))
	return c.launch(cmd, "run")
}
