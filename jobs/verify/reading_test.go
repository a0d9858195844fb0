package verify

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"github.com/google/go-cmp/cmp"
)

// TestARoundIsJudgedByTheReadingThatItBeganWith crawls a site whose robots.txt denies some spellings of
// URLs from the list, redirects and links. Format 1 did not check spellings, format 2 does. The test
// crawls in each format, and then audits each crawl as if it had begun in the other format.
func TestARoundIsJudgedByTheReadingThatItBeganWith(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const file = "User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /q?z=1&a=2\nDisallow: /star-%2A.html\n"
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
				fmt.Fprint(w, `<a href="/linked?z=1&amp;a=2">1</a> <a href="%7Ejoe/linked">2</a> <a href="/~joe/too">3</a> <a href="/q?z=1&amp;a=2&amp;linked">4</a> <a href="star-*.html?linked">5</a>`)
			}
		}
	}
	seeds := []string{
		"http://a.test/", "http://a.test/to-q", "http://a.test/to-ok", "http://a.test/q?z=1&a=2", "http://a.test/%7Ejoe/", "http://a.test/star-*.html",
	}
	denied := []string{"http://a.test/q?a=2&to&z=1", "http://a.test/q?a=2&z=1", "http://a.test/star-*.html", "http://a.test/~joe/"}
	for _, format := range []int{1, 2} {
		t.Run(fmt.Sprint("format ", format), func(t *testing.T) {
			var mu sync.Mutex
			var requested []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				requested = append(requested, "http://"+r.Host+r.URL.RequestURI())
				mu.Unlock()
				site(w, r)
			}))
			defer server.Close()
			l := newCrawlLab(t, server.Listener.Addr().String(), seeds, func(*config.Config) {})
			p, err := roundstate.Begin(t.Context(), l.bucket, testCrawl, 0, ledgertest.Writer())
			if err != nil {
				t.Fatal(err)
			}
			beganWith := func(format int) {
				t.Helper()
				ledgertest.Edit(t, l.bucket, testCrawl, func(all []manifest.Entry) []manifest.Entry {
					for i := range all {
						if all[i].What == manifest.EntryStarted && all[i].InRound(0) {
							all[i].Format = format
						}
					}
					return all
				})
			}
			beganWith(format)
			if err := l.driver.Run(t.Context(), testCrawl, format); err != nil { // format 1 needs one round; format 2 needs a second round for the links
				t.Fatal(err)
			}
			l.verify(t, true)
			noted := slices.ContainsFunc(l.report(t, true).Notes, func(n string) bool { return strings.Contains(n, "it, and denies as rounds") })
			server.Close()
			sent := 0
			for _, u := range requested {
				if strings.Contains(u, "/q?") || strings.Contains(u, "joe/") || strings.Contains(u, "/star-") {
					sent++
				}
			}
			if format == 1 && (sent != len(denied) || !noted) || format == 2 && (sent > 0 || noted) || !slices.Contains(requested, "http://a.test/ok?a=2&z=1") {
				t.Errorf("%d requests for URLs whose spelling is denied, noted %t: %q", sent, noted, requested)
			}
			if format == 2 && !slices.Contains(requested, "http://a.test/linked?a=2&z=1") {
				t.Errorf("a link that is allowed in its spelling was not sent: %q", requested)
			}
			var found, want []string
			beganWith(3 - format)
			for _, v := range l.report(t, true).Violations {
				if v.Check == obeyed {
					found = append(found, v.Row)
				}
			}
			if format == 1 {
				want = denied // a round of the present format denies the same URLs
			}
			if format == 1 { // a round that begins today may have a plan of the older version
				key := filepath.Join(l.dir, layout.PlanManifest(testCrawl, 0, p.ID))
				body, err := os.ReadFile(key)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(key, bytes.Replace(body, fmt.Appendf(nil, `"format_version": %d`, schema.FormatVersion), []byte(`"format_version": 1`), 1), 0o644); err != nil {
					t.Fatal(err)
				}
				if notes := l.report(t, true).Notes; !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "an older crawlbatch made its plan") }) {
					t.Errorf("nothing tells that the plan has no spellings: %q", notes)
				}
			}
			slices.Sort(found)
			if d := cmp.Diff(want, found); d != "" {
				t.Errorf("requests that robots.txt denies (-want +found):\n%s", d)
			}
		})
	}
}
