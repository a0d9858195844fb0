package fetch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
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

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// lab is a store with a plan of one partition, and a web that serves its URLs. It runs in a
// synctest bubble with a virtual clock; connections are pipes.
type lab struct {
	t       *testing.T
	bucket  store.Bucket
	cfg     Config
	plan    *manifest.Plan
	task    stages.Task
	web     *web
	parser  document.Parser
	runs    int
	planID  string
	watcher stages.Watcher
	gone    *takedown.Guard // for reparses; nil if nothing was taken down
	hooks   hooks           // hooks of the task; if hooks.tune is nil, connections go to lab.web
}

// bubble runs f in a synctest bubble. Pooled compressors hold channels of the bubble in which they
// were made. So bubble first empties all pools with two garbage collections.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	runtime.GC()
	runtime.GC()
	synctest.Test(t, f)
}

func newLab(t *testing.T, handler http.HandlerFunc, urls ...string) *lab {
	t.Helper()
	bucket, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{
		t: t, bucket: bucket, cfg: Default(), parser: plainParser{}, web: newWeb(t, handler), planID: "p1",
		task: stages.Task{Stage: stages.Fetch, Crawl: "2026-11"},
	}
	l.cfg.UserAgent = "labbot/1.0 (+https://example.org/)"
	l.cfg.StripParams = []string{"utm_*"}
	l.cfg.Slots = 20
	l.makePlan(urls)
	return l
}

func planRows(t *testing.T, urls []string) []schema.PlannedURL {
	t.Helper()
	canon, err := urlkey.New([]string{"utm_*"})
	if err != nil {
		t.Fatal(err)
	}
	var rows []schema.PlannedURL
	for _, u := range urls {
		k, sent, err := canon.Sent(u, "")
		if err != nil {
			t.Fatal(err)
		}
		row := schema.PlannedURL{URL: k.URL, SURT: k.SURT, Host: k.Host, Domain: k.Domain, Priority: 500}
		row.Form = schema.Form{Sent: sent, SentFrom: schema.SentBySource}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b schema.PlannedURL) int { return cmp.Compare(a.Host, b.Host) })
	return rows
}

func (l *lab) makePlan(urls []string) {
	l.t.Helper()
	l.setPlan(planRows(l.t, urls))
}

func (l *lab) setPlan(rows []schema.PlannedURL) {
	l.t.Helper()
	w, err := table.NewWriter[schema.PlannedURL](filepath.Join(l.t.TempDir(), "plan.parquet"))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		l.t.Fatal(err)
	}
	f, err := table.Finish(l.t.Context(), w, l.bucket, "planned", layout.PlanPart("2026-11", 0, l.planID, 0))
	if err != nil {
		l.t.Fatal(err)
	}
	l.plan = &manifest.Plan{ID: l.planID, Crawl: "2026-11", Buckets: 1, Partitions: []manifest.PlanPartition{{URLs: int64(len(rows)), File: f}}}
}

// run makes an attempt with the given store; nil means l.bucket.
func (l *lab) run(ctx context.Context, bucket store.Bucket, in *Input) (*manifest.Result, error) {
	l.t.Helper()
	if bucket == nil {
		bucket = l.bucket
	}
	l.runs++
	scratch := filepath.Join(l.t.TempDir(), fmt.Sprint("scratch", l.runs))
	if err := os.Mkdir(scratch, 0o755); err != nil {
		l.t.Fatal(err)
	}
	if in == nil {
		in = &Input{}
	}
	in.Task, in.Plan = l.task, l.plan
	if l.hooks.tune == nil {
		l.hooks.tune = l.web.tune
	}
	return runWith(ctx, l.env(bucket, scratch), in, l.cfg, l.parser, l.hooks)
}

func (l *lab) env(bucket store.Bucket, scratch string) *stages.Env {
	return &stages.Env{
		Bucket: bucket, Scratch: scratch, Clock: stages.SystemClock{}, Log: slog.New(slog.NewTextHandler(testLog{l.t}, nil)),
		Progress: stages.NoProgress{}, Watcher: l.watcher, Version: "test",
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// outcomes returns the row of every planned URL. It fails the test unless each URL has exactly one
// row.
func (l *lab) outcomes(r *manifest.Result) map[string]schema.Fetch {
	l.t.Helper()
	out := map[string]schema.Fetch{}
	for _, f := range rowsOf[schema.Fetch](l, r, stages.FileFetches) {
		if _, twice := out[f.URL]; twice {
			l.t.Errorf("%s has two outcomes", f.URL)
		}
		out[f.URL] = f
	}
	if int64(len(out)) != l.plan.Partitions[0].URLs {
		l.t.Errorf("%d URLs have an outcome, %d are planned", len(out), l.plan.Partitions[0].URLs)
	}
	return out
}

// linksOf returns the links of the segments of a result.
func linksOf(l *lab, r *manifest.Result) []schema.Link {
	l.t.Helper()
	var out []schema.Link
	for link, err := range segments.Links(l.t.Context(), l.bucket, r) {
		if err != nil {
			l.t.Fatal(err)
		}
		out = append(out, link)
	}
	return out
}

func rowsOf[T any](l *lab, r *manifest.Result, dataset string) []T {
	l.t.Helper()
	var out []T
	for _, f := range r.FilesOf(dataset) {
		tr, err := table.Open[T](l.t.Context(), l.bucket, f.Key)
		if err != nil {
			l.t.Fatal(err)
		}
		n := int64(0)
		for row, err := range tr.All(l.t.Context()) {
			if err != nil {
				l.t.Fatal(err)
			}
			n++
			out = append(out, row)
		}
		if n != f.Rows {
			l.t.Errorf("%s has %d rows, the result says %d", f.Key, n, f.Rows)
		}
		if err := tr.Close(); err != nil {
			l.t.Fatal(err)
		}
	}
	return out
}

// checkPace checks the time between two requests to a host. In the rows, it must be at least the
// delay in the row of the second request. In the server's log, it must be at least the configured
// delay.
func (l *lab) checkPace(r *manifest.Result) {
	l.t.Helper()
	last := map[string]schema.Request{}
	requests := rowsOf[schema.Request](l, r, stages.FileRequests)
	slices.SortStableFunc(requests, func(a, b schema.Request) int { return cmp.Compare(a.Start, b.Start) })
	for _, q := range requests {
		if p, ok := last[q.Host]; ok {
			if gap := q.Start.Sub(p.Start).Milliseconds(); gap < q.DelayMS {
				l.t.Errorf("%s came %d ms after %s, the delay in force was %d ms", q.URL, gap, p.URL, q.DelayMS)
			}
		}
		last[q.Host] = q
	}
	l.web.checkPace(l.t, l.cfg.Politeness.Delay)
}

// web serves a handler over pipes and keeps a log.
type web struct {
	server *http.Server
	conns  chan net.Conn
	mu     sync.Mutex
	log    []hit
	down   map[string]error // error of looking up or connecting to a host that is down
	names  map[netip.Addr]string
	addrs  map[string]netip.Addr // addresses of hosts with an address of their own
	shares map[string]string     // maps a host to another host that has the same address
}

type hit struct {
	at   time.Time
	host string
	path string
}

func newWeb(t *testing.T, handler http.HandlerFunc) *web {
	w := &web{conns: make(chan net.Conn), down: map[string]error{}, names: map[netip.Addr]string{}}
	w.server = &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.log = append(w.log, hit{time.Now(), r.Host, r.URL.RequestURI()})
		w.mu.Unlock()
		handler(rw, r)
	})}
	go func() { _ = w.server.Serve(pipeListener{w.conns, make(chan struct{})}) }()
	t.Cleanup(func() { _ = w.server.Close() })
	return w
}

// serve replaces the server that takes the connections.
func (w *web) serve(serve func(pipeListener)) {
	_ = w.server.Close()
	go serve(pipeListener{w.conns, make(chan struct{})})
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l pipeListener) Close() error   { close(l.closed); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// Lookup gives every host its own public address, unless addrs or shares names another.
func (w *web) Lookup(_ context.Context, host string) (dns.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.down[host]; err != nil {
		return dns.Answer{}, err
	}
	if a, ok := w.addrs[host]; ok {
		return dns.Answer{Addrs: []netip.Addr{a}}, nil
	}
	if other, ok := w.shares[host]; ok {
		host = other
	}
	for a, n := range w.names {
		if n == host {
			return dns.Answer{Addrs: []netip.Addr{a}}, nil
		}
	}
	a := netip.AddrFrom4([4]byte{93, 184, 216, byte(1 + len(w.names))})
	w.names[a] = host
	return dns.Answer{Addrs: []netip.Addr{a}}, nil
}

// nameOf returns the host of an address.
func (w *web) nameOf(addr netip.Addr) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[addr]
}

func (w *web) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case w.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tune connects the task to the web.
func (w *web) tune(c *wire.Config) { c.Resolver, c.Dial = w, w.dial }

func (w *web) hits() []hit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

func (w *web) count(path string) (n int) {
	for _, h := range w.hits() {
		if h.path == path {
			n++
		}
	}
	return n
}

func (w *web) checkPace(t *testing.T, delay time.Duration) {
	t.Helper()
	last := map[string]hit{}
	for _, h := range w.hits() {
		if p, ok := last[h.host]; ok && h.at.Sub(p.at) < delay {
			t.Errorf("the server got %s%s %v after %s, want at least %v", h.host, h.path, h.at.Sub(p.at), p.path, delay)
		}
		last[h.host] = h
	}
}

// plainParser returns the body of a document as its text.
type plainParser struct{}

func (plainParser) Sniff(contentType string, prefix []byte) string {
	if t := mediatype.Essence(contentType); t != "" {
		return t
	}
	t, _, _ := strings.Cut(http.DetectContentType(prefix), ";")
	return t
}

// Wants and Refuses accept text and XML, but no style sheets.
func (plainParser) Wants(mediaType string, _ []byte) bool {
	return strings.HasPrefix(mediaType, "text/") && mediaType != "text/css" || strings.HasSuffix(mediaType, "xml")
}

func (plainParser) IsSitemap(_ string, prefix []byte) bool {
	return bytes.Contains(prefix, []byte("<urlset"))
}

func (p plainParser) Refuses(contentType string) bool {
	t := mediatype.Essence(contentType)
	main, _, _ := strings.Cut(t, "/")
	return t != "" && main != "image" && main != "video" && t != "application/octet-stream" && !p.Wants(t, nil)
}

func (plainParser) Parse(d *document.Document) (*document.Parsed, error) {
	if bytes.Contains(d.Body, []byte("PANIC")) {
		panic("as asked")
	}
	return &document.Parsed{
		Page: schema.Page{PageColumns: schema.PageColumns{
			CaptureColumns: schema.CaptureColumns{Charset: "UTF-8", Languages: "eng"},
			Title:          "title of " + d.URL, Indexable: true, Depth: d.Depth, ContentBytes: int64(len(d.Body)),
		}},
		Terms: schema.WorkingColumns{Terms: []string{d.URL}, Counts: []int32{2}},
		Text:  schema.Text{Main: string(d.Body), Full: string(d.Body)},
		Links: []schema.Link{{Source: d.URL, Target: "http://a.com/linked", Kind: schema.KindA}},
	}, nil
}

// page answers with a small document.
func page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<p>page %s%s", r.Host, r.URL.RequestURI())
}

func noRobots(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		next(w, r)
	}
}

func urls(host string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("http://%s/p%02d", host, i))
	}
	return out
}

// seen returns a handler that calls f at each request.
func seen(next http.Handler, f func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f()
		next.ServeHTTP(w, r)
	})
}
