package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
)

// sitemapLines returns a robots.txt that names n sitemaps, /s0.xml and so on.
func sitemapLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Sitemap: /s%d.xml\n", i)
	}
	return b.String()
}

// sitemapHits returns the paths of the requests for sitemaps since the first n requests.
func (l *lab) sitemapHits(n int) (paths []string) {
	for _, h := range l.web.hits()[n:] {
		if strings.HasSuffix(h.path, ".xml") {
			paths = append(paths, h.path)
		}
	}
	return paths
}

// nextRound prepares the lab for the next round, which plans these URLs.
func (l *lab) nextRound(urls ...string) {
	l.task.Round++
	l.setPlanAt(planRows(l.t, urls), fmt.Sprintf("round-%d", l.task.Round))
}

// A host whose sitemaps all fail gives its pages as fast as without sitemaps. Each round requests one
// sitemap of the host, in turn.
func TestFailingSitemapsDoNotDelayPages(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, 0} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				took := map[int]time.Duration{}
				for _, n := range []int{0, 10} {
					l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
						switch {
						case r.URL.Path == "/robots.txt":
							_, _ = w.Write([]byte(sitemapLines(n)))
						case !strings.HasSuffix(r.URL.Path, ".xml"):
							page(w, r)
						case status == 0:
							time.Sleep(time.Minute) // longer than the time-outs
						default:
							w.WriteHeader(status)
						}
					}, urls("a.com", 50)...)
					l.parser = mapParser{}
					begun := time.Now()
					r := l.mustRun(nil)
					took[n] = time.Since(begun)
					for u, f := range l.outcomes(r) {
						if f.Outcome != schema.OK {
							t.Errorf("%d sitemaps: %s has the outcome %s", n, u, f.Outcome)
						}
					}
					if n == 0 {
						continue
					}
					defer time.Sleep(time.Hour) // until the handlers have ended
					for round := range 3 {
						if got := l.sitemapHits(0); len(got) != round+1 || slices.Contains(got[:round], got[round]) {
							t.Errorf("round %d: requests for sitemaps: %v", round, got)
						}
						l.nextRound(fmt.Sprintf("http://a.com/p9%d", round))
						r = l.mustRun(&Input{Before: []*manifest.Result{r}})
					}
				}
				if most := took[0] + 2*time.Minute; took[10] > most {
					t.Errorf("50 pages took %v, and %v without sitemaps", took[10], took[0])
				}
			})
		})
	}
}

// After a kill, the next attempt knows that a sitemap of the host failed, and requests no other sitemap
// of the host in this round.
func TestAnotherAttemptRequestsNoFurtherFailingSitemap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt":
				_, _ = w.Write([]byte(sitemapLines(5)))
			case strings.HasSuffix(r.URL.Path, ".xml"):
				w.WriteHeader(http.StatusBadGateway)
			default:
				page(w, r)
			}
		}, urls("a.com", 20)...)
		l.parser = mapParser{}
		l.cfg.Checkpoint.Every = 100 * time.Millisecond
		if _, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(20 * time.Second)}, nil); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		l.mustRun(nil)
		if got := l.sitemapHits(0); len(got) != 1 {
			t.Errorf("requests for sitemaps: %v", got)
		}
	})
}

// If robots.txt denies a sitemap as it names it, the sitemap is denied in every round.
func TestASitemapIsJudgedAsItIsNamedInEveryRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newSitemapLab(t, map[string]string{
			"a.com/robots.txt": "User-agent: *\nDisallow: /s.xml?z=1&a=2\nSitemap: http://a.com/s.xml?z=1&a=2\n", "a.com/s.xml": urlset("/q"),
		}, urls("a.com", 2)...)
		r := l.mustRun(nil)
		for i := range 3 {
			if d := l.sitemapOutcomes(r)["http://a.com/s.xml?a=2&z=1"]; d != schema.RobotsDenied || len(l.sitemapHits(0)) > 0 {
				t.Errorf("round %d: outcome %q, requests %v", i, d, l.web.hits())
			}
			l.nextRound(fmt.Sprintf("http://a.com/p5%d", i))
			r = l.mustRun(&Input{Before: []*manifest.Result{r}})
		}
	})
}

// If the target of a sitemap's redirect fails, the next round begins again with the URL in robots.txt.
func TestARedirectedSitemapIsNamedAnewByTheNextRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		failing := true
		serve := site(map[string]string{"a.com/robots.txt": "Sitemap: /moved.xml?z=1&a=2\n", "a.com/moved.xml": "301 /here.xml", "a.com/here.xml": urlset("/q")})
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if failing && r.URL.Path == "/here.xml" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			serve(w, r)
		}, urls("a.com", 2)...)
		l.parser = mapParser{}
		r := l.mustRun(nil)
		failing = false
		l.nextRound("http://a.com/p50")
		r = l.mustRun(&Input{Before: []*manifest.Result{r}})
		if o := l.sitemapOutcomes(r)["http://a.com/moved.xml?a=2&z=1"]; o != schema.OK {
			t.Errorf("in the second round, the sitemap has the outcome %q; requests %v", o, l.web.hits())
		}
	})
}

// All hosts of a registered domain together have the same limits as one host.
func TestTheSitemapsOfARegisteredDomainAreBounded(t *testing.T) {
	for name, limits := range map[string]sitemaps.Limits{
		"files": {Files: 3, URLs: 1000, Bytes: 1 << 20}, "entries": {Files: 100, URLs: 3, Bytes: 1 << 20}, "bytes": {Files: 100, URLs: 1000, Bytes: 400},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := 0
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path == "/robots.txt" && r.Host == "a.com":
						_, _ = w.Write([]byte("Sitemap: http://s0.a.com/i.xml\n"))
					case r.URL.Path == "/i.xml":
						n++
						w.Header().Set("Content-Type", "application/xml")
						_, _ = w.Write([]byte(index(fmt.Sprintf("http://s%d.a.com/i.xml", n))))
					case strings.HasPrefix(r.URL.Path, "/p"):
						page(w, r)
					default:
						http.NotFound(w, r)
					}
				}, urls("a.com", 2)...)
				l.parser = mapParser{}
				l.cfg.Sitemaps = limits
				l.cfg.Window = 10 * time.Minute
				l.mustRun(nil)
				if n != 3 {
					t.Errorf("%d sitemaps of subdomains were requested, want 3", n)
				}
			})
		})
	}
}

// Sitemaps that are not requested cost no time.
func TestDeniedSitemapsDoNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lines := strings.ReplaceAll(sitemapLines(99), "/s", "/no/s")
		l := newSitemapLab(t, map[string]string{"a.com/robots.txt": "User-agent: *\nCrawl-delay: 60\nDisallow: /no\n" + lines}, urls("a.com", 2)...)
		begun := time.Now()
		r := l.mustRun(nil)
		if took := time.Since(begun); took > 5*time.Minute {
			t.Errorf("2 pages and no sitemap took %v", took)
		}
		if n := len(l.sitemapOutcomes(r)); n != 99 {
			t.Errorf("%d of 99 sitemaps have a row", n)
		}
	})
}
