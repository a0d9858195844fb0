package verify

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
)

// A site's robots.txt denies some forms of URLs from the list, redirects and links. No such form is requested, and what
// it allows is requested as it was linked, whatever it says about the canonical URL.
func TestNothingIsRequestedThatRobotsTxtDeniesAsItIsSent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const file = "User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /q?z=1&a=2\nDisallow: /star-%2A.html\nDisallow: /r?a=2&z=1\nDisallow: /*?utm_\n"
	site := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, file)
		case "/to-q":
			w.Header().Set("Location", "/q?z=1&a=2&to")
			w.WriteHeader(http.StatusFound)
		case "/to-ok":
			w.Header().Set("Location", "/%6Fk?z=1&a=2")
			w.WriteHeader(http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<title>t</title><p>page %s", r.URL)
			if r.URL.Path == "/" {
				fmt.Fprint(w, `<a href="/linked?z=1&amp;a=2">1</a> <a href="%7Ejoe/linked">2</a> <a href="/~joe/too">3</a> <a href="/q?z=1&amp;a=2&amp;linked">4</a> <a href="star-*.html?linked">5</a> <a href="/r?z=1&amp;a=2">6</a> <a href="/utm?utm_source=x">7</a> <a href="/utm?id=1&amp;utm_source=x">8</a>`)
			}
		}
	}
	seeds := []string{
		"http://a.test/", "http://a.test/to-q", "http://a.test/to-ok", "http://a.test/q?z=1&a=2", "http://a.test/%7Ejoe/", "http://a.test/star-*.html",
	}
	var mu sync.Mutex
	var requested []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requested = append(requested, "http://"+r.Host+r.RequestURI)
		mu.Unlock()
		site(w, r)
	}))
	defer server.Close()
	l := newCrawlLab(t, server.Listener.Addr().String(), seeds, func(*config.Config) {})
	if err := l.driver.Run(t.Context(), testCrawl, 2); err != nil { // links are requested in the second round
		t.Fatal(err)
	}
	l.verify(t, true)
	server.Close()
	for _, u := range requested {
		if strings.Contains(u, "/q?") || strings.Contains(u, "joe/") || strings.Contains(u, "/star-") || strings.Contains(u, "?utm") || strings.Contains(u, "/r?a") {
			t.Errorf("%s was requested", u)
		}
	}
	for _, u := range []string{"http://a.test/%6Fk?z=1&a=2", "http://a.test/linked?z=1&a=2", "http://a.test/r?z=1&a=2", "http://a.test/utm?id=1&utm_source=x"} {
		if !slices.Contains(requested, u) {
			t.Errorf("%s, which is allowed as it is sent, was not requested: %q", u, requested)
		}
	}
}
