//go:build lab

package lab

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
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
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// These are the crawls of the stores that the damage suite harms. The first month is finished. The name of
// a store is the state of the second month's newest round: fetching, killed, reducing or sealed.
const (
	earlierMonth = "2026-10"
	harmedMonth  = "2026-11"
	harmedAgain  = "2026-11r1" // name of a reparse of the second month's first round
)

const damageConfig = `
politeness: {delay: 1ms, per_address_delay: 1ms}
fetch:
  sitemaps: robots
  slots: 4
  timeout: {connect: 1s, first_byte: 1s, total: 1s}
  checkpoint: {every: 100ms, lease: 3s}
  pauses: {rate_limited: 10ms, server_error: 10ms, timeout: 10ms, dns: 10ms, breaker: 20ms}
plan: {partition_urls: 20, history: false}
`

// loggedWeb serves a synthetic web and records which pages are requested. Its gate can hold responses back.
type loggedWeb struct {
	addr string

	mu    sync.Mutex
	pages []string // host and path of each request, except for robots.txt and sitemaps
	left  int      // number of responses until the gate closes; below 0: the gate stays open
	shut  chan struct{}
	open  chan struct{}
}

func serveLogged(t testing.TB, web *simweb.Web) *loggedWeb {
	t.Helper()
	w := &loggedWeb{left: -1, shut: make(chan struct{}), open: make(chan struct{})}
	pages := simweb.NewServer(web, nil)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" && !strings.Contains(r.URL.Path, "sitemap") {
			if !w.ask(r.Host + r.URL.RequestURI()) {
				select {
				case <-w.open:
				case <-r.Context().Done():
				}
				return
			}
		}
		pages.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.addr = server.Listener.Addr().(*net.TCPAddr).String()
	return w
}

// ask records a request and reports whether the gate lets the request pass. It does not record a
// request that the gate holds back, because such a request gets no answer.
func (w *loggedWeb) ask(url string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		select {
		case <-w.shut:
		default:
			close(w.shut)
		}
		return false
	}
	w.left--
	w.pages = append(w.pages, url)
	return true
}

// gate lets n more responses pass.
func (w *loggedWeb) gate(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.shut = n, make(chan struct{})
}

func (w *loggedWeb) closed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shut
}

// asked returns the number of requests for each page.
func (w *loggedWeb) asked() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, p := range w.pages {
		counts[p]++
	}
	return counts
}

// spoken holds the output and the exit code of a command.
type spoken struct {
	code int
	text string
}

// commanded runs a command line. A command that does not end in time counts
// as interrupted.
func commanded(ctx context.Context, args ...string) spoken {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var out bytes.Buffer
	code := execute(ctx, args, nil, &out, &out)
	return spoken{code, out.String()}
}

// damageState is a store of which the suite harms copies.
type damageState struct {
	name    string
	dir     string
	asked   map[string]int                 // number of requests in the second month so far, by page
	older   []string                       // copies of earlier states of the store, the newest first
	again   map[string]int                 // number of requests for each page when the unharmed crawl continues
	rows    map[string]map[string][]string // rows of each crawl and dataset at the end of the unharmed crawl
	reached string                         // directory of the store at the end of the unharmed crawl
	objects []string                       // objects of the store, without records of attempts
}

// damageLab builds the stores that the damage suite harms.
type damageLab struct {
	t      testing.TB
	web    *simweb.Web
	conf   string
	states []*damageState
	place  func(ctx context.Context, dir string) (string, store.Bucket, error) // makes a store from a directory; nil: the directory itself is the store
}

func damageWeb(t testing.TB) *simweb.Web {
	t.Helper()
	c := simweb.Default()
	c.Hosts, c.PagesPerHost, c.FaultShare, c.CrawlDelay = 8, 12, 0, time.Millisecond
	web, err := simweb.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return web
}

func (l *damageLab) must(args ...string) string {
	l.t.Helper()
	s := commanded(l.t.Context(), args...)
	if s.code != exitDone {
		l.t.Fatalf("crawlbatch %s: exit %d\n%s", strings.Join(args, " "), s.code, s.text)
	}
	return s.text
}

// runArgs returns the arguments of the run that continues a crawl.
func runArgs(dir, crawl, addr string) []string {
	rounds := map[string]string{earlierMonth: "1", harmedMonth: "2", harmedAgain: "1"}[crawl]
	return []string{"run", "--month", crawl, "--rounds", rounds, "--store", dir, "--connect-to", "::" + addr}
}

// newDamageLab builds the stores fetching, killed, reducing and sealed.
func newDamageLab(t testing.TB) *damageLab {
	t.Helper()
	l := &damageLab{t: t, web: damageWeb(t), conf: filepath.Join(t.TempDir(), "c.yaml")}
	if err := os.WriteFile(l.conf, []byte(damageConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	seeds := filepath.Join(t.TempDir(), "urls.txt")
	if err := l.web.WriteSeeds(t.Context(), seeds, true); err != nil {
		t.Fatal(err)
	}
	dir, web := filepath.Join(t.TempDir(), "store"), serveLogged(t, l.web)
	l.must("plan", "--month", earlierMonth, "--source", seeds, "--config", l.conf, "--connect-to", "::"+web.addr, "--store", dir)
	// With a long interval between checkpoints, the finished rounds get few files.
	seldom := filepath.Join(t.TempDir(), "seldom.yaml")
	if err := os.WriteFile(seldom, []byte(strings.Replace(damageConfig, "every: 100ms, lease: 3s", "every: 1m, lease: 2m", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	l.must(append(runArgs(dir, earlierMonth, web.addr), "--config", seldom)...)
	web = serveLogged(t, l.web)
	l.must("plan", "--month", harmedMonth, "--source", seeds, "--config", l.conf, "--connect-to", "::"+web.addr, "--store", dir)
	planned := l.copyOf(dir)
	l.must("run", "--month", harmedMonth, "--rounds", "1", "--store", dir, "--connect-to", "::"+web.addr, "--config", seldom)
	l.must("reparse", "--month", harmedMonth, "--as", harmedAgain, "--store", dir)
	first := l.copyOf(dir)
	t.Logf("%d pages asked for in the first round", len(web.asked()))

	// The store named fetching is the state after two runs of the newest round that were both stopped.
	l.stopAfter(dir, web, 8, "--config", l.slower(2))
	before := l.copyOf(dir)
	l.stopAfter(dir, web, 10, "--config", l.slower(3))
	fetching := l.addState("fetching", dir, web, before, first, planned)

	// The store named killed is what a killed process leaves: a copy of the store while the process ran, and
	// had responses that no checkpoint lists.
	killed := l.copyOf(dir)
	kills := serveLogged(t, l.web)
	kills.pages = slices.Clone(web.pages)
	image := l.killAmid(killed, kills)
	l.addState("killed", image, kills, fetching.dir, before, first, planned)

	// For the store named reducing, the test puts a file where a stage's folder belongs, so that the round
	// stops before this stage.
	reducing := l.copyOf(dir)
	reduces := serveLogged(t, l.web)
	reduces.pages = slices.Clone(web.pages)
	block := filepath.Join(reducing, filepath.FromSlash(layout.StageDir(harmedMonth, 1, "frontier")))
	if err := os.WriteFile(block, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if s := commanded(t.Context(), runArgs(reducing, harmedMonth, reduces.addr)...); s.code == exitDone {
		t.Fatalf("nothing stopped the reduces:\n%s", s.text)
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	l.addState("reducing", reducing, reduces, fetching.dir, before, first, planned)

	sealed := l.copyOf(reducing)
	l.must(runArgs(sealed, harmedMonth, reduces.addr)...)
	l.must("compact", "--month", harmedMonth, "--store", sealed)
	l.addState("sealed", sealed, reduces, reducing, fetching.dir, before, first, planned)
	slices.SortFunc(l.states, func(a, b *damageState) int {
		order := []string{"sealed", "reducing", "fetching", "killed"}
		return slices.Index(order, a.name) - slices.Index(order, b.name)
	})
	return l
}

// slower writes a config with another politeness, so that the crawl publishes a revision.
func (l *damageLab) slower(ms int) string {
	l.t.Helper()
	name := filepath.Join(l.t.TempDir(), "slower.yaml")
	text := strings.Replace(damageConfig, "delay: 1ms", fmt.Sprintf("delay: %dms", ms), 1)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return name
}

// addState copies a store and adds the copy to the list of states.
func (l *damageLab) addState(name, dir string, web *loggedWeb, older ...string) *damageState {
	l.t.Helper()
	s := &damageState{name: name, dir: l.copyOf(dir), asked: web.asked(), older: older, rows: map[string]map[string][]string{}}
	l.states = append(l.states, s)
	return s
}

// stopAfter lets the run request n pages and then tells the run to stop.
func (l *damageLab) stopAfter(dir string, web *loggedWeb, n int, args ...string) {
	l.t.Helper()
	web.gate(n)
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	go func() {
		<-web.closed()
		stop()
	}()
	if s := commanded(ctx, append(runArgs(dir, harmedMonth, web.addr), args...)...); s.code != exitInterrupted {
		l.t.Fatalf("a run that is told to stop: exit %d\n%s", s.code, s.text)
	}
	web.gate(-1)
}

// killAmid returns a copy of the store, made while the run had responses that no checkpoint lists.
func (l *damageLab) killAmid(dir string, web *loggedWeb) (image string) {
	l.t.Helper()
	held := l.recorded(dir)
	web.gate(6)
	ctx, stop := context.WithCancel(l.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		commanded(ctx, runArgs(dir, harmedMonth, web.addr)...)
	}()
	defer func() {
		stop()
		<-ended
	}()
	<-web.closed()
	for limit := time.Now().Add(30 * time.Second); l.recorded(dir) < held+6; {
		select {
		case <-ended:
			l.t.Fatal("the run that is to be killed has ended")
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(limit) {
			l.t.Fatal("no checkpoint lists what was fetched")
		}
	}
	web.gate(2)
	time.Sleep(20 * time.Millisecond) // requests that the gate held back end at timeout.total; the run then sends new ones, which get the two responses
	<-web.closed()
	return l.copyOf(dir)
}

// recorded returns the number of outcomes in the checkpoints of the newest round.
func (l *damageLab) recorded(dir string) (n int64) {
	l.t.Helper()
	b := openHarmed(l.t, dir)
	for p := range 100 {
		var c manifest.Checkpoint
		if _, _, err := manifest.Load(l.t.Context(), b, layout.Checkpoint(harmedMonth, 1, p), &c); err == nil {
			for _, f := range c.Files {
				if f.Dataset == "fetches" {
					n += f.Rows
				}
			}
		}
	}
	return n
}

// copyOf copies a store by hard links, because nothing changes a file of a store in place.
func (l *damageLab) copyOf(dir string) string {
	l.t.Helper()
	to := filepath.Join(l.t.TempDir(), "store")
	if err := linkStore(dir, to); err != nil {
		l.t.Fatal(err)
	}
	return to
}

func linkStore(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && d.Name() == ".tmp":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Link(path, filepath.Join(to, rel))
	})
}

// finish runs an unharmed copy of the state's crawl to its end. Every harmed copy must reach the same result.
func (l *damageLab) finish(s *damageState) {
	l.t.Helper()
	if s.reached != "" {
		return
	}
	s.reached = l.copyOf(s.dir)
	objects, err := listed(l.t.Context(), openHarmed(l.t, s.dir))
	if err != nil {
		l.t.Fatal(err)
	}
	s.objects = objects
	web := serveLogged(l.t, l.web)
	began := time.Now()
	l.must(runArgs(s.reached, harmedMonth, web.addr)...)
	ran := time.Since(began)
	s.again = web.asked()
	for _, crawl := range []string{harmedMonth, harmedAgain} {
		l.must("verify", "--month", crawl, "--store", s.reached)
	}
	for _, crawl := range []string{harmedMonth, harmedAgain} {
		rows, err := storedRows(l.t.Context(), openHarmed(l.t, s.reached), crawl)
		if err != nil {
			l.t.Fatal(err)
		}
		s.rows[crawl] = rows
	}
	lost := 0
	for p := range s.again {
		if s.asked[p] > 0 {
			lost++
		}
	}
	l.t.Logf("%s: %d objects, asked for %d pages; to its end %d more, %d of them again; run %s, verify %s", s.name, len(storedKeys(s.dir)), len(s.asked), len(s.again), lost, ran, time.Since(began)-ran)
}

func openDirectory(dir string) (store.Bucket, error) { return dirstore.Open(dir, dirstore.Options{}) }

func openHarmed(t testing.TB, dir string) store.Bucket {
	t.Helper()
	b, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// storedKeys lists the keys of a store.
func storedKeys(dir string) (keys []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".tmp":
			return fs.SkipDir
		case !d.IsDir():
			key, err := filepath.Rel(dir, path)
			keys = append(keys, filepath.ToSlash(key))
			return err
		}
		return nil
	})
	return keys
}
