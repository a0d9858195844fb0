package verify

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/jobstest"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

const testCrawl = "2026-11"

// sharedCrawl makes a store with two sealed rounds of a synthetic web at its first call. All tests
// share this store and only read it. A test that damages the store first copies it.
var sharedCrawl = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "verify-test-") // on the file system of T.TempDir, for hard links
	if err != nil {
		return "", err
	}
	crawledDir = dir
	return dir, crawlTo(dir)
})

// crawledDir is the directory of the store that sharedCrawl has made. Before the first
// call, crawledDir is empty.
var crawledDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if crawledDir != "" {
		os.RemoveAll(crawledDir)
	}
	os.Exit(code)
}

// testConfig is a config for a crawl of the web at addr.
func testConfig(addr string) *config.Config {
	c := config.Default()
	pause := config.Duration(20 * time.Millisecond)
	c.Politeness.Delay = pause
	c.Fetch.Pauses = config.Pauses{RateLimited: pause, Timeout: pause, ServerError: pause, DNS: pause, Breaker: pause}
	c.Plan.PartitionURLs, c.Fetch.Sitemaps = 60, config.SitemapsOfRobots
	c.Fetch.ConnectTo = []string{"::" + addr}
	return c
}

func crawlTo(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.FaultShare = 12, 40, 0.2
	w.ExactShare, w.NearShare, w.ChainShare, w.CrawlDelay, w.RetryAfter = 0.08, 0.08, 0.6, 40*time.Millisecond, 0
	web, err := simweb.New(w)
	if err != nil {
		return err
	}
	addr, stop, err := serveWeb(web)
	if err != nil {
		return err
	}
	defer stop()
	b, err := dirstore.Open(filepath.Join(dir, "store"), dirstore.Options{})
	if err != nil {
		return err
	}
	seeds, scratch := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "scratch")
	urls := slices.Collect(web.Seeds())
	for _, u := range urls { // adds the first suitable URL a second time, in another form
		if i := strings.LastIndexByte(u, '/') + 1; i < len(u) && u[i] >= 'a' && u[i] <= 'z' {
			urls = append(urls, fmt.Sprintf("%s%%%02x%s", u[:i], u[i], u[i+1:]))
			break
		}
	}
	lines := strings.Join(urls, "\n") + "\nno URL\nhttp://" + strings.Repeat("x", 300) + "/\n"
	if err := os.WriteFile(seeds, []byte(lines), 0o644); err != nil {
		return err
	}
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	from, err := source.Files(seeds, nil)
	if err != nil {
		return err
	}
	cfg := testConfig(addr)
	if err := planBuckets(ctx, b, cfg, from, scratch); err != nil {
		return err
	}
	return drive(ctx, b, cfg, scratch, 2)
}

// serveWeb serves a synthetic web on loopback until stop is called.
func serveWeb(web *simweb.Web) (addr string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- simweb.NewServer(web, nil).Serve(ctx, ln) }()
	return ln.Addr().String(), func() {
		cancel()
		<-served
	}, nil
}

// drive runs the rounds of a planned crawl.
func drive(ctx context.Context, b store.Bucket, cfg *config.Config, scratch string, rounds int) error {
	clock, log := stages.SystemClock{}, slog.New(slog.DiscardHandler)
	try := worker.Runner{Bucket: b, Config: cfg, Version: "test", Scratch: scratch, Clock: clock, Log: log, Progress: stages.NoProgress{}}
	d := &jobs.Driver{
		Bucket: b, Observer: jobstest.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 1, Clock: clock, Log: log},
	}
	return d.Run(ctx, testCrawl, rounds)
}

// planBuckets plans round 0 with several reduce buckets. jobs.Plan would need millions of URLs to
// make several buckets. Round 1 has the same buckets.
func planBuckets(ctx context.Context, b store.Bucket, cfg *config.Config, from source.Source, scratch string) error {
	c := worker.PlanConfig(cfg)
	c.BucketURLs = 100
	made, err := planner.Make(ctx, c, planner.Request{Crawl: testCrawl, Sources: []source.Source{from}, Scratch: scratch, Version: "test"})
	if err != nil {
		return err
	}
	if made.Manifest().Buckets < 2 {
		return fmt.Errorf("only %d buckets", made.Manifest().Buckets)
	}
	text, err := cfg.YAML()
	if err != nil {
		return err
	}
	if _, err := manifest.Create(ctx, b, layout.CrawlManifest(testCrawl), &manifest.Crawl{Crawl: testCrawl, Config: text}); err != nil {
		return err
	}
	if err := made.Commit(ctx, b); err != nil {
		return err
	}
	_, err = ledgertest.Writer().Rebuild(ctx, b, testCrawl, []string{testCrawl}, ledgertest.NoCopy)
	return err
}

// damagedCrawl is a copy of the crawl and an audit of the copy.
type damagedCrawl struct {
	t      *testing.T
	dir    string // directory of the store
	b      store.Bucket
	a      *audit.Audit
	rounds []*audit.Round
}

func copyCrawl(t *testing.T) *damagedCrawl {
	t.Helper()
	dir, err := sharedCrawl()
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "store")
	from := os.DirFS(filepath.Join(dir, "store"))
	err = fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		to := filepath.Join(own, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == store.Reserved:
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(to, 0o755)
		}
		// copyCrawl makes hard links, because parts never change and damage replaces whole files.
		return os.Link(filepath.Join(dir, "store", filepath.FromSlash(name)), to)
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dirstore.Open(own, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, cfg, err := roundstate.OpenCrawl(t.Context(), b, testCrawl, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return &damagedCrawl{t: t, dir: own, b: b, a: audit.New(audit.Options{Bucket: b, Crawl: testCrawl, Round: -1, Config: cfg, Scratch: t.TempDir(), Sample: 1})}
}

// load returns a round. The documents are read only at the first call of load.
func (d *damagedCrawl) load(number int) *audit.Round {
	d.t.Helper()
	if d.rounds == nil {
		var err error
		if d.rounds, err = audit.New(d.a.Options).Load(d.t.Context()); err != nil || len(d.rounds) != 2 {
			d.t.Fatalf("%d rounds: %v", len(d.rounds), err)
		}
	}
	return d.rounds[number]
}

// result returns the result of a task.
func (d *damagedCrawl) result(number int, stage stages.Stage, n int) *manifest.Result {
	d.t.Helper()
	result, err := d.load(number).Result(d.t.Context(), stage, n)
	if err != nil || result == nil {
		d.t.Fatalf("the result of %s %d: %v", stage, n, err)
	}
	return result
}

// sealed returns the seal of a round with all its files.
func (d *damagedCrawl) sealed(number int) *manifest.Sealed {
	d.t.Helper()
	all, err := roundstate.History(d.t.Context(), d.b, testCrawl)
	if err == nil {
		all, err = roundstate.WithFiles(d.t.Context(), d.b, all[number:number+1], roundstate.Selection{})
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return all[0]
}

// replace stores other bytes under a key.
func (d *damagedCrawl) replace(key string, body []byte) {
	d.t.Helper()
	if err := d.b.Delete(d.t.Context(), key); err != nil {
		d.t.Fatal(err)
	}
	if _, err := store.CreateBytes(d.t.Context(), d.b, key, body); err != nil {
		d.t.Fatal(err)
	}
}

// expectClean fails the test for each violation and for each check that read nothing.
func (d *damagedCrawl) expectClean(invariant int) {
	d.t.Helper()
	for _, v := range d.a.Report().Violations {
		d.t.Errorf("%+v", v)
	}
	some := false
	for _, c := range d.a.Report().Checked {
		some = some || c.Invariant == invariant
		if c.Looked == 0 {
			d.t.Errorf("%q looked at nothing", c.Check)
		}
		d.t.Logf("%d %s: %d %s", c.Invariant, c.Check, c.Looked, c.Of)
	}
	if !some {
		d.t.Errorf("nothing was checked of invariant %d", invariant)
	}
}

// itemsRead returns the number of items that a check has read.
func (d *damagedCrawl) itemsRead(check string) int64 {
	d.t.Helper()
	for _, c := range d.a.Report().Checked {
		if c.Check == check {
			return c.Looked
		}
	}
	d.t.Fatalf("%q did not run", check)
	return 0
}

// expectViolation fails the test unless a violation of the row, or of any row if row is "", has a text
// that contains problem.
func (d *damagedCrawl) expectViolation(row, problem string) {
	d.t.Helper()
	all := d.a.Report().Violations
	for _, v := range all {
		if (row == "" || v.Row == row) && strings.Contains(v.Problem, problem) {
			return
		}
	}
	d.t.Errorf("no violation of row %q says %q; found:\n%s", row, problem, fmt.Sprint(all))
}

func TestNoInvariantIsLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	before := d.keys()
	r, err := Run(t.Context(), d.a.Options)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	looked := map[int]int64{}
	for _, c := range r.Checked {
		looked[c.Invariant] += c.Looked
	}
	for invariant := range 8 {
		if looked[invariant] == 0 {
			t.Errorf("nothing was looked at for invariant %d", invariant)
		}
	}
	if after := d.keys(); !slices.Equal(before, after) {
		t.Errorf("%d objects before, %d after: an audit writes nothing", len(before), len(after))
	}
}
