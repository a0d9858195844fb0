package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// These tests check the rules under "Commit and resume" in jobs/README.md.

// checkpointOf reads the lab's checkpoint.
func (l *lab) checkpointOf() *manifest.Checkpoint {
	l.t.Helper()
	var cp manifest.Checkpoint
	if _, _, err := manifest.Load(l.t.Context(), l.bucket, layout.Checkpoint("2026-11", 0, 0), &cp); err != nil {
		l.t.Fatal(err)
	}
	return &cp
}

// apart hides the locks of a directory store, as if several machines shared the store.
type apart struct{ store.Bucket }

func TestOfTwoAttemptsOnOnePartitionOneFetches(t *testing.T) {
	for _, across := range []string{"processes", "machines"} {
		t.Run(across, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 100)...)
				bucket := l.bucket
				if across == "machines" {
					bucket = apart{bucket}
				}
				var wg sync.WaitGroup
				results := make([]*manifest.Result, 2)
				for i := range results {
					scratch := t.TempDir()
					wg.Go(func() {
						cfg := l.cfg
						var err error
						if results[i], err = runWith(t.Context(), l.env(bucket, scratch), &Input{Task: l.task, Plan: l.plan}, cfg, l.parser, hooks{tune: l.web.tune}); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if got := len(l.web.hits()); got != 101 {
					t.Errorf("%d requests, want one for each of 100 URLs and robots.txt", got)
				}
				if diff := cmp.Diff(results[0], results[1]); diff != "" {
					t.Errorf("two results:\n%s", diff)
				}
			})
		})
	}
}

func TestPaceSurvivesACrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var limited atomic.Bool
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/p05" && !limited.Swap(true) {
				w.Header().Set("Retry-After", "100")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			page(w, r)
		}), urls("a.com", 10)...)
		l.cfg.Checkpoint.Every = time.Second
		start := time.Now()
		if _, err := l.run(t.Context(), dying{l.bucket, start.Add(40 * time.Second)}, nil); !errors.Is(err, errKilled) {
			t.Fatalf("got %v, want the bucket's error", err)
		}
		var waited time.Time // when p05 got its response
		for _, h := range l.web.hits() {
			if h.path == "/p05" {
				waited = h.at
			}
		}
		before := len(l.web.hits())
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if f.Outcome != schema.OK {
				t.Errorf("%s: %s", u, f.Outcome)
			}
		}
		if gap := l.web.hits()[before].at.Sub(waited); gap < 100*time.Second {
			t.Errorf("the next attempt sent its request %v after a Retry-After of 100s", gap)
		}
	})
}

func TestRetriesAreCountedAcrossAttempts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/broken" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			page(w, r)
		}), append(urls("b.org", 60), "http://a.com/broken")...)
		l.cfg.Checkpoint.Every = time.Second
		l.cfg.Pauses.ServerError = 25 * time.Second
		for _, after := range []time.Duration{15 * time.Second, 28 * time.Second} {
			if _, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(after)}, nil); !errors.Is(err, errKilled) {
				t.Fatalf("got %v, want the bucket's error", err)
			}
			if n := len(l.checkpointOf().Retries); n != 1 {
				t.Fatalf("the checkpoint has %d URLs that wait for another try, want 1", n)
			}
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := l.outcomes(r)["http://a.com/broken"]
		if f.Outcome != schema.HTTP5xx || f.Attempts != 3 {
			t.Errorf("%s after %d attempts, want http_5xx after 3", f.Outcome, f.Attempts)
		}
		if n := l.web.count("/broken"); n != 3 {
			t.Errorf("requested %d times by three attempts at the task, want 3", n)
		}
		if n := l.web.count("/robots.txt"); n != 2 {
			t.Errorf("robots.txt was requested %d times, want one request per host", n)
		}
		l.checkPace(r)
	})
}

// mortal is a bucket whose swaps fail as soon as died is closed.
type mortal struct {
	store.Bucket
	died chan struct{}
}

func (m mortal) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	select {
	case <-m.died:
		return "", errKilled
	default:
		return m.Bucket.Swap(ctx, key, body, size, old)
	}
}

func (m mortal) Unwrap() store.Bucket { return m.Bucket }

// An attempt that requests the killing URL cannot swap any more, as if its process had died.
func TestWhatKillsItsProcessEndsAsInternalError(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, killer := range []string{
		"http://a.com/kill", "http://kill.com/robots.txt", "http://a.com/kill.xml",
		"http://www.kill.com/robots.txt",   // URLs of kill.com redirect to its host
		"http://www.kill.com/robots.txt?r", // the robots.txt of kill.com redirects to it
	} {
		t.Run(killer, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				died := make(chan struct{})
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					if "http://"+r.Host+r.URL.RequestURI() == killer {
						mu.Lock()
						close(died)
						mu.Unlock()
					}
					if to := "http://www.kill.com" + r.URL.Path; r.Host == "kill.com" {
						switch isRobots := r.URL.Path == "/robots.txt"; {
						case isRobots && killer == to+"?r":
							http.Redirect(w, r, killer, http.StatusFound)
							return
						case !isRobots && killer == "http://www.kill.com/robots.txt":
							http.Redirect(w, r, to, http.StatusFound)
							return
						}
					}
					if r.URL.Path == "/robots.txt" && strings.HasSuffix(killer, ".xml") {
						_, _ = w.Write([]byte("Sitemap: " + killer + "\n"))
						return
					}
					noRobots(page)(w, r)
				}, append(urls("b.org", 20), "http://a.com/kill", "http://a.com/after", "http://kill.com/1", "http://kill.com/2")...)
				var r *manifest.Result
				attempts := 0
				for {
					mu.Lock()
					died = make(chan struct{})
					mu.Unlock()
					var err error
					if r, err = l.run(t.Context(), mortal{l.bucket, died}, nil); err == nil {
						break
					}
					if attempts++; !errors.Is(err, errKilled) || attempts > 20 {
						t.Fatalf("attempt %d: %v", attempts, err)
					}
				}
				for u, f := range l.outcomes(r) {
					want := schema.OK
					if u == killer || strings.HasPrefix(u, "http://kill.com/") && strings.Contains(killer, "/robots.txt") {
						want = schema.InternalError
					}
					if f.Outcome != want {
						t.Errorf("%s: %s (%s), want %s", u, f.Outcome, f.Error, want)
					}
				}
				if attempts != 6 {
					t.Errorf("%d attempts died, want 3 before serial mode and 3 in it", attempts)
				}
				if n := l.web.count(killer[strings.LastIndexByte(killer, '/'):]); !strings.Contains(killer, "/robots.txt") && n != 6 {
					t.Errorf("the killing URL was requested %d times, want one time by each of the 6 attempts that died", n)
				}
				l.checkPace(r)
			})
		})
	}
}

// A robots.txt kills the attempts, and then somebody stops its host. Its robots.txt is not requested any
// more, so the next attempt need not look for it one URL at a time.
func TestSerialModeEndsIfTheSuspectsHostIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var died chan struct{}
		all := []string{"http://kill.com/1"}
		const hosts, each = 5, 20
		for i := range hosts {
			all = append(all, urls(fmt.Sprintf("h%d.org", i), each)...)
		}
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Host == "kill.com" {
				mu.Lock()
				select {
				case <-died:
				default:
					close(died)
				}
				mu.Unlock()
			}
			time.Sleep(time.Second)
			noRobots(page)(w, r)
		}, all...)
		for range 4 { // the last of them is in serial mode
			mu.Lock()
			died = make(chan struct{})
			mu.Unlock()
			if _, err := l.run(t.Context(), mortal{l.bucket, died}, nil); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		l.cfg.Politeness.Domains = map[string]polite.Domain{"kill.com": {Stop: "asked"}}
		start := time.Now()
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o := l.outcomes(r)["http://kill.com/1"].Outcome; o != schema.Stopped {
			t.Errorf("the stopped URL is %s", o)
		}
		if took := time.Since(start); took > 60*time.Second { // one at a time, its requests take 100 s
			t.Errorf("the attempt took %v: it went on in serial mode", took)
		}
	})
}

// A robots.txt kills an attempt in serial mode, and then nothing redirects to its host any more. The
// task never requests it again, so no attempt may wait for it one URL at a time until the task ends.
func TestSerialModeEndsIfNoRedirectLeadsToTheSuspectsHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const grants = 40
		var mu sync.Mutex
		var died chan struct{} // nil after the deaths
		asked := 0             // requests after the deaths
		ctx, cancel := context.WithCancel(t.Context())
		all := []string{"http://kill.com/1", "http://kill.com/2"}
		for i := range 20 {
			all = append(all, urls(fmt.Sprintf("h%d.org", i), 6)...)
		}
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			died := died
			if died == nil {
				if asked++; asked == grants+20 {
					cancel()
				}
			}
			mu.Unlock()
			switch {
			case died == nil:
				time.Sleep(time.Second)
			case r.Host == "www.kill.com":
				close(died)
			case r.Host == "kill.com" && r.URL.Path != "/robots.txt":
				http.Redirect(w, r, "http://www.kill.com"+r.URL.Path, http.StatusFound)
				return
			}
			noRobots(page)(w, r)
		}, all...)
		l.hooks.maxSerial = grants
		for range 4 { // the last of them is in serial mode
			mu.Lock()
			died = make(chan struct{})
			mu.Unlock()
			if _, err := l.run(t.Context(), mortal{l.bucket, died}, nil); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		if d := l.checkpointOf(); d.Trying == nil || d.Trying.Origin != "http://www.kill.com" {
			t.Fatalf("the last attempt died at %+v", d.Trying)
		}
		mu.Lock()
		died = nil
		mu.Unlock()
		// The first attempt is stopped, and leaves the suspect to the second one.
		for _, stopped := range []bool{true, false} {
			var log bytes.Buffer
			env := l.env(l.bucket, t.TempDir())
			env.Log = slog.New(slog.NewTextHandler(&log, nil))
			_, err := runWith(ctx, env, &Input{Task: l.task, Plan: l.plan}, l.cfg, l.parser, l.hooks)
			if stopped != errors.Is(err, stages.ErrInterrupted) || !stopped && err != nil {
				t.Fatalf("stopped %t: %v", stopped, err)
			}
			if said := log.String(); !strings.Contains(said, "one URL at a time") || !strings.Contains(said, fmt.Sprintf("uses all slots again\" grants=%d\n", grants)) {
				t.Errorf("stopped %t: serial mode did not begin, or did not end after %d grants", stopped, grants)
			}
			ctx = t.Context()
		}
	})
}

// A URL, robots.txt or sitemap kills an attempt in serial mode. When it is requested again, it kills nothing, but its
// server asks for hours of patience. Other hosts must not get one request at a time until then.
func TestSerialModeEndsWhileASuspectWaits(t *testing.T) {
	for _, killer := range []string{"http://kill.com/p00", "http://kill.com/robots.txt", "http://kill.com/map.xml"} {
		t.Run(killer, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const grants = 40
				sitemap := strings.HasSuffix(killer, ".xml")
				var mu sync.Mutex
				var died chan struct{} // nil after the deaths
				stop := func() {}
				asked := 0 // requests of an attempt after the deaths
				all := urls("kill.com", 15)
				for i := range 20 {
					all = append(all, urls(fmt.Sprintf("h%d.org", i), 6)...)
				}
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					url := "http://" + r.Host + r.URL.Path
					mu.Lock()
					died := died
					if died == nil {
						if asked++; asked == grants+20 {
							stop()
						}
					}
					mu.Unlock()
					if died == nil {
						time.Sleep(time.Second)
					}
					switch {
					case url == killer && died != nil:
						close(died)
					case url == killer && sitemap:
						http.Redirect(w, r, "http://www.kill.com/map.xml", http.StatusFound)
					case url == killer, r.Host == "www.kill.com": // if the latter, its robots.txt
						w.Header().Set("Retry-After", "7200")
						w.WriteHeader(http.StatusServiceUnavailable)
					case sitemap && url == "http://kill.com/robots.txt":
						_, _ = w.Write([]byte("Sitemap: " + killer + "\n"))
					default:
						noRobots(page)(w, r)
					}
				}, all...)
				for range 4 { // the last of them is in serial mode
					mu.Lock()
					died = make(chan struct{})
					mu.Unlock()
					if _, err := l.run(t.Context(), mortal{l.bucket, died}, nil); !errors.Is(err, errKilled) {
						t.Fatal(err)
					}
				}
				if d := l.checkpointOf(); d.Trying == nil || (d.Trying.Origin+d.Trying.Sitemap == "") != strings.HasSuffix(killer, "/p00") {
					t.Fatalf("the last attempt died at %+v", d.Trying)
				}
				l.hooks.maxSerial = grants
				mu.Lock()
				ctx, cancel := context.WithCancel(t.Context())
				died, stop = nil, cancel
				mu.Unlock()
				var log bytes.Buffer
				env := l.env(l.bucket, t.TempDir())
				env.Log = slog.New(slog.NewTextHandler(&log, nil))
				if _, err := runWith(ctx, env, &Input{Task: l.task, Plan: l.plan}, l.cfg, l.parser, l.hooks); !errors.Is(err, stages.ErrInterrupted) {
					t.Fatal(err)
				}
				if said := log.String(); !strings.Contains(said, "one URL at a time") || !strings.Contains(said, fmt.Sprintf("uses all slots again\" grants=%d\n", grants)) {
					t.Errorf("serial mode did not begin, or did not end after %d grants", grants)
				}
			})
		})
	}
}

// A URL fails, and its next try kills an attempt in serial mode. Then its host pauses for another reason, and the attempt
// is stopped. Serial mode of the next attempt must last until the URL is requested again, because it may be the cause.
func TestSerialModeLastsUntilASuspectIsRequestedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const suspect = "http://kill.com/p00"
		var mu sync.Mutex
		var died chan struct{}
		deaths, failed, paused, again, together, asked := 0, false, false, false, 0, 0
		stop := func() {}
		all := urls("kill.com", 15)
		for i := range 20 {
			all = append(all, urls(fmt.Sprintf("h%d.org", i), 6)...)
		}
		inFlight := 0
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if inFlight++; inFlight > 1 && paused && !again {
				together++
			}
			defer func() { inFlight-- }()
			switch url := "http://" + r.Host + r.URL.Path; {
			case url == suspect && deaths == 3 && !failed:
				failed = true
				w.WriteHeader(http.StatusBadGateway)
				return
			case url == suspect && deaths < 4:
				close(died)
			case url == suspect:
				again = true
			case url == "http://kill.com/robots.txt" && deaths == 4 && !paused:
				paused = true
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			if deaths == 4 {
				if asked++; paused && asked > 5 {
					stop()
				}
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
			}
			noRobots(page)(w, r)
		}, all...)
		l.cfg.Pauses.ServerError = time.Second // most URLs are left to the attempts after the deaths
		for range 4 {                          // the last of them is in serial mode
			mu.Lock()
			died = make(chan struct{})
			mu.Unlock()
			if _, err := l.run(t.Context(), mortal{l.bucket, died}, nil); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			mu.Lock()
			deaths++
			mu.Unlock()
		}
		if d := l.checkpointOf(); d.Trying == nil || !d.Trying.IsRow() || len(d.Retries) != 1 || d.Retries[0].Row != d.Trying.Row {
			t.Fatalf("the last attempt died at %+v, and %+v wait", d.Trying, d.Retries)
		}
		l.hooks.maxSerial = 40
		time.Sleep(l.cfg.Politeness.RobotsTTL) // the next attempt requests the robots.txt again
		ctx, cancel := context.WithCancel(t.Context())
		mu.Lock()
		stop = cancel
		mu.Unlock()
		if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) || again {
			t.Fatalf("the suspect was requested again: %t, %v", again, err)
		}
		if _, err := l.run(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		if !paused || !again || together > 0 {
			t.Errorf("the host paused: %t, the suspect was requested again: %t, %d requests at a time with another before that", paused, again, together)
		}
	})
}

func TestASIGTERMEndsWithinTheGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hang" {
				<-r.Context().Done()
				return
			}
			page(w, r)
		}), append(urls("b.org", 60), "http://a.com/hang")...)
		ctx, cancel := context.WithCancel(t.Context())
		told := time.Now().Add(10 * time.Second)
		time.AfterFunc(10*time.Second, cancel)
		if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatalf("got %v, want ErrInterrupted", err)
		}
		if took := time.Since(told); took > l.cfg.Pauses.Grace/2 {
			t.Errorf("the attempt ended after %v, requests in flight get %v", took, l.cfg.Pauses.Grace/4)
		}
		for _, h := range l.web.hits() {
			if h.at.After(told) {
				t.Errorf("%s%s was requested %v after the task was told to stop", h.host, h.path, h.at.Sub(told))
			}
		}
		cp := l.checkpointOf()
		if !cp.Released || cp.Complete || cp.Stalled != 0 {
			t.Errorf("released %t, complete %t, stalled %d", cp.Released, cp.Complete, cp.Stalled)
		}
		hits := len(l.web.hits())
		var urls int64
		for _, c := range cp.Counts {
			if c.Name == "urls" {
				urls = c.N
			}
		}
		if want := int64(hits - 3); urls != want { // two of the hits are for robots.txt, one is for /hang
			t.Errorf("%d URLs are recorded, want all %d that were answered", urls, want)
		}
	})
}

func TestAFullDiskPausesFetching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 60)...)
		watch := &onlooker{}
		l.watcher = watch
		time.AfterFunc(79*time.Second, func() { // many checkpoints after the pause began
			if a := watch.now(); len(a.Waits) == 0 || !strings.Contains(a.Waits[0].Why, "nearly full") {
				t.Errorf("while the disk is full, the task waits for %+v", a.Waits)
			}
		})
		start := time.Now()
		from, to := 20*time.Second, 80*time.Second
		l.hooks.free = func(string) (int64, error) {
			if at := time.Since(start); at > from && at < to {
				return 1000, nil
			}
			return 1 << 40, nil
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if f.Outcome != schema.OK {
				t.Errorf("%s: %s", u, f.Outcome)
			}
		}
		for _, h := range l.web.hits() {
			if at := h.at.Sub(start); at > from+3*time.Second && at < to {
				t.Errorf("%s was requested at %v, when the disk had no room to record it", h.path, at)
			}
		}
	})
}

func TestADiskThatStaysFullInterruptsTheTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 60)...)
		start := time.Now()
		full := true
		l.hooks.free = func(string) (int64, error) {
			if full && time.Since(start) > 20*time.Second {
				return 1000, nil
			}
			return 1 << 40, nil
		}
		_, err := l.run(t.Context(), nil, nil)
		if !errors.Is(err, stages.ErrInterrupted) || !strings.Contains(fmt.Sprint(err), "TMPDIR") {
			t.Fatalf("got %v, want ErrInterrupted and what to do", err)
		}
		if cp := l.checkpointOf(); !cp.Released || cp.Stalled != 0 {
			t.Errorf("released %t, stalled %d", cp.Released, cp.Stalled)
		}
		full = false
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		if n := len(l.web.hits()); n != 61 {
			t.Errorf("%d requests, want one a URL and robots.txt", n)
		}
	})
}

func TestAStoreThatStaysAwayInterruptsTheTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 600)...)
		away := &freezing{Bucket: l.bucket}
		time.AfterFunc(90*time.Second, func() { away.set(true) })
		_, err := l.run(t.Context(), away, nil)
		if !errors.Is(err, stages.ErrInterrupted) || !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v, want ErrInterrupted for an unavailable store", err)
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		l.checkPace(r)
	})
}

func TestGivingUpCommitsWhatIsCheckpointedAndDefersTheRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 60)...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(21*time.Second, cancel)
		if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatal(err)
		}
		asked := len(l.web.hits())
		r, err := l.run(t.Context(), nil, &Input{GiveUp: true})
		if err != nil {
			t.Fatal(err)
		}
		got := map[schema.Outcome]int{}
		for _, f := range l.outcomes(r) {
			got[f.Outcome]++
		}
		if diff := cmp.Diff(map[schema.Outcome]int{schema.OK: asked - 1, schema.Deferred: 61 - asked}, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if n := len(l.web.hits()); n != asked {
			t.Errorf("%d requests after fetching was given up", n-asked)
		}
	})
}

func TestLeftoversAreDeletedOnceTheResultExists(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 10)...)
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Plan = l.planID // the worker also sets the plan
		warc := layout.WARC("2026-11", 0, l.planID, 0, 3, 0)
		left := []string{layout.Segment("2026-11", 0, l.planID, 0, 1, 7, "fetches"), warc, layout.CDXJ(warc)}
		others := []string{layout.Segment("2026-11", 0, l.planID, 1, 1, 7, "fetches"), layout.WARC("2026-11", 0, l.planID, 1, 3, 0)}
		for _, key := range append(left, others...) {
			if _, err := store.CreateBytes(t.Context(), l.bucket, key, []byte("late")); err != nil {
				t.Fatal(err)
			}
		}
		segments.Sweep(t.Context(), l.bucket, slog.New(slog.DiscardHandler), l.task, r)
		there := map[string]bool{}
		for o, err := range l.bucket.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			there[o.Key] = true
		}
		for _, key := range left {
			if there[key] {
				t.Errorf("%s is still there", key)
			}
		}
		for _, key := range others {
			if !there[key] {
				t.Errorf("%s, of another partition, was deleted", key)
			}
		}
		for _, f := range r.Files {
			if !there[f.Key] {
				t.Errorf("%s is listed, and was deleted", f.Key)
			}
		}
	})
}

func TestAStoreThatIsAwayAtTheEndIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 10)...)
		away := &freezing{Bucket: l.bucket}
		time.AfterFunc(15*time.Second, func() { away.set(true) })
		time.AfterFunc(5*time.Minute, func() { away.set(false) })
		r, err := l.run(t.Context(), away, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		if n := len(l.web.hits()); n != 11 {
			t.Errorf("%d requests, want one a URL and robots.txt", n)
		}
	})
}

func TestHostClocksCarryOverBetweenRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/p04" {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			page(w, r)
		}), append(urls("a.com", 5), urls("b.org", 5)...)...)
		l.cfg.Retries.RateLimited = 0
		first, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Hosts) != 2 || first.CompletedAt == 0 {
			t.Fatalf("the result knows of %d hosts, at %d", len(first.Hosts), first.CompletedAt)
		}
		last := map[string]time.Time{}
		for _, h := range l.web.hits() {
			last[h.host] = h.at
		}
		before := len(l.web.hits())
		l.task.Round = 1
		l.setPlanAt(planRows(t, append(urls("a.com", 3), "http://c.net/new")), "p2")
		if _, err := l.run(t.Context(), nil, &Input{Before: []*manifest.Result{first}}); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, h := range l.web.hits()[before:] {
			if gap := h.at.Sub(last[h.host]); h.host == "a.com" && !seen[h.host] && gap < 10*time.Minute {
				t.Errorf("%s got a request %v after a Retry-After of 600 s", h.host, gap)
			}
			seen[h.host] = true
		}
		if seen["b.org"] || !seen["a.com"] || !seen["c.net"] {
			t.Errorf("hosts with requests: %v", seen)
		}
	})
}

func TestTheSlowerPolitenessHoldsUntilANewerRevisionComes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, c := range []struct {
		revision int
		want     time.Duration
	}{{1, 10 * time.Second}, {2, 10 * time.Second}, {3, 2 * time.Second}} {
		t.Run(fmt.Sprint("revision ", c.revision), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 20)...)
				l.cfg.Checkpoint.Every = time.Second
				l.cfg.Politeness.Delay = 10 * time.Second
				if _, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(45 * time.Second)}, &Input{Politeness: 2}); !errors.Is(err, errKilled) {
					t.Fatalf("got %v, want the bucket's error", err)
				}
				before := len(l.web.hits())
				l.cfg.Politeness.Delay = 2 * time.Second
				r, err := l.run(t.Context(), nil, &Input{Politeness: c.revision})
				if err != nil {
					t.Fatal(err)
				}
				l.outcomes(r)
				hits := l.web.hits()[before:]
				for i := 1; i < len(hits); i++ {
					if gap := hits[i].at.Sub(hits[i-1].at); gap != c.want {
						t.Errorf("a gap of %v, want %v", gap, c.want)
					}
				}
			})
		})
	}
}

func TestAPartitionWhoseCheckpointIsGoneIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 10)...)
		if _, err := l.run(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		key := layout.Checkpoint("2026-11", 0, 0)
		if err := l.bucket.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		asked := len(l.web.hits())
		_, err := l.run(t.Context(), nil, nil)
		if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(fmt.Sprint(err), key) {
			t.Errorf("got %v, want ErrPermanent and the checkpoint's name", err)
		}
		if n := len(l.web.hits()); n != asked {
			t.Errorf("%d requests were sent", n-asked)
		}
	})
}

// lateBucket hides a checkpoint from the first read. This simulates a reader that is paused after
// its read, while another process creates the checkpoint.
type lateBucket struct {
	store.Bucket
	key    string
	looked atomic.Bool
}

func (l *lateBucket) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	if key == l.key && !l.looked.Swap(true) {
		return nil, "", store.ErrNotFound
	}
	return l.Bucket.Get(ctx, key, limit)
}

func TestAPartitionTakenSinceItWasLookedAtIsNotOneWhoseCheckpointIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 10)...)
		first, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := l.run(t.Context(), &lateBucket{Bucket: apart{l.bucket}, key: layout.Checkpoint("2026-11", 0, 0)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("another result:\n%s", diff)
		}
	})
}
