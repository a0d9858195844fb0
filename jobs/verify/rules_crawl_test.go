package verify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/inspect"
	"crawlbatch.io/crawlbatch/jobs/lookup"
	"crawlbatch.io/crawlbatch/stages"
)

// linkWeb is a server of many hosts. A page is given as a list of its links, or as "302 TARGET" for a
// redirect, or as HTML that begins with <p>. /robots.txt is given as the text of the file.
type linkWeb struct {
	mu    sync.Mutex
	pages map[string]string // by host and path
	asked []string          // host and request target of each request, except requests for a missing robots.txt
}

func serveLinks(t *testing.T, pages map[string]string) (*linkWeb, string) {
	t.Helper()
	l := &linkWeb{pages: pages}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	return l, s.Listener.Addr().String()
}

func (l *linkWeb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	page, there := l.pages[r.Host+r.URL.Path]
	if there || r.URL.Path != "/robots.txt" {
		l.asked = append(l.asked, r.Host+r.RequestURI)
	}
	l.mu.Unlock()
	to, moved := strings.CutPrefix(page, "302 ")
	switch {
	case moved:
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	case !there:
		w.WriteHeader(http.StatusNotFound)
	case strings.HasPrefix(page, "<?xml"):
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, page)
	case r.URL.Path == "/robots.txt":
		io.WriteString(w, page)
	case strings.HasPrefix(page, "<p>"):
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, page)
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<p>the page %s%s\n", r.Host, r.URL.Path)
		for link := range strings.FieldsSeq(page) {
			fmt.Fprintf(w, "<a href=%q>link</a>\n", strings.ReplaceAll(link, "&", "&amp;"))
		}
	}
}

// requests returns the sorted requests since the last call.
func (l *linkWeb) requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked = nil
	slices.Sort(asked)
	return asked
}

func (l *crawlLab) skips(t *testing.T, rounds int) (skips []string) {
	t.Helper()
	for round := range rounds {
		for _, s := range tabletest.Read[schema.Skip](t, l.bucket, layout.Table(stages.FileSkips, testCrawl, round, 0)) {
			skips = append(skips, fmt.Sprint(round, " ", s.URL, " ", s.Reason, " ", s.Detail))
		}
	}
	return skips
}

// A crawl with every rule requests each URL once in its canonical form, of which it asks robots.txt, and follows redirects
// as the server says, even back to a form that the rules drop.
func TestACrawlWithRulesForURLs(t *testing.T) {
	web, addr := serveLinks(t, map[string]string{
		"a.test/":               "/dir/index.html /dir/ /dir /page;jsessionid=1 /page;jsessionid=2?PHPSESSID=3 http://www.a.test/only http://a.test/only/ /print/doc /doc /closed/index.html /shut/index.html /calendar/1 /calendar/today /grow /away",
		"a.test/robots.txt":     "User-agent: *\nDisallow: /closed/index.html\nDisallow: /shut\n",
		"www.a.test/robots.txt": "",
		"a.test/dir":            "302 /dir/",
		"a.test/dir/":           "./ sub/ ../page",
		"a.test/dir/sub":        "", "a.test/page": "302 /page;jsessionid=9", "a.test/page;jsessionid=9": "/dir/sub;jsessionid=4",
		"a.test/only": "", "a.test/doc": "", "a.test/calendar/today": "", "a.test/away": "302 http://www.b.test/new/",
		"b.test/new": "302 /new/", "b.test/new/": "/new/",
	})
	l := newCrawlLab(t, addr, []string{"http://www.a.test/index.php"}, func(c *config.Config) {
		c.Frontier.Follow = "any"
		c.Plan.Canonical = config.Canonical{Sessions: true, WWW: true, IndexFiles: true, TrailingSlash: true}
		c.Plan.Rewrite = []config.Rewrite{{Name: "print", Match: "/print/", Replace: "/"}, {Name: "grows", Match: "grow", Replace: "growgrow"}}
		c.Plan.Filter = []config.Filter{{Match: "/today$", Accept: true}, {Name: "calendar", Match: "/calendar/"}}
	})
	if err := l.driver.Run(t.Context(), testCrawl, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"a.test/", "a.test/away", "a.test/calendar/today", "a.test/closed", "a.test/dir", "a.test/dir/", "a.test/dir/sub", "a.test/doc",
		"a.test/only", "a.test/page", "a.test/page;jsessionid=9", "a.test/robots.txt", "b.test/new", "b.test/new/"}
	if diff := cmp.Diff(want, web.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0 http://a.test/calendar/1 filtered calendar"}, l.skips(t, 1)); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	l.verify(t, true)
	known, err := lookup.Open(t.Context(), l.bucket, testCrawl, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	u, err := inspect.NewURL(l.cfg, nil, known)
	if err != nil {
		t.Fatal(err)
	}
	a, err := u.Answer(t.Context(), inspect.URLQuestion{URL: "http://a.test/dir/"})
	if err != nil || a.Known.State.State != schema.StateRedirected || a.Plain != "http://a.test/dir/" || a.KnownPlain.State.State != schema.StateFetched {
		t.Errorf("inspect url: %+v, %v", a, err)
	}
}

// A source or a link names a URL only in a form that rules change, so the canonical URL is sent. It does not matter that
// robots.txt denies the form. A redirect leads to what the server says, to which rules do not apply.
func TestAFormThatRulesChangeIsNotSent(t *testing.T) {
	for name, list := range map[string][]string{
		"a source names it":       {"http://a.test/dir/?b=2&a=1", "http://a.test/go"},
		"a page of its host does": {"http://a.test/"},
	} {
		t.Run(name, func(t *testing.T) {
			web, addr := serveLinks(t, map[string]string{
				"a.test/": "/dir/?b=2&a=1 /go", "a.test/go": "302 /dir/?a=1&&b=2", "a.test/dir/": "", "a.test/dir": "",
				"a.test/robots.txt": "User-agent: *\nDisallow: /dir/?b\n",
			})
			l := newCrawlLab(t, addr, list, func(c *config.Config) { c.Plan.Canonical.TrailingSlash = true })
			if err := l.driver.Run(t.Context(), testCrawl, 0); err != nil {
				t.Fatal(err)
			}
			if asked := web.pagesAsked(); !slices.Contains(asked, "http://a.test/go") || !slices.Contains(asked, "http://a.test/dir?a=1&b=2") || !slices.Contains(asked, "http://a.test/dir/?a=1&&b=2") || slices.Contains(asked, "http://a.test/dir/?b=2&a=1") {
				t.Errorf("requested %q", asked)
			}
			l.verify(t, true)
		})
	}
}

// If a later month turns on a switch of plan.canonical, a listed URL that the switch changes gets the
// history of its new form. The old form stays in urls, and is not planned any more, even from the
// frontier.
func TestASwitchThatALaterMonthTurnsOn(t *testing.T) {
	for _, frontier := range []bool{false, true} {
		web, addr := serveLinks(t, map[string]string{"a.test/x": "", "www.a.test/y": "", "a.test/y": ""})
		cfg := testConfig(addr)
		m := &monthsLab{t: t, b: directory(t), cfg: cfg, dir: t.TempDir()}
		list := []string{"http://a.test/x", "http://www.a.test/y"}
		m.crawl(firstMonth, stages.SystemClock{}, 0, list, nil)
		if diff := cmp.Diff(list, web.pagesAsked()); diff != "" {
			t.Errorf("requests of the first month (-want +got):\n%s", diff)
		}
		m.cfg.Plan.Canonical.WWW = true
		m.crawl(secondMonth, monthAhead{}, 1, list, func(r *jobs.PlanRequest) { r.Frontier = frontier })
		if diff := cmp.Diff([]string{"http://a.test/x", "http://a.test/y"}, web.pagesAsked()); diff != "" {
			t.Errorf("frontier %v: requests of the second month (-want +got):\n%s", frontier, diff)
		}
		seen := map[string]string{}
		for _, r := range rowsOfMonth[schema.URLRecord](m, secondMonth, stages.FileURLs) {
			seen[r.URL] = fmt.Sprint(r.FirstSeen, " ", r.Fetches)
		}
		if diff := cmp.Diff(map[string]string{"http://a.test/x": firstMonth + ".0 2", "http://a.test/y": secondMonth + ".0 1"}, seen); diff != "" {
			t.Errorf("frontier %v: rows of the second month (-want +got):\n%s", frontier, diff)
		}
	}
}

// In the first month after a switch is turned on, the old form of a URL makes the new form due. In later
// months it does not.
func TestAnOldFormMakesItsURLDueOnce(t *testing.T) {
	web, addr := serveLinks(t, map[string]string{
		"a.test/x": "", "www.a.test/gone": "", "www.a.test/y": "", "a.test/y": "", "www.a.test/dir/": "", "a.test/dir": "",
		"a.test/robots.txt": "User-agent: *\nDisallow: /denied\n", "www.a.test/denied": "",
	})
	m := &monthsLab{t: t, b: directory(t), cfg: testConfig(addr), dir: t.TempDir()}
	list := []string{"http://a.test/x"}
	m.crawl(firstMonth, stages.SystemClock{}, 0, append(list, "http://www.a.test/gone", "http://www.a.test/y", "http://www.a.test/dir/", "http://www.a.test/denied"), nil)
	web.requests()
	m.cfg.Plan.Canonical.WWW, m.cfg.Plan.Canonical.TrailingSlash = true, true
	frontier := func(r *jobs.PlanRequest) { r.Frontier = true }
	for _, month := range []struct {
		name string
		want []string
	}{
		{secondMonth, []string{"http://a.test/dir", "http://a.test/gone", "http://a.test/x", "http://a.test/y"}},
		{thirdMonth, []string{"http://a.test/dir", "http://a.test/x", "http://a.test/y"}}, // due again, because each was fetched one time
		{"2027-02", []string{"http://a.test/x"}},                                          // from the list
	} {
		m.crawl(month.name, monthAhead{}, 1, list, frontier)
		if diff := cmp.Diff(month.want, web.pagesAsked()); diff != "" {
			t.Errorf("requests of %s (-want +got):\n%s", month.name, diff)
		}
	}
}

// pagesAsked returns the sorted URLs of pages that were requested since the last call.
func (l *linkWeb) pagesAsked() (urls []string) {
	for _, r := range l.requests() {
		if !strings.HasSuffix(r, "/robots.txt") {
			urls = append(urls, "http://"+r)
		}
	}
	return urls
}
