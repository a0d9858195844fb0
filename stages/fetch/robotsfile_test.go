package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// rulesEverywhere is a web in which all hosts but none.com have a robots.txt. The robots.txt of
// broken.com fails, and that of moved.com redirects to another host.
func rulesEverywhere(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/robots.txt" {
		page(w, r)
		return
	}
	switch r.Host {
	case "none.com":
		http.NotFound(w, r)
	case "broken.com":
		w.WriteHeader(500)
	case "moved.com":
		http.Redirect(w, r, "http://other.net/robots.txt", http.StatusMovedPermanently)
	default:
		fmt.Fprintf(w, "User-agent: *\nDisallow: /private\nCrawl-delay: 7\n# of %s\n", r.Host)
	}
}

func (w *web) askedRobots() map[string]int {
	n := map[string]int{}
	for _, h := range w.hits() {
		if h.path == "/robots.txt" {
			n[h.host]++
		}
	}
	return n
}

func TestRobotsFilesCarryOverBetweenRounds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	round0 := []string{"http://a.com/1", "http://none.com/1", "http://broken.com/1", "http://moved.com/1", "http://gone.com/1"}
	round1 := []string{"http://a.com/2", "http://a.com/private", "http://none.com/2", "http://broken.com/2", "http://moved.com/private", "http://moved.com/2", "http://new.com/2"}
	for _, c := range []struct {
		name   string
		later  time.Duration // time from the end of round 0 to the start of round 1
		ttl    time.Duration // politeness.robots_ttl of round 1
		killed bool          // whether round 1's first attempt is killed after a checkpoint
		again  map[string]int
	}{
		{"at once", 0, 24 * time.Hour, false, map[string]int{"broken.com": 5, "new.com": 1}},
		{"at once, by two attempts", 0, 24 * time.Hour, true, map[string]int{"broken.com": 5, "new.com": 1}},
		{"when they have become too old", 25 * time.Hour, 24 * time.Hour, false,
			map[string]int{"a.com": 1, "none.com": 1, "moved.com": 1, "other.net": 1, "broken.com": 5, "new.com": 1}},
		{"when they are too old by now", time.Hour, time.Minute, false,
			map[string]int{"a.com": 1, "none.com": 1, "moved.com": 1, "other.net": 1, "broken.com": 5, "new.com": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, rulesEverywhere, round0...)
				first, err := l.run(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				before := l.web.askedRobots()
				time.Sleep(c.later)
				l.task.Round = 1
				l.cfg.Politeness.RobotsTTL = c.ttl
				l.setPlanAt(planRows(t, round1), "p2")
				in := &Input{Before: []*manifest.Result{first}}
				if c.killed {
					l.cfg.Checkpoint.Every = time.Second
					if _, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(9 * time.Second)}, in); !errors.Is(err, errKilled) {
						t.Fatalf("got %v, want the bucket's error", err)
					}
					in = &Input{Before: []*manifest.Result{first}}
				}
				second, err := l.run(t.Context(), nil, in)
				if err != nil {
					t.Fatal(err)
				}
				for host, n := range l.web.askedRobots() {
					if n -= before[host]; n != c.again[host] && !(c.killed && c.again[host] > 0 && n > 0) {
						t.Errorf("%s: robots.txt was requested %d times, want %d", host, n, c.again[host])
					}
				}
				got := l.outcomes(second)
				for u, want := range map[string]schema.Outcome{
					"http://a.com/2": schema.OK, "http://a.com/private": schema.RobotsDenied, "http://none.com/2": schema.OK,
					"http://broken.com/2": schema.RobotsUnreachable, "http://moved.com/2": schema.OK, "http://moved.com/private": schema.RobotsDenied,
				} {
					if got[u].Outcome != want {
						t.Errorf("%s: %s %q, want %s", u, got[u].Outcome, got[u].Error, want)
					}
				}
				l.checkEvidence(second)
				// The files of round 1 contain every entry that still applies, so the next round
				// reads no older files.
				known := map[string]schema.RobotsFile{}
				for _, f := range rowsOf[schema.RobotsFile](l, second, stages.FileRobots) {
					if f.Outcome == "" {
						known[f.Origin] = f
					}
				}
				for _, origin := range []string{"http://a.com", "http://none.com", "http://moved.com", "http://new.com"} {
					f, ok := known[origin]
					if !ok || f.WARCFile == "" || f.FetchedAt == 0 || f.Rules != (len(f.Body) > 0) || f.Rules == (origin == "http://none.com") {
						t.Errorf("%s: known %t, %+v", origin, ok, f)
					}
				}
				if _, ok := known["http://gone.com"]; ok {
					t.Error("the round records the robots.txt of a host that it does not plan")
				}
			})
		})
	}
}

// checkEvidence checks that the row of each request has the delay in force and the gap since the
// host's previous request, and names the record and the digest of the robots.txt that allowed it.
func (l *lab) checkEvidence(r *manifest.Result) {
	l.t.Helper()
	met := map[string]bool{} // by host and epoch, because an attempt does not know the last request of the previous attempt
	rows := rowsOf[schema.Request](l, r, stages.FileRequests)
	// Segments hold requests in the order of their ends: those of a chain of redirects end together.
	slices.SortStableFunc(rows, func(a, b schema.Request) int { return cmp.Compare(a.Start, b.Start) })
	for _, q := range rows {
		if host := fmt.Sprint(q.Host, q.Epoch); q.BytesSent > 0 {
			if met[host] && q.GapMS == nil {
				l.t.Errorf("%s %s: no gap", q.Purpose, q.URL)
			}
			met[host] = true
		}
		if q.DelayMS < l.cfg.Politeness.Delay.Milliseconds() {
			l.t.Errorf("%s %s: delay %d ms", q.Purpose, q.URL, q.DelayMS)
		}
		if q.Purpose == schema.ForRobots {
			if q.RobotsFile != "" || q.RobotsDigest != "" || q.RobotsRule != "" {
				l.t.Errorf("a request of robots.txt names one: %+v", q)
			}
			continue
		}
		if q.RobotsFile == "" {
			l.t.Errorf("%s %s: no evidence", q.Purpose, q.URL)
			continue
		}
		e, _, _ := l.record(&schema.CaptureColumns{WARCFilename: q.RobotsFile, WARCRecordOffset: q.RobotsOffset, WARCRecordLength: q.RobotsLength})
		digest := e.Header.Get("WARC-Payload-Digest")
		if q.RobotsDigest != "" && digest != "sha1:"+q.RobotsDigest {
			l.t.Errorf("%s %s: its evidence is of %s, its digest %s", q.Purpose, q.URL, digest, q.RobotsDigest)
		}
	}
}

func TestEveryRequestHasItsEvidence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, misbehave(), "http://a.com/page", "http://a.com/moved", "http://a.com/to-www", "http://a.com/limited-once", "http://a.com/wrong-once",
			"http://norobots.com/", "http://broken.com/", "http://moved.com/a", "http://a.com/missing")
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.checkEvidence(r)
		purposes := map[schema.Purpose]int{}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			purposes[q.Purpose]++
		}
		if purposes[schema.ForPage] == 0 || purposes[schema.ForRedirect] == 0 || purposes[schema.ForRobots] == 0 {
			t.Errorf("a purpose has no request: %v", purposes)
		}
	})
}

func TestManyHostsAreFetchedWithFewRulesInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var urls []string
		for h := range 60 {
			for p := range 3 {
				urls = append(urls, fmt.Sprintf("http://h%d.com/p%d", h, p))
			}
			urls = append(urls, fmt.Sprintf("http://h%d.com/private", h))
		}
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				fmt.Fprint(w, "User-agent: *\nDisallow: /private\n", strings.Repeat("Disallow: /nothing\n", 50))
				return
			}
			page(w, r)
		}, urls...)
		l.hooks.rules = 20_000 // memory for the rules of two domains, in bytes
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if denied := strings.HasSuffix(u, "/private"); denied != (f.Outcome == schema.RobotsDenied) || !denied && f.Outcome != schema.OK {
				t.Errorf("%s: %s %q", u, f.Outcome, f.Error)
			}
		}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			if q.Purpose == schema.ForPage && q.RobotsDigest == "" {
				t.Errorf("%s: no digest", q.URL)
			}
		}
	})
}

// The last good robots.txt applies for 30 days if it cannot be fetched again, also after a restart.
func TestTheLastGoodRobotsFileHoldsForThirtyDays(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name         string
		later        time.Duration // time from the first round to the second
		breaks       func(w http.ResponseWriter)
		allowed, not schema.Outcome
		killed       bool
	}{
		{"answers 503", 3 * day, func(w http.ResponseWriter) { w.WriteHeader(503) }, schema.OK, schema.RobotsDenied, false},
		{"answers 500, and the attempt is killed", 3 * day, func(w http.ResponseWriter) { w.WriteHeader(500) }, schema.OK, schema.RobotsDenied, true},
		{"breaks off", 3 * day, func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "User-agent: *\nDisallow:\n")
			panic(http.ErrAbortHandler)
		}, schema.OK, schema.RobotsDenied, false},
		{"answers 500 on the last day", 29*day + 12*time.Hour, func(w http.ResponseWriter) { w.WriteHeader(500) }, schema.OK, schema.RobotsDenied, false},
		{"answers 500 after 31 days", 31 * day, func(w http.ResponseWriter) { w.WriteHeader(500) }, schema.RobotsUnreachable, schema.RobotsUnreachable, false},
		{"is gone", 3 * day, func(w http.ResponseWriter) { w.WriteHeader(404) }, schema.OK, schema.OK, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var broken atomic.Bool
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path != "/robots.txt":
						page(w, r)
					case broken.Load():
						c.breaks(w)
					default:
						fmt.Fprint(w, "User-agent: *\nDisallow: /private\nCrawl-delay: 7\n")
					}
				}, "http://a.com/1")
				first := l.mustRun(nil)
				broken.Store(true)
				time.Sleep(c.later)
				l.task.Round = 1
				l.setPlanAt(planRows(t, []string{"http://a.com/2", "http://a.com/3", "http://a.com/private"}), "p2")
				if c.killed {
					l.cfg.Checkpoint.Every = time.Second
					if _, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(32 * time.Second)}, &Input{Before: []*manifest.Result{first}}); !errors.Is(err, errKilled) {
						t.Fatalf("got %v, want the bucket's error", err)
					}
				}
				second := l.mustRun(&Input{Before: []*manifest.Result{first}})
				got := l.outcomes(second)
				for u, want := range map[string]schema.Outcome{"http://a.com/2": c.allowed, "http://a.com/3": c.allowed, "http://a.com/private": c.not} {
					if got[u].Outcome != want {
						t.Errorf("%s: %s (%s), want %s", u, got[u].Outcome, got[u].Error, want)
					}
				}
				l.checkPace(second)
			})
		})
	}
}

// That there was no robots.txt is no copy: rules may have come since.
func TestAMissingRobotsFileIsNoLastGoodOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		status := atomic.Int32{}
		status.Store(404)
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				w.WriteHeader(int(status.Load()))
				return
			}
			page(w, r)
		}, "http://a.com/1")
		first := l.mustRun(nil)
		status.Store(500)
		time.Sleep(3 * 24 * time.Hour)
		l.task.Round = 1
		l.setPlanAt(planRows(t, []string{"http://a.com/2"}), "p2")
		if f := l.outcomes(l.mustRun(&Input{Before: []*manifest.Result{first}}))["http://a.com/2"]; f.Outcome != schema.RobotsUnreachable {
			t.Errorf("%s (%s)", f.Outcome, f.Error)
		}
	})
}
