package local_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/jobstest"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// webShape is a synthetic web, and how its servers behave. Each server answers one request at a time, and
// the time that it takes has a log-normal distribution (sigma 0.5).
type webShape struct {
	name  string
	seed  uint64
	hosts int
	pages int // mean number of pages per host

	delay     time.Duration // politeness.delay; 0: the default
	latency   time.Duration // mean time of an answer
	slow      float64       // share of hosts that take slowTime
	slowTime  time.Duration
	limited   float64 // share of hosts that answer 429 to the requests of a minute after the first perMinute
	perMinute int
	failing   float64 // share of hosts of which a tenth of the pages answers 500
	silent    float64 // share of hosts of which one page in 50 never answers
	dead      float64 // share of hosts whose robots.txt always answers 503
	crawl     float64 // share of hosts with a Crawl-delay of crawlTime
	crawlTime time.Duration

	unforeseen bool // whether no plan can foresee the first round, because the slowest hosts misbehave
}

// roundError is the predicted and the actual time of a round's fetch stage.
type roundError struct {
	predicted, actual time.Duration
	most              time.Duration // longest time that `plan --dry-run` names
	mended            time.Duration // prediction of `status` after mendedAfter; 0 if the stage was over
}

func (r roundError) ratio() float64 { return r.predicted.Seconds() / r.actual.Seconds() }

// mendedAfter is the time after which a test asks the running tasks how long they will take.
const mendedAfter = 3 * time.Minute

// watcher asks running tasks as `status` does.
type watcher struct {
	mu    sync.Mutex
	looks map[string]func() stages.Activity
}

func (w *watcher) Watch(t stages.Task, look func() stages.Activity) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks[t.String()] = look
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.looks, t.String())
	}
}

// left returns the longest time that a task still predicts.
func (w *watcher) left() (left time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, look := range w.looks {
		a := look()
		left = max(left, a.Remaining)
		if a.Latest != nil {
			left = max(left, time.Until(a.Latest.Until))
		}
	}
	return left
}

// unit returns a number from 0 to 1 that depends on the texts only.
func (w *webShape) unit(parts ...string) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, parts)
	x := h.Sum64()
	x ^= x >> 33 // FNV leaves the upper bits of similar texts alike
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// answer serves a request as the shape says, and its pages from next.
func (w *webShape) answer(next http.Handler) http.HandlerFunc {
	var mu sync.Mutex
	tries, recent := map[string]int{}, map[string][]time.Time{}
	return func(rw http.ResponseWriter, r *http.Request) {
		host, path := r.Host, r.URL.RequestURI()
		mu.Lock()
		tries[host+path]++
		try := fmt.Sprint(tries[host+path])
		before := slices.DeleteFunc(recent[host], func(at time.Time) bool { return time.Since(at) >= time.Minute })
		recent[host] = append(before, time.Now())
		mu.Unlock()
		mean := w.latency
		if w.unit(host, "slow") < w.slow {
			mean = w.slowTime
		}
		const sigma = 0.5
		normal := math.Sqrt(-2*math.Log(1-w.unit(host, path, try, "radius"))) * math.Cos(2*math.Pi*w.unit(host, path, try, "angle"))
		took := time.Duration(math.Exp(sigma*normal-sigma*sigma/2) * float64(mean))
		if w.unit(host, "silent") < w.silent && w.unit(host, path, "page") < 0.02 {
			took = time.Hour
		}
		select {
		case <-time.After(took):
		case <-r.Context().Done():
			return
		}
		if path == "/robots.txt" {
			switch {
			case w.unit(host, "dead") < w.dead:
				rw.WriteHeader(http.StatusServiceUnavailable)
			case w.unit(host, "crawl") < w.crawl:
				fmt.Fprintf(rw, "User-agent: *\nCrawl-delay: %v\n", w.crawlTime.Seconds())
			default:
				fmt.Fprint(rw, "User-agent: *\nDisallow:\n")
			}
			return
		}
		switch {
		case w.unit(host, "limited") < w.limited && len(before) >= w.perMinute:
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		case w.unit(host, "failing") < w.failing && w.unit(host, path, "fail") < 0.1:
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(rw, r)
	}
}

// pipes is a listener whose connections are pipes, on which a virtual clock can wait.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// timed is an executor that measures the time of fetch stages.
type timed struct {
	jobs.Executor
	watcher *watcher
	took    map[string]time.Duration // by crawl and round
	mended  map[string]time.Duration // predictions after mendedAfter
}

func (e *timed) Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error {
	if len(tasks) == 0 || tasks[0].Stage != stages.Fetch {
		return e.Executor.Run(ctx, tasks, done)
	}
	name, began := fmt.Sprint(tasks[0].Crawl, tasks[0].Round), time.Now()
	looked := time.AfterFunc(mendedAfter, func() { e.mended[name] = mendedAfter + e.watcher.left() })
	err := e.Executor.Run(ctx, tasks, done)
	looked.Stop()
	e.took[name] = time.Since(began)
	return err
}

const fetchTasks = 4

// rounds crawls the web for two months of two rounds. It returns the errors of the rounds, the oldest first.
func (w *webShape) rounds(t *testing.T, b store.Bucket) (out []roundError) {
	cfg := simweb.Default()
	cfg.Seed, cfg.Hosts, cfg.PagesPerHost, cfg.Robots, cfg.FaultShare, cfg.SeedShare = w.seed, w.hosts, w.pages, false, 0, 0.5
	web, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener := pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo), Handler: w.answer(simweb.NewServer(web, nil))}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	var seeds strings.Builder
	for u := range web.Seeds() {
		fmt.Fprintln(&seeds, u)
	}
	list := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(list, []byte(seeds.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Fetch.ConnectTo = []string{"::127.0.0.1:80"}
	c.Plan.PartitionURLs = max(w.hosts*w.pages/3, 100)
	if w.delay > 0 {
		c.Politeness.Delay = config.Duration(w.delay)
	}
	log, clock := slog.New(slog.DiscardHandler), stages.SystemClock{}
	for month := range 2 {
		crawl := fmt.Sprintf("2000-%02d", month+1)
		if month > 0 {
			time.Sleep(30 * 24 * time.Hour)
		}
		scratch := t.TempDir()
		from, err := source.Files(list, nil)
		if err != nil {
			t.Fatal(err)
		}
		slow := new(jobs.Slowest)
		if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
			Slowest: slow, Bucket: b, Crawl: crawl, Sources: []source.Source{from}, Frontier: month > 0, Config: c, Clock: clock, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
		}); err != nil {
			t.Fatal(err)
		}
		watching := &watcher{looks: map[string]func() stages.Activity{}}
		try := worker.Runner{Bucket: b, Config: c, Version: "test", Scratch: scratch, Clock: clock, Log: log, Progress: stages.NoProgress{}, Dial: listener.dial, Watcher: watching}
		e := &timed{&local.Executor{Try: try.Run, FetchTasks: fetchTasks, Tasks: 2, Attempts: 1, Clock: clock, Log: log}, watching, map[string]time.Duration{}, map[string]time.Duration{}}
		d := &jobs.Driver{
			Bucket: b, Observer: jobstest.NoObserver{}, Config: c, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv, Executor: e,
		}
		if err := d.Run(t.Context(), crawl, 2-month); err != nil {
			t.Fatal(err)
		}
		for round := range 2 - month {
			took, ran := e.took[fmt.Sprint(crawl, round)]
			if !ran {
				continue
			}
			p := planOf(t, b, crawl, round)
			predicted := time.Duration(p.SecondsAt(fetchTasks) * float64(time.Second))
			most := predicted
			if host, longest := slowest.Unforeseen(*slow); round == 0 && longest > 0 {
				most = max(most, longest, host.Tries)
			}
			out = append(out, roundError{predicted, took, most, e.mended[fmt.Sprint(crawl, round)]})
		}
	}
	return out
}

func planOf(t *testing.T, b store.Bucket, crawl string, round int) *manifest.Plan {
	p, _, err := roundstate.FindPlan(t.Context(), b, crawl, round)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// webs are the webs on which predictions are judged. They differ in seed, size and behaviour from those
// with which the rules of package planner were made.
var webs = []webShape{
	{name: "many small fast hosts", seed: 101, hosts: 400, pages: 4, latency: 80 * time.Millisecond, dead: 0.02},
	{name: "few hosts bound by delay", seed: 102, hosts: 5, pages: 250, delay: 3 * time.Second, latency: 300 * time.Millisecond},
	{name: "one giant host", seed: 103, hosts: 1, pages: 1200, latency: 200 * time.Millisecond},
	{name: "slow servers", seed: 104, hosts: 10, pages: 150, latency: time.Second, slow: 0.5, slowTime: 5 * time.Second, unforeseen: true},
	{name: "failing and limiting servers", seed: 105, hosts: 24, pages: 50, latency: 200 * time.Millisecond, limited: 0.3, perMinute: 15, failing: 0.2, dead: 0.1, unforeseen: true},
	{name: "Crawl-delay and time-outs", seed: 206, hosts: 10, pages: 150, latency: 300 * time.Millisecond, crawl: 0.2, crawlTime: 8 * time.Second, silent: 0.4, unforeseen: true},
}

func TestPredictionsComeTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("six webs for two months take half a minute of CPU")
	}
	for _, w := range webs {
		t.Run(w.name, func(t *testing.T) {
			runtime.GC() // empties pools, whose compressors hold channels outside the bubble
			runtime.GC()
			synctest.Test(t, func(t *testing.T) {
				b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
				if err != nil {
					t.Fatal(err)
				}
				names := []string{"first round", "second round", "second month"}
				rounds := w.rounds(t, b)
				if len(rounds) != len(names) {
					t.Fatalf("%d rounds", len(rounds))
				}
				for i, r := range rounds {
					t.Logf("%s: predicted %v, at most %v, took %v: %.2f; after %v %.2f", names[i], r.predicted.Round(time.Second), r.most.Round(time.Second), r.actual.Round(time.Second), r.ratio(), mendedAfter, r.mended.Seconds()/r.actual.Seconds())
					if most := r.most.Seconds() / r.actual.Seconds(); most < 0.9 {
						t.Errorf("%s: at most %v were foreseen, took %v", names[i], r.most, r.actual)
					}
					least, most := 0.9, 1.1
					if i == 0 {
						least, most = 0.7, 1.4
					}
					// A robots.txt that keeps failing decides the end, and its pauses are known from the start.
					if mended := r.mended.Seconds() / r.actual.Seconds(); w.dead > 0 && (mended < 0.9 || mended > 1.25) {
						t.Errorf("%s: after %v, %v were predicted, took %v", names[i], mendedAfter, r.mended, r.actual)
					}
					if (i > 0 || !w.unforeseen) && (r.ratio() < least || r.ratio() > most) {
						t.Errorf("%s: predicted %v, took %v: %.2f is not between %v and %v", names[i], r.predicted, r.actual, r.ratio(), least, most)
					}
				}
			})
		})
	}
}
