//go:build lab

package lab

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/faultstore"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// awayFor is how long a store stays unreachable. Each crawl has one such outage.
const awayFor = 10 * time.Second

// failingProxy forwards to a real S3 server and fails 5 % of requests.
type failingProxy struct {
	next http.Handler

	mu     sync.Mutex
	random *rand.Rand
	away   time.Time // end of the time in which the store is unreachable
	failed int
}

func newFailingProxy(t *testing.T, endpoint string, random *rand.Rand) (*failingProxy, string) {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &failingProxy{random: random, next: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the request's signature covers this host
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}}
	server := httptest.NewUnstartedServer(p)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return p, server.URL
}

func (p *failingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	fault := p.random.IntN(20 * 7)
	away := time.Now().Before(p.away)
	if away || fault < 7 {
		p.failed++
	}
	p.mu.Unlock()
	if away {
		panic(http.ErrAbortHandler)
	}
	switch fault {
	case 0:
		refuse(w, http.StatusInternalServerError, "InternalError")
	case 1:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
	case 2: // a time-out: no answer comes
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(2 * time.Second):
		}
		panic(http.ErrAbortHandler)
	case 3: // the connection is reset before the request has an effect
		panic(http.ErrAbortHandler)
	case 4: // the connection is reset after the request took effect
		p.next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case 5: // the request takes effect, but the answer is an error
		p.next.ServeHTTP(httptest.NewRecorder(), r)
		refuse(w, http.StatusInternalServerError, "InternalError")
	case 6: // the answer breaks off
		answer := httptest.NewRecorder()
		p.next.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		panic(http.ErrAbortHandler)
	default:
		p.next.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>on purpose</Message></Error>")
}

// failingS3 crawls into a store that fails 5 % of requests and is unreachable for a while.
func failingS3(t *testing.T, r *chaosRun, salt uint64) {
	server, address := s3(t)
	proxy, endpoint := newFailingProxy(t, server.Endpoint, rand.New(rand.NewPCG(r.seed, salt+1)))
	c := r.crawl(t, address, salt, chaosDelay, server.Env(endpoint)...)
	p := c.run()
	if p.outlives(c.randomDuration(time.Second, 10*time.Second)) {
		proxy.mu.Lock()
		proxy.away = time.Now().Add(awayFor)
		proxy.mu.Unlock()
	}
	if code, out := p.wait(); code != 0 {
		t.Fatalf("run: exit %d\n%s", code, out)
	}
	t.Logf("%d requests to the store failed", proxy.failed)
	c.env = server.Env(server.Endpoint)
	c.check(r, openS3(t, server, address), nil)
}

// failingDirectory crawls within this process into a directory store that fails 5 % of calls.
func failingDirectory(t *testing.T, r *chaosRun, salt uint64) {
	c := r.crawl(t, filepath.Join(t.TempDir(), "store"), salt, chaosDelay)
	b, err := dirstore.Open(c.store, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	failing := faultstore.New(b, faultstore.Faults{Seed: r.seed + salt, Before: 0.02, After: 0.02, Short: 0.01})
	bucket := store.WithRetry(failing, store.Retry{Backoff: store.Backoff{Base: 10 * time.Millisecond}})
	_, cfg, err := roundstate.OpenCrawl(t.Context(), b, demo.Crawl, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	c.outputs = append(c.outputs, said.Name())
	t.Cleanup(func() {
		if text, _ := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("the crawl said at its end:\n%s", text[max(0, len(text)-8000):])
		}
		_ = said.Close()
	})
	log := slog.New(slog.NewTextHandler(said, nil))
	d := driverIn(bucket, cfg, stages.SystemClock{}, log, t.TempDir())
	timer := time.AfterFunc(c.randomDuration(time.Second, 10*time.Second), func() { failing.AwayFor(awayFor) })
	defer timer.Stop()
	for tries := 0; ; tries++ {
		err := d.Run(t.Context(), demo.Crawl, 2)
		if err == nil {
			break
		}
		// In a real directory, conditional writes do not fail at random, so the driver and reduce tasks do
		// not repeat them. Here they do fail, so the test runs the crawl again, as a user would.
		if tries > 100 {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("%d calls to the store failed", failing.Injected())
	c.check(r, b, nil)
}
