package websource

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/secret"
	"crawlbatch.io/crawlbatch/stages"
)

// site is a web server on loopback for all hosts, and the config with which a plan reads it.
type site struct {
	t       *testing.T
	pages   map[string]string // body of each host and path
	codes   map[string]int    // status, if not 200
	asked   []string
	queries []string // of the requests
	cfg     *config.Config
	told    []string
	opted   string // URL on the opt-out list
	logged  bytes.Buffer
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, pages: map[string]string{}, codes: map[string]int{}, cfg: config.Default()}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.Host + r.URL.Path
		s.asked, s.queries = append(s.asked, at), append(s.queries, r.URL.RawQuery)
		body, ok := s.pages[at]
		if to, moved := strings.CutPrefix(body, "location:"); moved {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if code := s.codes[at]; code != 0 {
			w.WriteHeader(code)
		} else if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(web.Close)
	s.cfg.UserAgent = "examplebot/1.0 (+https://example.org/bot)"
	s.cfg.Politeness.Delay = config.Duration(time.Millisecond)
	s.cfg.Fetch.Pauses.ServerError = config.Duration(time.Millisecond)
	s.cfg.Fetch.Pauses.RateLimited = config.Duration(time.Millisecond)
	s.cfg.Fetch.ConnectTo = []string{"::" + strings.TrimPrefix(web.URL, "http://")}
	return s
}

// readAll returns the entries of a source: "URL priority", or "URL: reason" for a refused entry.
func (s *site) readAll(ctx context.Context, name string) (all []string, err error) {
	s.t.Helper()
	src, err := source.Open(ctx, name, source.Options{Schemes: Openers()})
	if err != nil {
		return nil, err
	}
	done, err := Prepare([]source.Source{src}, Options{
		Config: s.cfg, Version: "test", Clock: stages.SystemClock{}, Scratch: s.t.TempDir(),
		Barred: func(url, sent string) (string, bool) {
			return "example.com/opted", url == s.opted || sent != "" && sent == s.opted
		},
		Tell: func(w stages.Wait) { s.told = append(s.told, w.Why) },
		Log:  slog.New(slog.NewTextHandler(&s.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return nil, err
	}
	defer done()
	for e, err := range src.Entries(ctx) {
		if err != nil {
			return all, err
		}
		if !e.Due || !e.Listed || e.File == "" || e.Line == 0 {
			s.t.Errorf("%+v lacks its file or line", e)
		}
		text := fmt.Sprintf("%s:%d %s %d", strings.TrimPrefix(e.File, "http://example.com/"), e.Line, strings.TrimPrefix(e.URL, "http://example.com"), e.Priority)
		if e.Broken != "" {
			text = strings.TrimSuffix(text, " 0") + ": " + e.Broken
		}
		all = append(all, text)
	}
	return all, nil
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func TestAnIndexIsReadWithAllItsFiles(t *testing.T) {
	s := newSite(t)
	s.pages["example.com/robots.txt"] = "User-agent: *\nDisallow: /denied\n"
	s.pages["example.com/index.xml"] = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
		<sitemap><loc>http://example.com/a.xml.gz</loc></sitemap><sitemap><loc>http://www.example.com/list.txt</loc></sitemap>
		<sitemap><loc>http://example.com/more.xml</loc></sitemap><sitemap><loc>http://example.com/missing.xml</loc></sitemap>
		<sitemap><loc>http://example.com/denied.xml</loc></sitemap><sitemap><loc>http://other.net/s.xml</loc></sitemap>
		<sitemap><loc>http://example.com/index.xml</loc></sitemap><sitemap><loc>http://example.com/page.html</loc></sitemap>
		<sitemap><loc>http://example.com/broken.xml</loc></sitemap><sitemap><loc>http://example.com/opted.xml?utm_source=map</loc></sitemap>
		<sitemap><loc>http://example.com/away.xml</loc></sitemap></sitemapindex>`
	s.pages["example.com/a.xml.gz"] = zipped(`<urlset><url><loc>http://example.com/1</loc><priority>0.8</priority><lastmod>2026-01-01</lastmod></url>
		<url><loc>http://example.com/2?b=1&amp;a=2</loc></url><url><loc>http://other.net/3</loc></url><url><loc>/4</loc><priority>1.0</priority></url></urlset>`)
	s.pages["www.example.com/list.txt"] = "http://example.com/5\nhttp://blog.example.com/6\n"
	s.pages["example.com/more.xml"] = `<sitemapindex><sitemap><loc>/a.xml.gz</loc></sitemap><sitemap><loc>/rss</loc></sitemap></sitemapindex>`
	s.pages["example.com/rss"] = `<rss version="2.0"><channel><item><link>http://elsewhere.org/7</link></item><item><title>none</title></item></channel></rss>`
	s.pages["example.com/page.html"] = "<html><body>no sitemap</body></html>"
	s.codes["example.com/broken.xml"] = 500
	s.pages["example.com/away.xml"] = "location:http://other.net/s.xml"
	s.opted = "http://example.com/opted.xml"
	got, err := s.readAll(t.Context(), "sitemap:http://example.com/index.xml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"index.xml:6 http://other.net/s.xml: the sitemap belongs to other.net, but an index of example.com may name only its own: name it as a source",
		"a.xml.gz:1 /1 800",
		"a.xml.gz:2 /2?b=1&a=2 500",
		"a.xml.gz:3 http://other.net/3: the entry belongs to other.net, but a sitemap of example.com may list only its own URLs",
		"a.xml.gz:4 /4 1000",
		"http://www.example.com/list.txt:1 /5 500",
		"http://www.example.com/list.txt:2 http://blog.example.com/6 500",
		"index.xml:4 /missing.xml: the sitemap is left out: it answered 404",
		"index.xml:5 /denied.xml: the sitemap is left out: robots.txt denies it (Disallow: /denied)",
		"index.xml:8 /page.html: the sitemap is left out: root element \"html\": neither a sitemap nor a feed",
		"index.xml:9 /broken.xml: the sitemap is left out: it answered 500",
		"index.xml:10 /opted.xml?utm_source=map: the sitemap is left out: the opt-out list names it (example.com/opted)",
		`index.xml:11 /away.xml: the sitemap is left out: it redirects to "http://other.net/s.xml", which is not followed: name that URL`,
		"rss:1 http://elsewhere.org/7 500",
		"rss:1 /rss: 1 entries or lines are left out: they hold no URL, or one of more than 8192 bytes",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
	for at, most := range map[string]int{"example.com/robots.txt": 1, "www.example.com/robots.txt": 1, "example.com/a.xml.gz": 1, "example.com/index.xml": 1,
		"example.com/denied.xml": 0, "example.com/opted.xml": 0, "other.net/s.xml": 0, "other.net/robots.txt": 0} {
		if n := len(slices.DeleteFunc(slices.Clone(s.asked), func(a string) bool { return a != at })); n != most {
			t.Errorf("%s was requested %d times, want %d", at, n, most)
		}
	}
	again, err := s.readAll(t.Context(), "feed:http://example.com/index.xml")
	if err != nil || !slices.Equal(again, got) {
		t.Errorf("the second reading differs: %v\n %s", err, strings.Join(again, "\n "))
	}
}

func TestFeedsAreReadWhateverTheirFormat(t *testing.T) {
	s := newSite(t)
	s.pages["example.com/atom"] = `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.com/blog/"><entry><link href="1"/></entry></feed>`
	s.pages["example.com/feed.json"] = `{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"http://b.org/2"}]}`
	for name, want := range map[string]string{
		"sitemap:http://example.com/atom":     "atom:1 /blog/1 500",
		"Sitemap: http://example.com/atom":    "atom:1 /blog/1 500",
		"feed:http://example.com/feed.json":   "feed.json:1 http://b.org/2 500",
		"sitemap:HTTP://EXAMPLE.com/atom?q=1": "HTTP://EXAMPLE.com/atom?q=1:1 /blog/1 500",
	} {
		got, err := s.readAll(t.Context(), name)
		if err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestEntriesWithoutAUsableURLAreCounted(t *testing.T) {
	long := "http://example.com/" + strings.Repeat("x", 9000)
	s := newSite(t)
	s.pages["example.com/xml"] = "<urlset><url><loc>http://example.com/1</loc></url><url><loc>" + long + "</loc></url><url><lastmod>2026-01-01</lastmod></url></urlset>"
	s.pages["example.com/txt"] = "http://example.com/1\n# a comment\n\nwww.example.com/2\n" + long + "\n"
	s.pages["example.com/json"] = `{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"http://example.com/1"},7,{"url":"` + long + `"}]}`
	for _, kind := range []string{"xml", "txt", "json"} {
		got, err := s.readAll(t.Context(), "sitemap:http://example.com/"+kind)
		want := []string{kind + ":1 /1 500", kind + ":1 /" + kind + ": 2 entries or lines are left out: they hold no URL, or one of more than 8192 bytes"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %.300q, want %q", kind, err, got, want)
		}
	}
}

func TestASourceThatCannotBeHadSaysWhy(t *testing.T) {
	s := newSite(t)
	s.pages["denied.com/robots.txt"] = "User-agent: *\nDisallow: /\n"
	s.pages["denied.com/s.xml"] = "<urlset><url><loc>http://denied.com/</loc></url></urlset>"
	s.pages["example.com/page"] = "<html>no</html>"
	s.pages["example.com/empty.xml"] = "<urlset></urlset>"
	s.pages["example.com/nothing"] = ""
	s.pages["example.com/away"] = "location:http://other.net/s.xml"
	s.pages["example.com/loop"] = "location:/loop?"
	s.codes["down.com/robots.txt"] = 500
	s.codes["example.com/503"] = 503
	s.codes["example.com/500"] = 500
	s.codes["example.com/429"] = 429
	for name, c := range map[string]struct {
		is   error
		says string
	}{
		"sitemap:http://example.com/404":          {ErrRefused, "it answered 404"},
		"sitemap:http://denied.com/s.xml":         {ErrRefused, "robots.txt denies it (Disallow: /)"},
		"sitemap:http://example.com/page":         {ErrRefused, "neither a sitemap nor a feed"},
		"sitemap:http://example.com/nothing":      {ErrRefused, "neither a sitemap nor a feed"},
		"sitemap:http://example.com/empty.xml":    {ErrRefused, "it lists no URL"},
		"sitemap:http://example.com/away":         {ErrRefused, `redirects to "http://other.net/s.xml"`},
		"sitemap:http://example.com/loop":         {ErrRefused, "redirect loop"},
		"sitemap:http://down.com/s.xml":           {source.ErrUnavailable, "robots.txt: HTTP status 500"},
		"sitemap:http://example.com/500":          {source.ErrUnavailable, "it answered 500"},
		"sitemap:http://example.com/503":          {source.ErrUnavailable, "it answered 503"},
		"sitemap:http://example.com/429":          {source.ErrUnavailable, "it answered 429"},
		"https://example.com/s.xml":               {ErrName, "write sitemap:https://example.com/s.xml"},
		"sitemap:example.com/s.xml":               {ErrName, "give a sitemap or feed as sitemap:https://HOST/PATH"},
		"sitemap:ftp://example.com/s.xml":         {ErrName, ""},
		"sitemap:http://u:secret@example.com/s":   {ErrName, "password"},
		"https://u:secret@example.com/s":          {ErrName, "password"},
		"sitemap:http://example.com/s#priority=x": {ErrName, "no options"},
		"sitemap:": {ErrName, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.readAll(t.Context(), name)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") || len(got) > 0 {
				t.Errorf("%q, %v, want %q", got, err, c.says)
			}
		})
	}
	s.cfg.Fetch.ConnectTo = nil
	for _, name := range []string{"sitemap:http://127.0.0.1/s.xml", "sitemap:http://169.254.169.254/latest"} {
		if _, err := s.readAll(t.Context(), name); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "fetch.allow_private_networks") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.cfg.UserAgent = ""
	asked := len(s.asked)
	if _, err := s.readAll(t.Context(), "sitemap:http://example.com/s.xml"); !errors.Is(err, config.ErrInvalid) || len(s.asked) > asked {
		t.Errorf("without a contact: %v, %d requests", err, len(s.asked)-asked)
	}
}

func TestAHostThatStopsAnsweringEndsThePlan(t *testing.T) {
	s := newSite(t)
	s.pages["example.com/index.xml"] = `<sitemapindex><sitemap><loc>/limited.xml</loc></sitemap></sitemapindex>`
	s.codes["example.com/limited.xml"] = 429
	_, err := s.readAll(t.Context(), "sitemap:http://example.com/index.xml")
	if !errors.Is(err, source.ErrUnavailable) || !strings.Contains(err.Error(), "http://example.com/limited.xml: it answered 429") {
		t.Error(err)
	}
}

func TestLimitsAreCounted(t *testing.T) {
	urlset := func(from, to int) string {
		var b strings.Builder
		b.WriteString("<urlset>")
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "<url><loc>http://example.com/%d</loc></url>", i)
		}
		return b.String() + "</urlset>"
	}
	s := newSite(t)
	s.pages["example.com/index.xml"] = `<sitemapindex><sitemap><loc>/0.xml</loc></sitemap><sitemap><loc>/1.xml</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>`
	for i := range 3 {
		s.pages[fmt.Sprintf("example.com/%d.xml", i)] = urlset(10*i, 10*i+10)
	}
	s.pages["example.com/large.xml"] = urlset(0, 60_000)
	s.pages["example.com/bomb.xml.gz"] = zipped(urlset(0, 5) + strings.Repeat(" ", 8<<20))
	s.pages["example.com/cut.xml"] = "<urlset><url><loc>http://example.com/1</loc></url><url><loc>http://exa"
	for name, c := range map[string]struct {
		set     func(*config.Config)
		file    string
		entries int
		last    string
	}{
		"nothing":      {func(*config.Config) {}, "large.xml", 60_000, "large.xml:60000 /59999 500"},
		"files":        {func(c *config.Config) { c.Fetch.SitemapLimits.Files = 3 }, "index.xml", 21, "1.xml:10 /19 500"},
		"bytes":        {func(c *config.Config) { c.Fetch.SitemapLimits.Bytes = 600 }, "index.xml", 21, "/2.xml: the sitemap is left out: fetch.sitemap_limits.bytes is 600, and the files before it have "},
		"urls":         {func(c *config.Config) { c.Fetch.SitemapLimits.URLs = 18 }, "index.xml", 17, "1.xml:6 /1.xml: the file's entries from 6 on are left out: fetch.sitemap_limits.urls is 18\nindex.xml:3 /2.xml: the sitemap is left out: fetch.sitemap_limits.urls is 18"},
		"length":       {func(c *config.Config) { c.Fetch.MaxBody, c.Fetch.MaxSitemap = 1000, 1000 }, "0.xml", 10, "0.xml:10 /9 500"},
		"short length": {func(c *config.Config) { c.Fetch.MaxBody, c.Fetch.MaxSitemap = 200, 200 }, "0.xml", 6, "longer than 200 bytes (fetch.max_sitemap)"},
		"a bomb":       {func(c *config.Config) { c.Fetch.MaxBody, c.Fetch.MaxSitemap = 1<<20, 1<<20 }, "bomb.xml.gz", 6, "longer than 1048576 bytes"},
		"cut":          {func(*config.Config) {}, "cut.xml", 2, "cut.xml:1 /cut.xml: 1 entries or lines are left out"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{t: t, pages: s.pages, codes: s.codes, cfg: s.cfg.Clone()}
			c.set(s.cfg)
			got, err := s.readAll(t.Context(), "sitemap:http://example.com/"+c.file)
			if err != nil || len(got) != c.entries || !strings.Contains(strings.Join(got[len(got)-min(len(got), 2):], "\n"), c.last) {
				t.Errorf("%d entries, %v, want %d and at the end %q:\n%s", len(got), err, c.entries, c.last, strings.Join(got[max(0, len(got)-30):], "\n"))
			}
		})
	}
}

func TestManyFilesAreToldAndAnInterruptEndsThem(t *testing.T) {
	s := newSite(t)
	var index strings.Builder
	index.WriteString("<sitemapindex>")
	for i := range 50 {
		fmt.Fprintf(&index, "<sitemap><loc>/%d.xml</loc></sitemap>", i)
		s.pages[fmt.Sprintf("example.com/%d.xml", i)] = fmt.Sprintf("<urlset><url><loc>/page%d</loc></url></urlset>", i)
	}
	s.pages["example.com/index.xml"] = index.String() + "</sitemapindex>"
	if got, err := s.readAll(t.Context(), "sitemap:http://example.com/index.xml"); err != nil || len(got) != 50 || len(s.told) != 5 || !strings.HasPrefix(s.told[0], "10 of 51 files of sitemap:") {
		t.Errorf("%d entries, %v, told %q", len(got), err, s.told)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.pages["example.com/5.xml"] = "location:/5.xml?again"
	src, err := source.Open(ctx, "sitemap:http://example.com/index.xml", source.Options{Schemes: Openers()})
	if err != nil {
		t.Fatal(err)
	}
	done, err := Prepare([]source.Source{src}, Options{Config: s.cfg, Clock: stages.SystemClock{}, Scratch: t.TempDir(), Barred: func(string, string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	n := 0
	for _, err = range src.Entries(ctx) {
		if n++; n == 3 {
			stop()
		}
	}
	if !errors.Is(err, stages.ErrInterrupted) || n > 5 {
		t.Errorf("%d entries, %v", n, err)
	}
	for e, err := range src.Entries(t.Context()) { // a caller may stop early
		if err != nil {
			t.Error(e, err)
		}
		break
	}
}

// failure returns a reason for every outcome except OK.
func TestEveryOutcomeHasAReason(t *testing.T) {
	for _, o := range schema.Outcomes {
		for _, ofIndex := range []bool{false, true} {
			if why, _ := failure(&schema.Fetch{Outcome: o, HTTPStatus: 500}, ofIndex, secret.Hide); (why == "") != (o == schema.OK) {
				t.Errorf("%s: %q", o, why)
			}
		}
	}
}
