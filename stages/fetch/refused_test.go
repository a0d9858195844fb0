package fetch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// A host that refuses everything is asked a few times, and once more later. What a site forbids in part does not end
// its other pages.
func TestAHostThatRefusesEverythingIsLeftAlone(t *testing.T) {
	challenge := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("cf-mitigated", "challenge")
		w.WriteHeader(403)
		io.WriteString(w, "<title>Just a moment...</title>")
	}
	forbidden := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }
	private := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/1") || strings.HasPrefix(r.URL.Path, "/2") { // 20 pages in a row
			forbidden(w, r)
			return
		}
		page(w, r)
	}
	for _, c := range []struct {
		name     string
		serve    http.HandlerFunc
		want     map[schema.Outcome]int
		by       string // blocked_by of the URLs that are not ok
		requests int
	}{
		{"a service's challenge", challenge, map[schema.Outcome]int{schema.Blocked: 11, schema.HostSuspended: 39}, "cloudflare", 11},
		{"403", forbidden, map[schema.Outcome]int{schema.HTTP4xx: 11, schema.HostSuspended: 39}, "", 11},
		{"402", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Crawler-Price", "USD 0.01")
			w.WriteHeader(402)
		}, map[schema.Outcome]int{schema.PaymentRequired: 11, schema.HostSuspended: 39}, "", 11},
		{"404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, map[schema.Outcome]int{schema.HTTP4xx: 50}, "", 50},
		{"a part of the site is private, and one page fails", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/15" {
				w.WriteHeader(501)
				return
			}
			private(w, r)
		}, map[schema.Outcome]int{schema.HTTP4xx: 19, schema.HTTP5xx: 1, schema.OK: 30}, "", 52},
		{"a part of the site is private", private, map[schema.Outcome]int{schema.HTTP4xx: 20, schema.OK: 30}, "", 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var all []string
				for i := range 50 {
					all = append(all, fmt.Sprintf("http://a.com/%02d", i))
				}
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/robots.txt" {
						io.WriteString(w, "User-agent: *\nDisallow: /private\n")
						return
					}
					c.serve(w, r)
				}, all...)
				r := l.mustRun(nil)
				got := map[schema.Outcome]int{}
				for u, f := range l.outcomes(r) {
					got[f.Outcome]++
					if f.Outcome != schema.OK && f.BlockedBy != c.by || f.Outcome == schema.HostSuspended && f.Error == "" {
						t.Errorf("%s: %s (%s) by %q, want %q", u, f.Outcome, f.Error, f.BlockedBy, c.by)
					}
					if (f.Price == "USD 0.01") != (f.Outcome == schema.PaymentRequired) {
						t.Errorf("%s: price %q", u, f.Price)
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) || len(l.web.hits())-1 != c.requests {
					t.Errorf("%v after %d requests, want %v after %d", got, len(l.web.hits())-1, c.want, c.requests)
				}
				l.checkPace(r)
			})
		})
	}
}

// A host that refuses conditional requests too is found as soon as any other.
func TestRefusedConditionsDoNotHideRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }))
		var all []string
		for i := range 50 {
			all = append(all, fmt.Sprintf("http://a.com/%02d", i))
		}
		rows := planRows(t, all)
		for i := range rows {
			rows[i].ETag, rows[i].ContentDigest, rows[i].Fetches = `"1"`, strings.Repeat("A", 32), 1
			rows[i].ContentAt, rows[i].WARCFilename, rows[i].WARCRecordLen = schema.TimeOf(time.Now().Add(-time.Hour)), "warc/crawl=2026-10/x.warc.gz", 100
		}
		l.setPlanAt(rows, "p2")
		got := map[schema.Outcome]int{}
		for _, f := range l.outcomes(l.mustRun(nil)) {
			got[f.Outcome]++
		}
		if got[schema.HTTP4xx] != 11 || got[schema.HostSuspended] != 39 {
			t.Errorf("%v after %d requests", got, len(l.web.hits()))
		}
	})
}

// The rows of a host say why its robots.txt could not be fetched.
func TestAnUnreachableRobotsFileHasAReason(t *testing.T) {
	for _, status := range []int{429, 430, 500, 503} {
		bubble(t, func(t *testing.T) {
			l := newLab(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }, "http://a.com/1")
			for u, f := range l.outcomes(l.mustRun(nil)) {
				if f.Outcome != schema.RobotsUnreachable || f.Error != fmt.Sprintf("robots.txt: HTTP status %d", status) {
					t.Errorf("%s: %s (%s)", u, f.Outcome, f.Error)
				}
			}
		})
	}
}

// A test for people in place of robots.txt says nothing about the rules.
func TestAChallengeIsNoRobotsFile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				w.Header().Set("x-vercel-mitigated", "challenge")
				w.WriteHeader(map[string]int{"a.com": 403, "b.com": 429, "c.com": 200}[r.Host])
				return
			}
			page(w, r)
		}, "http://a.com/1", "http://b.com/1", "http://c.com/1")
		for u, f := range l.outcomes(l.mustRun(nil)) {
			if f.Outcome != schema.RobotsUnreachable || f.ErrorDetail != "vercel" {
				t.Errorf("%s: %s (%s, %s)", u, f.Outcome, f.Error, f.ErrorDetail)
			}
		}
	})
}

// A service that limits the rate is obeyed as any server is, for pages and for robots.txt.
func TestAServiceThatLimitsTheRateIsObeyed(t *testing.T) {
	for name, status := range map[string]int{"429": 429, "503": 503, "403": 403} {
		for _, limited := range []string{"/1", "/robots.txt"} {
			t.Run(name+limited, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var once sync.Once
					l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
						first := false
						if r.URL.Path == limited {
							once.Do(func() { first = true })
						}
						switch {
						case first:
							w.Header().Set("Retry-After", "600")
							w.WriteHeader(status)
							io.WriteString(w, `<link href="/cdn-cgi/styles/cf.errors.css"><div id="cf-error-details">You are being rate limited`)
						case r.URL.Path == "/robots.txt":
							http.NotFound(w, r)
						default:
							page(w, r)
						}
					}, "http://a.com/1", "http://a.com/2")
					for u, f := range l.outcomes(l.mustRun(nil)) {
						if f.Outcome != schema.OK {
							t.Errorf("%s: %s (%s)", u, f.Outcome, f.Error)
						}
					}
					hits := l.web.hits()
					for i, h := range hits {
						if h.path == limited && i+1 < len(hits) && hits[i+1].at.Sub(h.at) < 600*time.Second {
							t.Errorf("the next request followed after %v", hits[i+1].at.Sub(h.at))
						}
						if h.path == limited {
							break
						}
					}
				})
			})
		}
	}
}
