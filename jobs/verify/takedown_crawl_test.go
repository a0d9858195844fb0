package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	removal "crawlbatch.io/crawlbatch/jobs/takedown"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

const takedownSecret = "0123456789abcdef0123456789abcdef"

// withKey sets the secret key of the list of takedowns, as a config file does with a reference to the
// environment.
func withKey(t *testing.T, c *config.Config, secret string) {
	t.Helper()
	t.Setenv("TAKEDOWN_KEY", secret)
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "takedown_key") {
		text = strings.Replace(text, "store:\n", "store:\n  takedown_key: ${TAKEDOWN_KEY}\n", 1)
	}
	with, err := config.Read("crawlbatch.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	*c = *with
}

// takeDown adds targets to the list of the store, as the command takedown does.
func (l *crawlLab) takeDown(t *testing.T, urls, domains []string) *takedown.Matcher {
	t.Helper()
	c, err := l.cfg.Plan.Canonicalizer()
	if err != nil {
		t.Fatal(err)
	}
	m, err := takedown.New(urls, domains, c)
	if err != nil {
		t.Fatal(err)
	}
	k, err := takedown.NewKey(takedownSecret)
	if err == nil {
		err = takedown.Append(t.Context(), l.bucket, k, m, manifest.Takedown{At: "2026-11-26T00:00:00Z", Reason: "asked"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// naming returns the objects that name a target: Parquet files by their columns of text, indexes and
// documents as they are. The bytes of responses are content.
func naming(t *testing.T, dir string, m *takedown.Matcher) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		key, _ := filepath.Rel(dir, path)
		switch {
		case strings.HasSuffix(path, ".warc.gz"):
		case bytes.HasPrefix(body, []byte("PAR1")):
			for _, column := range mentioning(t, body, m) {
				found = append(found, key+" "+column)
			}
		case m.Mentions(body):
			found = append(found, key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// mentioning returns the columns of a Parquet file that name a target, except those of content.
func mentioning(t *testing.T, body []byte, m *takedown.Matcher) (columns []string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	names := f.Schema().Columns()
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 64)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				for _, v := range row {
					name := strings.Join(names[v.Column()], ".")
					if v.Kind() == parquet.ByteArray && name != "body" && m.Mentions(v.ByteArray()) && !slices.Contains(columns, name) {
						columns = append(columns, name)
					}
				}
			}
			if err != nil {
				break
			}
		}
		rows.Close()
	}
	return columns
}

// A store has a list of takedowns. The crawl after it neither requests nor names what is on the list:
// neither because its sources list it, nor because links, redirects, a robots.txt or sitemaps lead there.
func TestNothingThatWasTakenDownIsRequestedOrNamed(t *testing.T) {
	sitemap := `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://gone.test/listed</loc></url>` +
		`<url><loc>http://a.test/%7Eu/gone</loc></url><url><loc>http://a.test/listed</loc></url></urlset>`
	web, addr := serveLinks(t, map[string]string{
		"a.test/":           "/open /~u/gone https://a.test/%7eu/gone http://sub.gone.test/link /chain /away http://elsewhere.test/ HTTP://GONE.test./x",
		"a.test/open":       "/~u/gone http://gone.test:8080/y /open2",
		"a.test/open2":      "",
		"a.test/chain":      "302 /chain2",
		"a.test/chain2":     "302 /~u/gone",
		"a.test/away":       "302 http://sub.gone.test/away",
		"a.test/robots.txt": "Sitemap: http://a.test/map.xml\nSitemap: http://gone.test/map.xml\n",
		"a.test/map.xml":    sitemap, "a.test/listed": "", "a.test/~u/gone": "",
		"elsewhere.test/robots.txt": "302 http://gone.test/robots.txt", "elsewhere.test/": "",
		"gone.test/robots.txt": "", "gone.test/": "", "gone.test/map.xml": sitemap, "sub.gone.test/link": "", "sub.gone.test/away": "",
	})
	l := newCrawlLab(t, addr, []string{"http://a.test/"}, func(c *config.Config) {
		c.Frontier.Follow = "any"
		withKey(t, c, takedownSecret)
	})
	m := l.takeDown(t, []string{"http://a.test/~u/gone"}, []string{"gone.test"})
	if err := l.driver.Run(t.Context(), testCrawl, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"a.test/", "a.test/away", "a.test/chain", "a.test/chain2", "a.test/listed", "a.test/map.xml", "a.test/open", "a.test/open2", "a.test/robots.txt", "elsewhere.test/robots.txt"}
	if diff := cmp.Diff(want, slices.Compact(web.requests())); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if found := naming(t, l.dir, m); len(found) > 0 {
		t.Errorf("these name what was taken down:\n%s", strings.Join(found, "\n"))
	}
	l.verify(t, true)
}

// The SURT keys of URLs and hosts that differ may be the same, and a home page has the URL of its host's origin.
func TestATakedownLeavesOthersWithTheSameKey(t *testing.T) {
	twins := []string{"a.test/page", "b.test/", "b.test/x", "www.a.test/", "www.a.test/Page"}
	gone := []string{"a.test/", "a.test/Page", "www.b.test/", "www.b.test/x"}
	all := slices.Sorted(slices.Values(slices.Concat(twins, gone)))
	pages, list := map[string]string{"a.test/robots.txt": "User-agent: *\nDisallow: /no\n", "www.b.test/robots.txt": "User-agent: *\nDisallow: /no\n"}, []string{}
	for _, p := range all {
		list = append(list, "http://"+p)
		pages[p] = "http://" + strings.Join(all, " http://")
	}
	_, addr := serveLinks(t, pages)
	l := newCrawlLab(t, addr, list, func(c *config.Config) { withKey(t, c, takedownSecret) })
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	found, err := removal.Apply(t.Context(), removal.Request{
		Bucket: l.bucket, URLs: []string{"http://a.test/", "http://a.test/Page"}, Domains: []string{"www.b.test"}, Reason: "asked",
		Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
	})
	if err != nil || found.Objects() == 0 {
		t.Fatalf("%+v: %v", found, err)
	}
	l.verify(t, true)
	months := &monthsLab{t: t, b: l.bucket}
	var fetched, captured, linked []string
	for _, f := range rowsOfMonth[schema.Fetch](months, testCrawl, stages.FileFetches) {
		fetched = append(fetched, strings.TrimPrefix(f.URL, "http://"))
	}
	for _, c := range rowsOfMonth[schema.Capture](months, testCrawl, stages.FileCaptures) {
		if c.MimeType == "text/html" {
			captured = append(captured, strings.TrimPrefix(c.URL, "http://"))
		}
	}
	for _, k := range rowsOfMonth[schema.Link](months, testCrawl, stages.FileLinks) {
		linked = append(linked, strings.TrimPrefix(k.Source, "http://")+" "+strings.TrimPrefix(k.Target, "http://"))
	}
	var links []string
	for _, from := range twins {
		for _, to := range twins {
			links = append(links, from+" "+to)
		}
	}
	for name, c := range map[string]struct{ want, got []string }{"fetches": {twins, fetched}, "captures": {twins, captured}, "links": {links, linked}} {
		slices.Sort(c.want)
		slices.Sort(c.got)
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s that stay (-want +got):\n%s", name, diff)
		}
	}
}

// A month is planned over the same list and continues a month that fetched what was taken down since.
func TestTheNextMonthDoesNotPlanWhatWasTakenDown(t *testing.T) {
	web, addr := serveLinks(t, map[string]string{"a.test/": "/x", "a.test/x": "", "a.test/~u/gone": "", "gone.test/": "", "www.gone.test/y": ""})
	urls := []string{"http://a.test/", "http://a.test/~u/gone", "http://gone.test/", "http://www.gone.test/y"}
	l := newCrawlLab(t, addr, urls, func(c *config.Config) {
		withKey(t, c, takedownSecret)
		c.Frontier.Recrawl.First, c.Frontier.Recrawl.Min = config.Duration(time.Minute), config.Duration(time.Minute)
	})
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	if asked := web.requests(); !slices.Contains(asked, "gone.test/") || !slices.Contains(asked, "a.test/~u/gone") {
		t.Fatalf("the first month requested %q", asked)
	}
	m := l.takeDown(t, []string{"https://a.test/%7Eu/gone"}, []string{"gone.test"})
	list := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(list, []byte(strings.Join(append(urls, "http://a.test/%7eu/gone", "http://GONE.test.:80/z"), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: l.bucket, Crawl: "2026-12", Sources: []source.Source{from}, Frontier: true, Config: l.cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.TakenDown < 5 || p.URLs < 1 || p.URLs > 2 {
		t.Errorf("the next month plans %d URLs and refuses %d", p.URLs, p.TakenDown)
	}
	if found := naming(t, filepath.Join(l.dir, "crawl=2026-12"), m); len(found) > 0 {
		t.Errorf("these name what was taken down:\n%s", strings.Join(found, "\n"))
	}
	if err := l.driver.Run(t.Context(), "2026-12", 1); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.test/"}, slices.DeleteFunc(web.requests(), func(u string) bool { return u == "a.test/x" })); diff != "" {
		t.Errorf("requests of the next month (-want +got):\n%s", diff)
	}
}

// planNext plans the next month from a list and the frontier.
func (l *crawlLab) planNext(t *testing.T, month string, urls []string) (*manifest.Plan, error) {
	t.Helper()
	return l.planNextFrom(t, month, filepath.Join(t.TempDir(), "urls.txt"), urls)
}

// planNextFrom is planNext with the name of the list.
func (l *crawlLab) planNextFrom(t *testing.T, month, list string, urls []string) (*manifest.Plan, error) {
	t.Helper()
	if err := os.WriteFile(list, []byte(strings.Join(urls, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: l.bucket, Crawl: month, Sources: []source.Source{from}, Frontier: true, Config: l.cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	})
	return p, err
}

// The crawl's rules give a URL other forms. Whatever form a list, a link, a redirect or a later month without these
// rules names, it is refused.
func TestNoFormOfAURLThatWasTakenDownComesBack(t *testing.T) {
	found := "/dir/index.html /dir/ /doc/ /print/doc /page;jsessionid=7 /page/?PHPSESSID=1 http://www.a.test/dir/index.php /away /kept /ask?b=2&a=1 /%61sk?a=1&&b=2"
	web, addr := serveLinks(t, map[string]string{
		"a.test/": "/dir/index.html", "a.test/home": found, "a.test/away": "302 /print/doc/", "a.test/kept": "",
		"a.test/dir": "", "a.test/dir/": "", "a.test/dir/index.html": "", "a.test/doc": "", "a.test/print/doc": "", "a.test/page": "", "www.a.test/dir/index.html": "", "a.test/ask": "",
	})
	rules := config.Canonical{Sessions: true, WWW: true, IndexFiles: true, TrailingSlash: true}
	l := newCrawlLab(t, addr, []string{"http://a.test/"}, func(c *config.Config) {
		withKey(t, c, takedownSecret)
		c.Frontier.Recrawl.First, c.Frontier.Recrawl.Min = config.Duration(time.Minute), config.Duration(time.Minute)
		c.Plan.Canonical = rules
		c.Plan.Rewrite = []config.Rewrite{{Name: "print", Match: "/print/", Replace: "/"}}
	})
	if err := l.driver.Run(t.Context(), testCrawl, 2); err != nil {
		t.Fatal(err)
	}
	if asked := web.requests(); !slices.Contains(asked, "a.test/dir") {
		t.Fatalf("the first month requested %q", asked)
	}
	l.takeDown(t, []string{"http://WWW.a.test/dir/index.html", "http://a.test/print/doc", "https://a.test/page;jsessionid=5", "http://a.test/ask?a=1&b=2&"}, nil)
	urls := []string{
		"http://a.test/home", "http://a.test/dir", "http://a.test/dir/", "http://A.test:80/x/../dir/index.php", "http://www.a.test/dir/index.html", "https://a.test/dir",
		"http://a.test/doc", "http://a.test/print/doc", "http://a.test/print/doc/", "http://a.test/p%61ge", "http://www.a.test/page;jsessionid=9", "http://a.test/page?PHPSESSID=3",
		"http://a.test/ask?a=1&b=2", "http://a.test/ask?b=2&a=1", "http://a.test/x/../%61sk?a=1&b=2#f",
	}
	p, err := l.planNext(t, "2026-12", urls)
	if err != nil {
		t.Fatal(err)
	}
	if p.TakenDown < int64(len(urls))-1 {
		t.Errorf("of %d forms, the plan refuses %d", len(urls)-1, p.TakenDown)
	}
	if err := l.driver.Run(t.Context(), "2026-12", 3); err != nil {
		t.Fatal(err)
	}
	for _, asked := range web.requests() {
		if strings.Contains(asked, "dir") || strings.Contains(asked, "doc") || strings.Contains(asked, "page") || strings.Contains(asked, "sk?") {
			t.Errorf("%s was requested", asked)
		}
	}

	// Without the rules, each form is a URL of its own.
	l.cfg.Plan.Canonical, l.cfg.Plan.Rewrite = config.Canonical{}, nil
	if _, err = l.planNext(t, "2027-01", []string{"http://a.test/other", "http://a.test/dir", "http://www.a.test/dir/index.html", "http://a.test/doc", "http://a.test/print/doc", "http://a.test/page;jsessionid=5", "http://a.test/page"}); err != nil {
		t.Fatal(err)
	}
	if err := l.driver.Run(t.Context(), "2027-01", 1); err != nil {
		t.Fatal(err)
	}
	for _, asked := range web.requests() {
		if strings.Contains(asked, "dir") || strings.Contains(asked, "doc") || strings.Contains(asked, "page") {
			t.Errorf("without the rules, %s was requested", asked)
		}
	}
}

// A reparse reads pages that link to what was taken down since.
func TestAReparseNamesNothingThatWasTakenDown(t *testing.T) {
	_, addr := serveLinks(t, map[string]string{"a.test/": "/x /~u/gone http://www.gone.test/y", "a.test/x": "http://gone.test/z"})
	l := newCrawlLab(t, addr, []string{"http://a.test/", "http://a.test/x"}, func(c *config.Config) {
		c.Frontier.Follow = "none"
		withKey(t, c, takedownSecret)
	})
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	m := l.takeDown(t, []string{"http://a.test/~u/gone"}, []string{"gone.test"})
	if len(naming(t, filepath.Join(l.dir, "crawl="+testCrawl), m)) == 0 {
		t.Fatal("the crawl does not name what is taken down")
	}
	as := testCrawl + "r1"
	l.reparse(t, as)
	withKey(t, l.cfg, "")
	if err := l.driver.Run(t.Context(), as, 1); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "store.takedown_key") {
		t.Errorf("without the key, the reparse says %v", err)
	}
	withKey(t, l.cfg, takedownSecret)
	if err := l.driver.Run(t.Context(), as, 1); err != nil {
		t.Fatal(err)
	}
	if found := naming(t, filepath.Join(l.dir, "crawl="+as), m); len(found) > 0 {
		t.Errorf("these name what was taken down:\n%s", strings.Join(found, "\n"))
	}
}

// Without the right key, no round is planned and no task sends a request.
func TestNothingIsRequestedWithoutTheKeyOfTheTakedowns(t *testing.T) {
	web, addr := serveLinks(t, map[string]string{"a.test/": "/x", "a.test/x": ""})
	l := newCrawlLab(t, addr, []string{"http://a.test/"}, func(c *config.Config) { withKey(t, c, takedownSecret) })
	l.takeDown(t, nil, []string{"gone.test"})
	for _, wrong := range []string{"", "short", strings.Repeat("x", 40)} {
		withKey(t, l.cfg, wrong)
		err := l.driver.Run(t.Context(), testCrawl, 1)
		if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "store.takedown_key") && !strings.Contains(err.Error(), "bytes") || wrong != "" && strings.Contains(err.Error(), wrong) {
			t.Errorf("with the key %q, run says %v", wrong, err)
		}
	}
	if asked := web.requests(); len(asked) > 0 {
		t.Errorf("requests %q", asked)
	}
	withKey(t, l.cfg, takedownSecret)
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	withKey(t, l.cfg, "")
	if err := l.driver.Run(t.Context(), testCrawl, 2); !errors.Is(err, takedown.ErrKey) || !errors.Is(err, config.ErrInvalid) {
		t.Errorf("the second round is planned without the key: %v", err)
	}
	if _, _, err := roundstate.FindPlan(t.Context(), l.bucket, testCrawl, 1); !errors.Is(err, roundstate.ErrNoPlan) {
		t.Errorf("the second round has a plan: %v", err)
	}
	for _, text := range []string{takedownSecret, strings.Repeat("x", 40)} {
		if found := having(t, l.dir, text); len(found) > 0 {
			t.Errorf("these hold the key %q: %q", text, found)
		}
	}
	if len(having(t, l.dir, "${TAKEDOWN_KEY}")) == 0 {
		t.Error("no stored config names the variable, so the store was not searched")
	}
}

// having returns the objects that contain a text.
func having(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if bytes.Contains(body, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Without the list of takedowns, what was taken down would be planned and requested again. Ledgers, and plans
// that refused names, say that it existed.
func TestALostListOfTakedownsIsNoticed(t *testing.T) {
	for name, domain := range map[string]string{
		"a takedown that changed something": "gone.test", "a takedown of an unknown name": "unknown.test", "a takedown of a name that nobody plans": "absent.test",
	} {
		t.Run(name, func(t *testing.T) {
			web, addr := serveLinks(t, map[string]string{"a.test/": "/x http://gone.test/", "a.test/x": "", "gone.test/": "", "unknown.test/": ""})
			l := newCrawlLab(t, addr, []string{"http://a.test/", "http://gone.test/"}, func(c *config.Config) { withKey(t, c, takedownSecret) })
			if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
				t.Fatal(err)
			}
			apply := func() error {
				_, err := removal.Apply(t.Context(), removal.Request{
					Bucket: l.bucket, Domains: []string{domain}, Reason: "asked", Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
				})
				return err
			}
			if err := apply(); err != nil {
				t.Fatal(err)
			}
			list := []string{"http://a.test/", "http://a.test/y", "http://unknown.test/", "http://gone.test/"}
			if _, err := l.planNext(t, "2026-12", list); err != nil {
				t.Fatal(err)
			}
			web.requests() // those of the first month
			if err := l.bucket.Delete(t.Context(), layout.Takedowns()); err != nil {
				t.Fatal(err)
			}
			told := func(what, says string, err error) {
				t.Helper()
				if !errors.Is(err, ledger.ErrLost) || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), layout.Takedowns()) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "crawlbatch takedown --list FILE --apply") {
					t.Errorf("%s says %v", what, err)
				}
			}
			noted := "the ledger of " + testCrawl + " says"
			told("run", map[bool]string{true: noted, false: "the plan of round 0 of 2026-12 refused names that it lists"}[domain == "absent.test"], l.driver.Run(t.Context(), "2026-12", 1))
			_, err := l.planNext(t, "2027-01", list)
			told("plan", map[bool]string{true: "a takedown changed " + testCrawl, false: noted}[domain == "gone.test"], err)
			if asked := web.requests(); len(asked) > 0 {
				t.Errorf("requested %q", asked)
			}
			said := 0
			for _, crawl := range []string{testCrawl, "2026-12"} {
				r, err := Run(t.Context(), Options{Bucket: l.bucket, Crawl: crawl, Round: -1, Config: l.cfg, Scratch: t.TempDir(), Sample: 1})
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range r.Violations {
					if strings.Contains(v.Problem, layout.Takedowns()) {
						said++
					} else if crawl == testCrawl {
						t.Errorf("verify of %s says %+v", crawl, v)
					}
				}
			}
			if said != 2 {
				t.Errorf("verify says it for %d crawls of 2", said)
			}

			// The advice works, although the round of the next month is unfinished.
			if err := apply(); !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "has these names again") {
				t.Fatal(err)
			}
			if err := l.driver.Run(t.Context(), "2026-12", 1); err != nil {
				t.Fatal(err)
			}
			if err := apply(); err != nil {
				t.Error(err)
			}
			l.verify(t, false)
			if asked := web.requests(); !slices.Contains(asked, "a.test/y") || slices.Contains(asked, domain+"/") {
				t.Errorf("requested %q", asked)
			}
		})
	}
}

// An older version wrote the list, or it is older than the first crawl, so no ledger speaks of it.
func TestPlansAndRebuiltLedgersNoteTheListOfTakedowns(t *testing.T) {
	for name, note := range map[string]func(l *crawlLab) error{
		"a plan": func(l *crawlLab) error {
			_, err := l.planNext(t, "2026-12", []string{"http://a.test/"})
			return err
		},
		"a rebuilt ledger": func(l *crawlLab) error {
			if err := l.bucket.Delete(t.Context(), layout.Ledger(testCrawl)); err != nil {
				return err
			}
			_, err := ledgertest.Writer().Rebuild(t.Context(), l.bucket, testCrawl, []string{testCrawl}, ledgertest.NoCopy)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newCrawlLab(t, "127.0.0.1:1", []string{"http://a.test/"}, func(c *config.Config) { withKey(t, c, takedownSecret) })
			l.takeDown(t, nil, []string{"absent.test"})
			if err := errors.Join(note(l), l.bucket.Delete(t.Context(), layout.Takedowns())); err != nil {
				t.Fatal(err)
			}
			if _, err := l.planNext(t, "2027-01", []string{"http://absent.test/"}); !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), layout.Takedowns()) {
				t.Errorf("plan says %v", err)
			}
		})
	}
}

// A WARC file of two is lost. The rest is taken down, and verify reports the loss as before. When the file is
// restored from a copy, the same takedown removes what it holds.
func TestALostWARCFileKeepsNothingElseFromBeingTakenDown(t *testing.T) {
	_, addr := serveLinks(t, map[string]string{"a.test/": "/x http://gone.test/", "a.test/x": "", "gone.test/": "http://gone.test/y", "gone.test/y": ""})
	l := newCrawlLab(t, addr, []string{"http://a.test/", "http://gone.test/"}, func(c *config.Config) {
		c.Frontier.Follow = "any"
		withKey(t, c, takedownSecret)
	})
	if err := l.driver.Run(t.Context(), testCrawl, 2); err != nil {
		t.Fatal(err)
	}
	// A round that stored a response of the domain.
	var lost string
	for o, err := range l.bucket.List(t.Context(), "warc/") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := l.bucket.Get(t.Context(), o.Key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(o.Key, ".cdxj") && bytes.Contains(body, []byte("gone")) && strings.Contains(o.Key, "round=0") {
			lost = strings.TrimSuffix(o.Key, ".cdxj") + ".warc.gz"
		}
	}
	held, _, err := l.bucket.Get(t.Context(), lost, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.bucket.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	apply := func() (f *removal.Found, tombstones int64) {
		t.Helper()
		f, err := removal.Apply(t.Context(), removal.Request{
			Bucket: l.bucket, Domains: []string{"gone.test"}, Reason: "asked", Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range f.Kinds {
			tombstones += k.Tombstones
		}
		return f, tombstones
	}
	m, err := takedown.New(nil, []string{"gone.test"})
	if err != nil {
		t.Fatal(err)
	}
	f, tombstones := apply()
	if diff := cmp.Diff([]string{lost}, f.Missing); diff != "" || tombstones == 0 {
		t.Errorf("%d tombstones, missing (-want +got):\n%s", tombstones, diff)
	}
	if found := naming(t, l.dir, m); len(found) > 0 {
		t.Errorf("these name what was taken down:\n%s", strings.Join(found, "\n"))
	}
	violations := l.report(t, false).Violations
	for _, v := range violations {
		if !strings.Contains(v.Object+v.Problem, lost) {
			t.Errorf("%+v", v)
		}
	}
	if len(violations) == 0 {
		t.Error("verify does not report the lost file")
	}
	if _, err := store.CreateBytes(t.Context(), l.bucket, lost, held); err != nil {
		t.Fatal(err)
	}
	if f, tombstones = apply(); len(f.Missing) > 0 || tombstones == 0 {
		t.Errorf("after the file was restored: %d tombstones, missing %q", tombstones, f.Missing)
	}
	l.verify(t, false)
}

// The name of a source may name what is taken down, such as a sitemap of its host.
func TestAPlanDoesNotNameTheSourceOfATarget(t *testing.T) {
	const month = "2026-12"
	_, addr := serveLinks(t, map[string]string{"a.test/": "", "gone.test/": ""})
	l := newCrawlLab(t, addr, []string{"http://a.test/"}, func(c *config.Config) { withKey(t, c, takedownSecret) })
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "gone.test", "urls.txt")
	if err := os.Mkdir(filepath.Dir(list), 0o777); err != nil {
		t.Fatal(err)
	}
	if p, err := l.planNextFrom(t, month, list, []string{"http://gone.test/", "http://b.test/"}); err != nil || !slices.ContainsFunc(p.Sources, func(s string) bool { return strings.Contains(s, "gone.test") }) {
		t.Fatalf("%+v: %v", p, err)
	}
	if err := l.driver.Run(t.Context(), month, 1); err != nil {
		t.Fatal(err)
	}
	f, err := removal.Apply(t.Context(), removal.Request{
		Bucket: l.bucket, Domains: []string{"gone.test"}, Reason: "asked", Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
	})
	if err != nil || len(f.Named) > 0 {
		t.Fatalf("named %q: %v", f.Named, err)
	}
	m, err := takedown.New(nil, []string{"gone.test"})
	if err != nil {
		t.Fatal(err)
	}
	if found := naming(t, l.dir, m); len(found) > 0 {
		t.Errorf("these name what was taken down:\n%s", strings.Join(found, "\n"))
	}
	l.verify(t, true)
}

// The robots.txt files of three hosts redirect to a domain that is taken down: one to a file there, one through it to
// another host, and one to a file that is missing there. What the takedown removed cannot be checked, which is no
// violation. The next round does not use rules whose record is gone.
func TestARobotsFileThatRedirectsToWhatWasTakenDown(t *testing.T) {
	pages := map[string]string{
		"file.test/robots.txt": "302 http://gone.test/robots.txt", "through.test/robots.txt": "302 http://gone.test/hop", "none.test/robots.txt": "302 http://gone.test/none",
		"gone.test/robots.txt": "User-agent: *\nDisallow: /denied\n", "gone.test/hop": "302 http://rules.test/robots.txt", "rules.test/robots.txt": "User-agent: *\nDisallow: /denied\n",
		"rules.test/": "",
	}
	var urls []string
	for _, host := range []string{"file.test", "through.test", "none.test"} {
		pages[host+"/"], pages[host+"/x"], pages[host+"/y"] = "/x /denied", "/y", ""
		urls = append(urls, "http://"+host+"/")
	}
	web, addr := serveLinks(t, pages)
	l := newCrawlLab(t, addr, append(urls, "http://rules.test/"), func(c *config.Config) { withKey(t, c, takedownSecret) })
	if err := l.driver.Run(t.Context(), testCrawl, 2); err != nil {
		t.Fatal(err)
	}
	l.verify(t, true)
	web.requests()
	if _, err := removal.Apply(t.Context(), removal.Request{
		Bucket: l.bucket, Domains: []string{"gone.test"}, Reason: "asked", Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
	}); err != nil {
		t.Fatal(err)
	}
	// notes audits the crawl, and returns the number of rows that each check left out in a round.
	left := regexp.MustCompile(`round (\d), (.*): not checked, because .* takedown removed: (\d+), such as`)
	notes := func(crawl string) (out []string) {
		t.Helper()
		r, err := Run(t.Context(), Options{Bucket: l.bucket, Crawl: crawl, Round: -1, Config: l.cfg, Scratch: t.TempDir(), Sample: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.Violations {
			t.Errorf("%+v", v)
		}
		for _, n := range r.Notes {
			if m := left.FindStringSubmatch(n); m != nil {
				out = append(out, strings.Join(m[1:], " "))
			}
		}
		return out
	}
	// 3 home pages in round 0, /x and /denied in round 1, where only none.test allows the latter.
	want := []string{"0 robots.txt is obeyed 3", "0 robots.txt verdicts 3", "1 robots.txt is obeyed 4", "1 robots.txt verdicts 6"}
	if diff := cmp.Diff(want, notes(testCrawl)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for round := range 2 {
		for _, q := range tabletest.Read[schema.Request](t, l.bucket, layout.Table(stages.FileRequests, testCrawl, round, 0)) {
			if q.Purpose == schema.ForPage && (q.RobotsFile == "") != (q.Host == "file.test" || q.Host == "none.test") {
				t.Errorf("round %d: the evidence for %s is at %d of %q", round, q.URL, q.RobotsOffset, q.RobotsFile)
			}
		}
	}
	if err := l.driver.Run(t.Context(), testCrawl, 3); err != nil {
		t.Fatal(err)
	}
	asked := []string{"file.test/robots.txt", "none.test/robots.txt", "through.test/y"}
	if diff := cmp.Diff(asked, web.requests()); diff != "" {
		t.Errorf("requests of the next round (-want +got):\n%s", diff)
	}
	want = append(want, "2 robots.txt is obeyed 1", "2 robots.txt verdicts 1")
	if diff := cmp.Diff(want, notes(testCrawl)); diff != "" {
		t.Errorf("notes with the next round (-want +got):\n%s", diff)
	}

	// A reparse has the requests of the crawl, but its own ledger names no takedown.
	as := testCrawl + "r1"
	l.reparse(t, as)
	if err := l.driver.Run(t.Context(), as, 3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, notes(as)); diff != "" {
		t.Errorf("notes of a reparse (-want +got):\n%s", diff)
	}
}

// A reparse of a crawl from which a takedown removed a URL that redirected to a page, the page to which another
// redirects, and a sitemap.
func TestACrawlIsParsedAgainAfterATakedown(t *testing.T) {
	_, addr := serveLinks(t, map[string]string{
		"a.test/robots.txt": "Sitemap: http://a.test/gone.xml\n", "a.test/gone.xml": "http://a.test/listed",
		"a.test/": "/old /away /new", "a.test/old": "302 /new", "a.test/new": "/", "a.test/away": "302 http://gone.test/", "gone.test/": "http://a.test/", "a.test/listed": "/",
	})
	l := newCrawlLab(t, addr, []string{"http://a.test/", "http://a.test/old", "http://a.test/away"}, func(c *config.Config) {
		c.Frontier.Follow = "any"
		c.Fetch.Sitemaps = "robots"
		withKey(t, c, takedownSecret)
	})
	if err := l.driver.Run(t.Context(), testCrawl, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := removal.Apply(t.Context(), removal.Request{
		Bucket: l.bucket, URLs: []string{"http://a.test/old", "http://a.test/gone.xml"}, Domains: []string{"gone.test"}, Reason: "asked", Secret: takedownSecret, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(),
	}); err != nil {
		t.Fatal(err)
	}
	l.verify(t, true)
	as := testCrawl + "r1"
	l.reparse(t, as)
	if err := l.driver.Run(t.Context(), as, 2); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Bucket: l.bucket, Crawl: as, Round: -1, Config: l.cfg, Scratch: t.TempDir(), Sample: 1, Now: time.Now(), Version: "test"})
	if err != nil || r.Found() != 0 {
		t.Fatalf("%v: %+v", err, r.Violations)
	}
}

// atCall is a bucket that calls meanwhile, once, at a call for which at returns true. The call may come from any
// goroutine. The names of calls are get, open, create (before it), and created (after it).
type atCall struct {
	store.Bucket
	at        func(call, key string) bool
	meanwhile func()
	once      sync.Once
}

func (b *atCall) note(call, key string) {
	if b.at(call, key) {
		b.once.Do(b.meanwhile)
	}
}

func (b *atCall) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	b.note("get", key)
	return b.Bucket.Get(ctx, key, limit)
}

func (b *atCall) Open(ctx context.Context, key string) (store.Object, error) {
	b.note("open", key)
	return b.Bucket.Open(ctx, key)
}

func (b *atCall) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	b.note("create", key)
	v, err := b.Bucket.Create(ctx, key, body, size)
	b.note("created", key)
	return v, err
}

// A takedown begins and ends while a reparse reads its source or copies the plan, of which it deletes or replaces a file.
// The reparse is refused, can be given again, and keeps no later takedown from its end.
func TestAReparseSeesATakedownThatRanWhileItCopiedThePlan(t *testing.T) {
	inRound := func(key string) bool { return strings.HasPrefix(key, layout.RoundDir(testCrawl, 0)) }
	moments := []struct {
		name string
		at   func(call, key string) bool
	}{
		{"before it reads the seal", func(call, key string) bool { return call == "get" && key == layout.Sealed(testCrawl, 0) }},
		{"before it reads the plan", func(call, key string) bool {
			return call == "get" && inRound(key) && strings.HasSuffix(key, "/plan.json")
		}},
		{"before it opens a file", func(call, key string) bool { return call == "open" && inRound(key) && strings.Contains(key, "/plan-") }},
		{"before it stores a file", func(call, key string) bool { return call == "create" && strings.HasSuffix(key, "/part-00000.parquet") }},
		{"after it stored a file", func(call, key string) bool { return call == "created" && strings.HasSuffix(key, "/refused.parquet") }},
	}
	pages, urls := map[string]string{"a.test/": "http://b.test/", "b.test/": "http://a.test/"}, []string{"http://a.test/", "http://b.test/"}
	for n := range moments {
		pages[fmt.Sprintf("gone%d.test/", n)] = "http://a.test/"
		urls = append(urls, fmt.Sprintf("http://gone%d.test/", n))
	}
	_, addr := serveLinks(t, pages)
	l := newCrawlLab(t, addr, urls, func(c *config.Config) { withKey(t, c, takedownSecret) })
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	for n, moment := range moments {
		as, took := fmt.Sprintf("%sr%d", testCrawl, n+1), false
		r := jobs.ReparseRequest{As: as, Of: testCrawl, Config: l.cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv}
		r.Bucket = &atCall{Bucket: l.bucket, at: moment.at, meanwhile: func() {
			took = true
			removeDomain(t, l.bucket, fmt.Sprintf("gone%d.test", n))
		}}
		if _, err := jobs.Reparse(t.Context(), r); !errors.Is(err, jobs.ErrBusy) || !took {
			t.Errorf("%s: the reparse: %v", moment.name, err)
		}
		_, err := jobs.Reparse(t.Context(), r)
		if err == nil {
			err = l.driver.Run(t.Context(), as, 1)
		}
		if err != nil {
			t.Fatalf("%s: the reparse after the takedown: %v", moment.name, err)
		}
	}
	removeDomain(t, l.bucket, "b.test")
	l.verify(t, true)
}
