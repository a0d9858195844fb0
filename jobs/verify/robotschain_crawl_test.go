package verify

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
)

// The robots.txt of a host may redirect to that of another host whose pages are planned too. Each page is judged
// by the response that came for its own host, even if the same URL answers otherwise each time.
func TestARobotsTxtThatRedirectsToAPlannedHost(t *testing.T) {
	for name, redirects := range map[string]map[string]string{
		"apex to www":            {"a.test": "www.a.test"},
		"www to apex":            {"www.a.test": "a.test"},
		"a chain of three":       {"a.test": "b.a.test", "b.a.test": "c.a.test", "c.a.test": "www.a.test"},
		"two hosts to the same":  {"a.test": "www.a.test", "b.a.test": "www.a.test"},
		"each to the other":      {"a.test": "www.a.test", "www.a.test": "a.test"},
		"to a host of no page":   {"a.test": "robots.a.test", "www.a.test": "robots.a.test"},
		"to a host of no answer": {"a.test": "failing.a.test", "b.a.test": "www.a.test"},
	} {
		for _, changes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, changes=%t", name, changes), func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				served := 0
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch to := redirects[r.Host]; {
					case r.URL.Path != "/robots.txt":
						w.Header().Set("Content-Type", "text/html")
						fmt.Fprintf(w, "<p>%s%s", r.Host, r.URL.Path)
					case to != "":
						http.Redirect(w, r, "http://"+to+"/robots.txt", http.StatusFound)
					case strings.HasPrefix(r.Host, "failing."):
						w.WriteHeader(http.StatusInternalServerError)
					default:
						mu.Lock()
						served++
						n := served
						mu.Unlock()
						if !changes {
							n = 0
						}
						fmt.Fprintf(w, "User-agent: *\nDisallow: /private\n# %d\n", n)
					}
				}))
				t.Cleanup(s.Close)
				var urls []string
				for _, host := range []string{"a.test", "b.a.test", "c.a.test", "www.a.test"} {
					for i := range 4 {
						urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
					}
					urls = append(urls, "http://"+host+"/private")
				}
				l := newCrawlLab(t, s.Listener.Addr().String(), urls, func(c *config.Config) {
					c.Fetch.Retries.ServerError, c.Fetch.Retries.Robots = 0, 0
				})
				if err := l.driver.Run(t.Context(), testCrawl, 0); err != nil {
					t.Fatal(err, slices.Collect(maps.Keys(redirects)))
				}
				l.verify(t, true)
			})
		}
	}
}
