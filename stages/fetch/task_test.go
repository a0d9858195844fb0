package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

// misbehave returns a web in which every path has its own fault.
func misbehave() http.HandlerFunc {
	var asked sync.Map
	return func(w http.ResponseWriter, r *http.Request) {
		_, again := asked.LoadOrStore(r.Host+r.URL.RequestURI(), true)
		first := !again
		switch r.Host {
		case "norobots.com":
			noRobots(page)(w, r)
			return
		case "broken.com":
			w.WriteHeader(500)
			return
		case "moved.com":
			if r.URL.Path == "/robots.txt" {
				http.Redirect(w, r, "http://www.moved.com/robots.txt", http.StatusMovedPermanently)
				return
			}
		}
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\nCrawl-delay: 3\n")
		case "/missing":
			http.NotFound(w, r)
		case "/gone-wrong":
			w.WriteHeader(502)
		case "/wrong-once":
			if first {
				w.WriteHeader(500)
				return
			}
			page(w, r)
		case "/limited":
			w.WriteHeader(429)
		case "/limited-once":
			if first {
				w.Header().Set("Retry-After", "100")
				w.WriteHeader(503)
				return
			}
			page(w, r)
		case "/busy":
			w.WriteHeader(503)
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, "\x89PNG\r\n\x1a\n")
		case "/moved":
			w.Header().Set("Location", "/target?utm_source=x#frag")
			w.WriteHeader(302)
		case "/to-www":
			http.Redirect(w, r, "http://www.a.com/landing", http.StatusFound)
		case "/to-private":
			http.Redirect(w, r, "/private/x", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://b.org/", http.StatusFound)
		case "/to-planned":
			http.Redirect(w, r, "/page", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop2", http.StatusFound)
		case "/loop2":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/nowhere":
			w.WriteHeader(302)
		case "/same":
			if r.Header.Get("If-None-Match") == `"v1"` {
				w.WriteHeader(304)
				return
			}
			page(w, r)
		case "/long":
			fmt.Fprint(w, "<p>", strings.Repeat("long ", 20000))
		case "/hang":
			<-r.Context().Done()
		case "/panic":
			fmt.Fprint(w, "<p>PANIC")
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "<p>less than that")
		default:
			if n := strings.TrimPrefix(r.URL.Path, "/chain"); n != r.URL.Path {
				http.Redirect(w, r, "/chain"+n+"x", http.StatusFound)
				return
			}
			page(w, r)
		}
	}
}

func TestEveryPlannedURLEndsInItsOutcome(t *testing.T) {
	// With one processor there is a single slot for documents. A task whose parser fails must not
	// wait for a second one.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	type want struct {
		outcome   schema.Outcome
		status    int16
		attempts  int32
		redirects int32
		final     string
		target    string
	}
	wants := map[string]want{
		"http://a.com/page":         {schema.OK, 200, 1, 0, "http://a.com/page", ""},
		"http://a.com/private/1":    {outcome: schema.RobotsDenied},
		"http://a.com/missing":      {schema.HTTP4xx, 404, 1, 0, "http://a.com/missing", ""},
		"http://a.com/gone-wrong":   {schema.HTTP5xx, 502, 3, 0, "http://a.com/gone-wrong", ""},
		"http://a.com/wrong-once":   {schema.OK, 200, 2, 0, "http://a.com/wrong-once", ""},
		"http://a.com/limited":      {schema.RateLimited, 429, 4, 0, "http://a.com/limited", ""},
		"http://a.com/limited-once": {schema.OK, 200, 2, 0, "http://a.com/limited-once", ""},
		"http://a.com/busy":         {schema.HTTP5xx, 503, 4, 0, "http://a.com/busy", ""},
		"http://a.com/picture":      {schema.MIMEFiltered, 200, 1, 0, "http://a.com/picture", ""},
		"http://a.com/moved":        {schema.OK, 200, 1, 1, "http://a.com/target", ""},
		"http://a.com/to-www":       {schema.OK, 200, 1, 1, "http://www.a.com/landing", ""},
		"http://a.com/to-private":   {schema.RobotsDenied, 302, 1, 1, "http://a.com/to-private", ""},
		"http://a.com/away":         {schema.Redirected, 302, 1, 0, "http://a.com/away", "http://b.org/"},
		"http://a.com/to-planned":   {schema.Redirected, 302, 1, 0, "http://a.com/to-planned", "http://a.com/page"},
		"http://a.com/loop":         {schema.RedirectLimit, 302, 1, 1, "http://a.com/loop2", ""},
		"http://a.com/chain":        {schema.RedirectLimit, 302, 1, 5, "http://a.com/chainxxxxx", ""},
		"http://a.com/nowhere":      {schema.ProtocolError, 302, 1, 0, "http://a.com/nowhere", ""},
		"http://a.com/same":         {schema.NotModified, 304, 1, 0, "http://a.com/same", ""},
		"http://a.com/long":         {schema.OK, 200, 1, 0, "http://a.com/long", ""},
		"http://a.com/hang":         {schema.Timeout, 0, 3, 0, "", ""},
		"http://a.com/panic":        {schema.InternalError, 200, 1, 0, "http://a.com/panic", ""},
		"http://a.com/cut":          {schema.OK, 200, 1, 0, "http://a.com/cut", ""},
		"http://norobots.com/1":     {schema.OK, 200, 1, 0, "http://norobots.com/1", ""},
		"http://moved.com/1":        {schema.OK, 200, 1, 0, "http://moved.com/1", ""},
		"http://moved.com/private/": {outcome: schema.RobotsDenied},
		"http://broken.com/1":       {outcome: schema.RobotsUnreachable},
		"http://broken.com/2":       {outcome: schema.RobotsUnreachable},
		"http://unknown.com/1":      {outcome: schema.DNSError},
		"http://127.0.0.1/1":        {outcome: schema.AddressBlocked},
	}
	bubble(t, func(t *testing.T) {
		l := newLab(t, misbehave())
		l.web.down["unknown.com"] = &net.DNSError{Err: "no such host", IsNotFound: true}
		l.cfg.MaxBody = 50_000
		l.cfg.Pauses.ServerError, l.cfg.Politeness.SlowFactor = 500*time.Millisecond, 0 // so that the task waits for late tries
		var list []string
		for u := range wants {
			list = append(list, u)
		}
		rows := planRows(t, list)
		for i := range rows {
			if strings.HasSuffix(rows[i].URL, "/same") {
				rows[i].ETag, rows[i].Fetches = `"v1"`, 1
				rows[i].ContentDigest, rows[i].ContentAt, rows[i].WARCFilename = "OLDSAME", schema.TimeOf(time.Now().Add(-time.Hour)), "warc/old.warc.gz"
			}
			if strings.HasSuffix(rows[i].URL, "/page") {
				rows[i].ContentDigest = "OLD"
			}
		}
		l.setPlanAt(rows, "p2")
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for u, w := range wants {
			f := fetches[u]
			got := want{f.Outcome, f.HTTPStatus, f.Attempts, f.Redirects, f.FinalURL, f.RedirectTarget}
			if diff := cmp.Diff(w, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (error %q) (-want +got):\n%s", u, f.Error, diff)
			}
		}
		if f := fetches["http://a.com/private/1"]; f.RobotsAllowed == nil || *f.RobotsAllowed || f.RobotsRule != "Disallow: /private" {
			t.Errorf("verdict of robots.txt: %v, %q", f.RobotsAllowed, f.RobotsRule)
		}
		if got := fetches["http://a.com/long"].Truncated; got != schema.TruncatedLength {
			t.Errorf("long: truncated %q", got)
		}
		if got := fetches["http://a.com/cut"].Truncated; got != schema.TruncatedDisconnect {
			t.Errorf("cut: truncated %q", got)
		}
		l.checkPace(r)
		l.checkCaptures(r)

		pages := map[string]schema.Page{}
		for _, p := range rowsOf[schema.WorkingPage](l, r, stages.FilePages) {
			pages[p.PlannedURL] = p.Page()
			if len(p.Terms) != 1 || p.Terms[0] != p.URL || p.Counts[0] != 2 {
				t.Errorf("%s: its working row has the terms %v %v", p.URL, p.Terms, p.Counts)
			}
		}
		for u, w := range wants {
			if _, ok := pages[u]; ok != (w.outcome == schema.OK) {
				t.Errorf("%s: outcome %s, page %t", u, w.outcome, ok)
			}
		}
		if p := pages["http://a.com/page"]; p.Changed == nil || !*p.Changed || p.Title != "title of http://a.com/page" || p.WARCRecordLength == 0 {
			t.Errorf("page: %+v", p)
		}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			if q.Host == "a.com" && q.Purpose != schema.ForRobots && q.DelayMS < 3000 {
				t.Errorf("%s: delay %d ms is below the Crawl-delay", q.URL, q.DelayMS)
			}
			if q.QueueMS < 0 || q.QueueMS > 60_000 {
				t.Errorf("%s: %d ms in the queue", q.URL, q.QueueMS)
			}
			if q.Purpose != schema.ForRobots && strings.Contains(q.URL, "/private") {
				t.Errorf("%s was requested", q.URL)
			}
		}
		last := time.Time{}
		for _, h := range l.web.hits() {
			if h.host == "broken.com" {
				last = h.at
			}
		}
		if at := fetches["http://broken.com/2"].RecordedAt; at != schema.TimeOf(last) {
			t.Errorf("URLs of the host ended %v after its robots.txt was given up", at.Sub(schema.TimeOf(last)))
		}
		if n := l.web.count("/loop"); n != 1 {
			t.Errorf("/loop was requested %d times", n)
		}
	})
}

// setPlanAt is setPlan with another plan ID, so that a lab can plan twice.
func (l *lab) setPlanAt(rows []schema.PlannedURL, plan string) {
	l.t.Helper()
	l.planID = plan
	l.setPlan(rows)
}

// checkCaptures reads every captured response back from its WARC file.
func (l *lab) checkCaptures(r *manifest.Result) {
	l.t.Helper()
	n := 0
	for _, c := range rowsOf[schema.Capture](l, r, stages.FileCaptures) {
		obj, err := l.bucket.Open(l.t.Context(), c.WARCFilename)
		if err != nil {
			l.t.Fatal(err)
		}
		e, err := warc.ReadAt(obj, warc.Extent{Offset: int64(c.WARCRecordOffset), Length: int64(c.WARCRecordLength)}, warc.ReaderOptions{Check: true})
		if err != nil {
			l.t.Fatalf("%s at %d: %v", c.WARCFilename, c.WARCRecordOffset, err)
		}
		s, err := e.Finish()
		if err != nil || s.Block == warc.Differs || s.Payload == warc.Differs {
			l.t.Errorf("%s: %+v, %v", c.URL, s, err)
		}
		if want := typeOf(c); e.Type != want || e.TargetURI() != c.Asked() || warc.Digest(e.Header.Get(warc.FieldPayloadDigest)).Value() != c.ContentDigest {
			l.t.Errorf("the record of %s is a %s of %s with digest %s, the row says %s", c.URL, e.Type, e.TargetURI(), e.Header.Get(warc.FieldPayloadDigest), c.ContentDigest)
		}
		if err := obj.Close(); err != nil {
			l.t.Error(err)
		}
		index, _, err := l.bucket.Get(l.t.Context(), layout.CDXJ(c.WARCFilename), 1<<20)
		if at := strings.Index(string(index), fmt.Sprintf(`"offset":"%d"`, c.WARCRecordOffset)); err != nil || at < 0 ||
			!strings.Contains(string(index[strings.LastIndexByte(string(index[:at]), '\n')+1:at]), c.ContentDigest) {
			l.t.Errorf("the index of %s has no line of %s with digest %s (%v)", c.WARCFilename, c.URL, c.ContentDigest, err)
		}
		n++
	}
	if int64(n) != r.Count("captures") || n == 0 {
		l.t.Errorf("%d captures, the result counts %d", n, r.Count("captures"))
	}
	for _, f := range r.FilesOf(stages.FileCaptures) {
		if f.Subset == "" {
			l.t.Errorf("%s has no subset", f.Key)
		}
	}
}

// typeOf returns the type of the WARC record of a capture.
func typeOf(c schema.Capture) warc.Type {
	if c.Revisit != "" {
		return warc.Revisit
	}
	return warc.Response
}

func TestAStoppedTaskGoesOnWhereItStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), append(urls("a.com", 20), urls("b.org", 10)...)...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(15*time.Second, cancel)
		if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatalf("got %v, want ErrInterrupted", err)
		}
		asked := len(l.web.hits())
		if asked < 10 || asked > 25 {
			t.Errorf("%d requests in 15 s", asked)
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if f.Outcome != schema.OK {
				t.Errorf("%s: %s", u, f.Outcome)
			}
			if n := l.web.count(u[strings.LastIndexByte(u, '/'):]); n > 2 { // at most one request for each of two hosts
				t.Errorf("%s was requested %d times", u, n)
			}
		}
		if got, want := len(l.web.hits()), 30+2; got != want {
			t.Errorf("%d requests, want %d, because no URL is requested a second time", got, want)
		}
		l.checkPace(r)
		l.checkCaptures(r)
		again, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("the result does not depend only on the checkpoint:\n%s", diff)
		}
	})
}

// dying is a bucket on which all swaps fail from a given time, as if the process had been killed.
type dying struct {
	store.Bucket
	at time.Time
}

var errKilled = errors.New("killed")

func (d dying) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if time.Now().After(d.at) {
		return "", errKilled
	}
	return d.Bucket.Swap(ctx, key, body, size, old)
}

func (d dying) Unwrap() store.Bucket { return d.Bucket }

func TestWhatACheckpointListsIsNotFetchedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, after := range []time.Duration{500 * time.Millisecond, 21 * time.Second, 33 * time.Second, 47 * time.Second} {
		bubble(t, func(t *testing.T) {
			l := newLab(t, noRobots(page), append(urls("a.com", 30), urls("b.org", 30)...)...)
			l.cfg.Checkpoint.Every = time.Second // the task stretches this to 10 s, because little is recorded
			_, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(after)}, nil)
			if !errors.Is(err, errKilled) {
				t.Fatalf("got %v, want the bucket's error", err)
			}
			var cp manifest.Checkpoint
			if _, _, err := manifest.Load(t.Context(), l.bucket, layout.Checkpoint("2026-11", 0, 0), &cp); err != nil {
				t.Fatal(err)
			}
			if cp.Released || cp.Epoch != 1 {
				t.Errorf("checkpoint: epoch %d, released %t", cp.Epoch, cp.Released)
			}
			before := len(l.web.hits())
			recorded := int64(0)
			for _, c := range cp.Counts {
				if c.Name == "urls" {
					recorded = c.N
				}
			}
			r, err := l.run(t.Context(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.outcomes(r)
			l.checkPace(r)
			l.checkCaptures(r)
			want := 60 - recorded
			if recorded == 0 {
				want += 2 // for robots.txt again, because the robots cache is lost too
			}
			if got := int64(len(l.web.hits()) - before); got != want {
				t.Errorf("after %v: %d requests by the successor, want %d: %d were recorded", after, got, want, recorded)
			}
			listed := map[string]bool{}
			for _, f := range r.Files {
				listed[f.Key] = true
			}
			for _, prefix := range []string{layout.FetchDir("2026-11", 0, 0), "warc/"} {
				for o, err := range l.bucket.List(t.Context(), prefix) {
					if err != nil {
						t.Fatal(err)
					}
					if !listed[o.Key] && !strings.HasSuffix(o.Key, "checkpoint.json") {
						t.Errorf("%s is a leftover", o.Key)
					}
				}
			}
		})
	}
}

func TestASuccessorWaitsForTheLeaseAndTheOldHolderStops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 300)...)
		shared := struct{ store.Bucket }{l.bucket} // the wrapper hides the store's locks, as if several machines shared the store
		frozen := &freezing{Bucket: shared}
		start := time.Now()
		old := make(chan error, 1)
		go func() {
			_, err := l.run(t.Context(), frozen, nil)
			old <- err
		}()
		time.Sleep(100 * time.Second)
		frozen.set(true) // the store no longer answers the old holder
		before := len(l.web.hits())
		r, err := l.run(t.Context(), shared, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		l.checkPace(r)
		frozen.set(false)
		if err := <-old; !errors.Is(err, stages.ErrTaken) {
			t.Errorf("the old holder ended with %v, want ErrTaken", err)
		}
		lease := l.cfg.Checkpoint.Lease
		for _, h := range l.web.hits()[before:] {
			at := h.at.Sub(start)
			if at > 100*time.Second+lease && at < 100*time.Second+lease+lease/10 {
				t.Errorf("a request at %v, after the old lease ended and before the new one began", at)
			}
		}
	})
}

// freezing is a bucket that can become unavailable.
type freezing struct {
	store.Bucket
	frozen atomic.Bool
}

func (f *freezing) set(on bool) { f.frozen.Store(on) }

func (f *freezing) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if f.frozen.Load() {
		return "", fmt.Errorf("swap: %w", store.ErrUnavailable)
	}
	return f.Bucket.Swap(ctx, key, body, size, old)
}

func TestNoRequestOutlastsALapsedRight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 300)...)
		away := &freezing{Bucket: l.bucket}
		start := time.Now()
		time.AfterFunc(90*time.Second, func() { away.set(true) })
		time.AfterFunc(400*time.Second, func() { away.set(false) })
		r, err := l.run(t.Context(), away, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		l.checkPace(r)
		for _, h := range l.web.hits() {
			// The last swap before 90 s was sent at 60 s or later, and the lease lasts 180 s.
			if at := h.at.Sub(start); at > 90*time.Second+l.cfg.Checkpoint.Lease-l.cfg.Timeouts.Total && at < 400*time.Second {
				t.Errorf("a request at %v without a lease", at)
			}
		}
	})
}

func TestTheWindowClosesAndTheRestIsDeferred(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 50)...)
		l.cfg.Window = 20*time.Second + time.Millisecond
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[schema.Outcome]int{}
		for _, f := range l.outcomes(r) {
			got[f.Outcome]++
		}
		if diff := cmp.Diff(map[schema.Outcome]int{schema.OK: 10, schema.Deferred: 40}, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	})
}

func TestAStoppedDomainIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), append(urls("a.com", 20), urls("b.org", 20)...)...)
		reload := make(chan Revision)
		time.AfterFunc(11*time.Second, func() {
			p := l.cfg.Politeness
			p.Domains = map[string]polite.Domain{"a.com": {Stop: "ticket 17"}}
			reload <- Revision{1, p}
		})
		r, err := l.run(t.Context(), nil, &Input{Reload: reload})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, f := range l.outcomes(r) {
			got[f.Host+" "+string(f.Outcome)]++
			if f.Outcome == schema.Stopped && f.Error != "ticket 17" {
				t.Errorf("reason %q", f.Error)
			}
		}
		if diff := cmp.Diff(map[string]int{"a.com ok": 5, "a.com stopped": 15, "b.org ok": 20}, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	})
}

func TestAHostThatFailsIsSuspended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), urls("a.com", 60)...)
		l.cfg.Retries.ServerError = 0
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[schema.Outcome]int{}
		for _, f := range l.outcomes(r) {
			got[f.Outcome]++
		}
		if got[schema.HTTP5xx] < 20 || got[schema.HTTP5xx] > 25 || got[schema.HostSuspended] != 60-got[schema.HTTP5xx] {
			t.Errorf("outcomes %v, want about 23 http_5xx and the rest host_suspended", got)
		}
		probes := 0
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			if q.Purpose == schema.ForProbe {
				probes++
			}
		}
		if probes != 3 {
			t.Errorf("%d probes, want 3", probes)
		}
	})
}

func TestTwoRedirectsToOneURLFetchItOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/p") {
				http.Redirect(w, r, "/one", http.StatusFound)
				return
			}
			page(w, r)
		}), urls("a.com", 12)...)
		l.cfg.Checkpoint.Every = 100 * time.Millisecond
		_, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(11 * time.Second)}, nil)
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[schema.Outcome]int{}
		for _, f := range l.outcomes(r) {
			got[f.Outcome]++
		}
		if diff := cmp.Diff(map[schema.Outcome]int{schema.OK: 1, schema.Redirected: 11}, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if n := l.web.count("/one"); n != 1 {
			t.Errorf("the target was requested %d times", n)
		}
	})
}

func TestOneURLTakesTheSamePath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, misbehave())
		rows, err := one(t.Context(), l.env(nil, t.TempDir()), l.cfg, l.parser, "HTTP://A.com/moved#x", func(stages.Wait) {}, hooks{tune: l.web.tune})
		if err != nil {
			t.Fatal(err)
		}
		if rows.Fetch.Outcome != schema.OK || rows.Fetch.FinalURL != "http://a.com/target" || rows.Page == nil || rows.Page.URL != "http://a.com/target" {
			t.Errorf("fetch %+v, page %+v", *rows.Fetch, rows.Page)
		}
		if len(rows.Requests) != 3 || len(rows.Captures) != 3 || len(rows.Links) != 2 {
			t.Errorf("%d requests, %d captures, %d links; want 3, 3, 2", len(rows.Requests), len(rows.Captures), len(rows.Links))
		}
		if _, err := one(t.Context(), l.env(nil, t.TempDir()), l.cfg, l.parser, "not a URL", func(stages.Wait) {}, hooks{tune: l.web.tune}); err == nil {
			t.Error("no error for a text that is not a URL")
		}
	})
}

func TestAPlanOfNothingIsComplete(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, page)
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Files) != 0 || r.Count("urls") != 0 {
			t.Errorf("result %+v", r)
		}
	})
}

func TestAnotherPlansCheckpointIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 1)...)
		if _, err := l.run(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		l.plan.ID = "other"
		if _, err := l.run(t.Context(), nil, nil); !errors.Is(err, stages.ErrPermanent) {
			t.Errorf("got %v, want ErrPermanent", err)
		}
	})
}

// TestARequestIsNotWrittenTwiceInARow has a server that closes kept connections. A request on such
// a connection is lost, and its retry must wait for the host's delay.
func TestARequestIsNotWrittenTwiceInARow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, nil, urls("a.com", 6)...)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var written []time.Time
		l.web.serve(func(ln pipeListener) {
			context.AfterFunc(ctx, func() { _ = ln.Close() })
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					for n := 0; ; n++ {
						req, err := http.ReadRequest(bufio.NewReader(conn))
						if err != nil {
							return
						}
						mu.Lock()
						written = append(written, time.Now())
						mu.Unlock()
						if n == 2 { // the third request on every connection fails
							return
						}
						body := "<p>" + req.URL.Path
						fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					}
				}()
			}
		})
		r, err := l.run(t.Context(), nil, nil)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if f.Outcome != schema.OK {
				t.Errorf("%s: %s %s", u, f.Outcome, f.Error)
			}
		}
		if len(written) != 7+3 { // robots.txt, six pages, and three repetitions of failed requests
			t.Errorf("%d requests were written, want 10", len(written))
		}
		for i := 1; i < len(written); i++ {
			if gap := written[i].Sub(written[i-1]); gap < l.cfg.Politeness.Delay {
				t.Errorf("request %d was written %v after the one before", i, gap)
			}
		}
		l.checkPace(r)
		if n := len(rowsOf[schema.Request](l, r, stages.FileRequests)); n != len(written) {
			t.Errorf("%d rows of requests for %d that were written", n, len(written))
		}
	})
}

// dated is a store with its own clock.
type dated struct {
	store.Bucket
	skew time.Duration
}

func (d dated) Skew(context.Context) (time.Duration, error) { return d.skew, nil }

func TestAWrongClockIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 1)...)
		if _, err := l.run(t.Context(), dated{l.bucket, -2 * time.Minute}, nil); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "differs by -2m0s") {
			t.Errorf("two minutes: got %v, want ErrPermanent", err)
		}
		if n := len(l.web.hits()); n != 0 {
			t.Errorf("%d requests under a wrong clock", n)
		}
		if _, err := l.run(t.Context(), dated{l.bucket, 30 * time.Second}, nil); err != nil {
			t.Errorf("half a minute: %v", err)
		}
	})
}
