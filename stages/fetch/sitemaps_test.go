package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
)

// mapParser is a plainParser that reads sitemaps.
type mapParser struct {
	plainParser
	most int // number of entries of a file that it reads; 0 for the number that sitemaps.org allows
}

func (p mapParser) Parse(d *document.Document) (*document.Parsed, error) {
	parsed, err := p.plainParser.Parse(d)
	if !bytes.Contains(d.Body, []byte("<urlset")) && !bytes.Contains(d.Body, []byte("<sitemapindex")) {
		return parsed, err
	}
	canon, err := urlkey.New(nil)
	if err != nil {
		return nil, err
	}
	key, err := canon.Canonical(d.URL, "")
	if err != nil {
		return nil, err
	}
	parsed.Page.DocumentKind, parsed.Links = "sitemap", nil
	sum, err := sitemap.Read(bytes.NewReader(d.Body), sitemap.Limits{Entries: p.most}, func(e *sitemap.Entry) bool {
		kind := schema.KindSitemap
		if e.Sitemap {
			kind = schema.KindSitemapIndex
		}
		if k, sent, err := canon.Sent(e.Loc, d.URL); err == nil {
			parsed.Links = append(parsed.Links, schema.Link{
				SourceSURT: key.SURT, Source: key.URL, Target: k.URL, Sent: sent, Kind: kind, Ordinal: int32(len(parsed.Links)), LastMod: schema.TimeOf(e.LastMod),
			})
		}
		return true
	})
	parsed.Cut = sum.Cut
	return parsed, err
}

// urlset and index return a sitemap and a sitemap index with these entries.
func urlset(locs ...string) string { return listing("urlset", "url", locs) }
func index(locs ...string) string  { return listing("sitemapindex", "sitemap", locs) }

func listing(root, entry string, locs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`, root)
	for _, loc := range locs {
		fmt.Fprintf(&b, "<%s><loc>%s</loc></%s>", entry, strings.ReplaceAll(loc, "&", "&amp;"), entry)
	}
	return b.String() + "</" + root + ">"
}

// site serves files by host and path. A file that begins with "301 " redirects. A path that has no
// file and whose name begins with p is a page.
func site(files map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := files[r.Host+r.URL.Path]
		switch target, moved := strings.CutPrefix(body, "301 "); {
		case moved:
			http.Redirect(w, r, target, http.StatusMovedPermanently)
		case ok && strings.HasPrefix(body, "<?xml"):
			w.Header().Set("Content-Type", "application/xml")
			w.Header().Set("ETag", `"1"`)
			_, _ = w.Write([]byte(body))
		case ok:
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte(body))
		case strings.HasPrefix(r.URL.Path, "/p"):
			page(w, r)
		default:
			http.NotFound(w, r)
		}
	}
}

func newSitemapLab(t *testing.T, files map[string]string, urls ...string) *lab {
	l := newLab(t, site(files), urls...)
	l.parser = mapParser{}
	return l
}

// sitemapOutcomes returns the outcome of each sitemap, by the URL that robots.txt or an index names.
// A waiting sitemap has the outcome "".
func (l *lab) sitemapOutcomes(r *manifest.Result) map[string]schema.Outcome {
	out := map[string]schema.Outcome{}
	for _, s := range rowsOf[schema.Sitemap](l, r, stages.FileSitemaps) {
		named := s.URL
		if s.Named != "" {
			named = s.Named
		}
		if out[named] == "" && !s.Planned {
			out[named] = s.Outcome
		}
	}
	return out
}

// linksOf returns the targets of each source's links.
func (l *lab) linksOf(r *manifest.Result) map[string][]string {
	out := map[string][]string{}
	for _, link := range linksOf(l, r) {
		if link.Kind != schema.KindA {
			out[link.Source] = append(out[link.Source], string(link.Kind)+" "+link.Target)
		}
	}
	return out
}

func (l *lab) mustRun(in *Input) *manifest.Result {
	l.t.Helper()
	r, err := l.run(l.t.Context(), nil, in)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func TestTheLogCountsTheEntriesBeyondALimit(t *testing.T) {
	for _, c := range []struct {
		name       string
		file, host int // bounds of entries
		want       string
	}{
		{"within the limits", 3, 3, ""},
		{"beyond the limit of the host", 3, 2, "beyond_limits=1"},
		{"beyond the limit of a file", 2, 3, `beyond_limits="at least 1"`},
		{"beyond both", 2, 1, `beyond_limits="at least 2"`},
	} {
		bubble(t, func(t *testing.T) {
			l := newSitemapLab(t, map[string]string{"a.com/robots.txt": "Sitemap: /map.xml\n", "a.com/map.xml": urlset("/1", "/2", "/3")}, urls("a.com", 1)...)
			l.parser, l.cfg.Sitemaps.URLs, l.hooks.tune = mapParser{most: c.file}, int64(c.host), l.web.tune
			var log bytes.Buffer
			env := l.env(l.bucket, t.TempDir())
			env.Log = slog.New(slog.NewTextHandler(&log, nil))
			if _, err := runWith(t.Context(), env, &Input{Task: l.task, Plan: l.plan}, l.cfg, l.parser, l.hooks); err != nil {
				t.Fatal(err)
			}
			if said := log.String(); !strings.Contains(said, c.want) || strings.Contains(said, "beyond_limits") != (c.want != "") {
				t.Errorf("%s: logged:\n%s", c.name, said)
			}
		})
	}
}

func TestSitemapsThatRobotsTxtNamesAreFetched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newSitemapLab(t, map[string]string{
			"a.com/robots.txt": "User-agent: *\nDisallow: /secret\nSitemap: http://a.com/index.xml\nSitemap: /planned.xml\nSitemap: /secret.xml\nSitemap: http://b.org/of-b.xml\n" +
				"Sitemap: http://www.a.com/www.xml\nSitemap: /page.xml\nSitemap: /none.xml\nSitemap: /moved.xml\nSitemap: /away.xml\nSitemap: /loop.xml\nSitemap: /index.xml\n",
			"a.com/index.xml":   index("/one.xml", "/index.xml", "/nested.xml", "http://c.net/of-c.xml", "/secret/two.xml"),
			"a.com/nested.xml":  index("/index.xml", "/one.xml", "/last.xml"),
			"a.com/one.xml":     urlset("/p00", "/found", "http://c.net/spam", "http://www.a.com/sub"),
			"a.com/last.xml":    urlset("/deep"),
			"a.com/planned.xml": urlset("/listed"),
			"www.a.com/www.xml": urlset("http://a.com/cross"),
			"a.com/page.xml":    "<p>not found, but 200</p>",
			"a.com/moved.xml":   "301 /here.xml",
			"a.com/here.xml":    urlset("/from-here"),
			"a.com/away.xml":    "301 http://b.org/there.xml",
			"a.com/loop.xml":    "301 /loop.xml",
		}, append(urls("a.com", 8), "http://a.com/planned.xml", "http://b.org/p1")...)
		r := l.mustRun(nil)
		for u, f := range l.outcomes(r) { // exactly the planned URLs
			if f.Outcome != schema.OK {
				t.Errorf("%s: %s", u, f.Outcome)
			}
		}
		want := map[string]schema.Outcome{
			"http://a.com/index.xml": schema.OK, "http://a.com/nested.xml": schema.OK, "http://a.com/one.xml": schema.OK, "http://a.com/last.xml": schema.OK,
			"http://www.a.com/www.xml": schema.OK, "http://a.com/secret.xml": schema.RobotsDenied, "http://a.com/secret/two.xml": schema.RobotsDenied,
			"http://a.com/page.xml": schema.MIMEFiltered, "http://a.com/none.xml": schema.HTTP4xx, "http://a.com/moved.xml": schema.OK,
			"http://a.com/away.xml": schema.Redirected, "http://a.com/loop.xml": schema.Redirected,
		}
		if d := cmp.Diff(want, l.sitemapOutcomes(r)); d != "" {
			t.Errorf("outcomes of sitemaps (-want +got):\n%s", d)
		}
		links := map[string][]string{
			"http://a.com/index.xml": {"sitemapindex http://a.com/one.xml", "sitemapindex http://a.com/index.xml", "sitemapindex http://a.com/nested.xml",
				"sitemapindex http://a.com/secret/two.xml"},
			"http://a.com/nested.xml":  {"sitemapindex http://a.com/index.xml", "sitemapindex http://a.com/one.xml", "sitemapindex http://a.com/last.xml"},
			"http://a.com/one.xml":     {"sitemap http://a.com/p00", "sitemap http://a.com/found", "sitemap http://www.a.com/sub"},
			"http://a.com/last.xml":    {"sitemap http://a.com/deep"},
			"http://a.com/planned.xml": {"sitemap http://a.com/listed"},
			"http://www.a.com/www.xml": {"sitemap http://a.com/cross"},
			"http://a.com/here.xml":    {"sitemap http://a.com/from-here"},
		}
		if d := cmp.Diff(links, l.linksOf(r)); d != "" {
			t.Errorf("links (-want +got):\n%s", d)
		}
		asked := map[string]int{}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			asked[q.URL]++
			if of := q.Purpose == schema.ForSitemap; of != (strings.HasSuffix(q.URL, ".xml") && q.PlannedURL == "") {
				t.Errorf("the purpose of %s (planned %q) is %s", q.URL, q.PlannedURL, q.Purpose)
			}
			if strings.Contains(q.URL, "secret") {
				t.Errorf("%s was requested though robots.txt denies it", q.URL)
			}
		}
		for u, n := range asked {
			if n != 1 {
				t.Errorf("%s was requested %d times", u, n)
			}
		}
		pages := rowsOf[schema.WorkingPage](l, r, stages.FilePages)
		captures := rowsOf[schema.Capture](l, r, stages.FileCaptures)
		if len(pages) != 10 || len(captures) != len(asked) {
			t.Errorf("%d pages, %d captures of %d requests", len(pages), len(captures), len(asked))
		}
		l.checkPace(r)
		l.checkEvidence(r)
	})
}

// A host with a long delay is asked for pages and for sitemaps in turn.
func TestPagesHaveTheirTurnBetweenSitemaps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		files := map[string]string{"a.com/robots.txt": "User-agent: *\nCrawl-delay: 60\nSitemap: /index.xml\n"}
		var children []string
		for i := range 20 {
			children = append(children, fmt.Sprintf("/m%02d.xml", i))
			files["a.com"+children[i]] = urlset(fmt.Sprintf("/q%02d", i))
		}
		files["a.com/index.xml"] = index(children...)
		l := newSitemapLab(t, files, urls("a.com", 20)...)
		l.cfg.Window = 12 * time.Minute
		r := l.mustRun(nil)
		pages, maps := 0, 0
		for i, h := range l.web.hits() {
			switch {
			case strings.HasSuffix(h.path, ".xml"):
				if maps++; i > 1 && strings.HasSuffix(l.web.hits()[i-1].path, ".xml") {
					t.Errorf("%s comes right after a sitemap", h.path)
				}
			case strings.HasPrefix(h.path, "/p"):
				pages++
			}
		}
		if maps < 3 || pages < 5 {
			t.Errorf("%d sitemaps and %d pages before the window closed", maps, pages)
		}
		waiting := 0
		for _, o := range l.sitemapOutcomes(r) {
			if o == "" {
				waiting++
			}
		}
		if waiting != 21-maps {
			t.Errorf("%d of 21 sitemaps were fetched, and %d wait for the next round", maps, waiting)
		}
	})
}

// TestSitemapsSurviveAttemptsAndRounds kills a task between two sitemaps, continues it, and then
// begins a second round.
func TestSitemapsSurviveAttemptsAndRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		files := map[string]string{"a.com/robots.txt": "Sitemap: /index.xml\nSitemap: /moved.xml\nSitemap: /flaky.xml\n", "a.com/index.xml": index("/m1.xml", "/m2.xml", "/m3.xml", "/p-child")}
		for i := range 4 {
			files[fmt.Sprintf("a.com/m%d.xml", i)] = urlset(fmt.Sprintf("/q%d", i))
		}
		files["a.com/moved.xml"], files["a.com/here.xml"] = "301 /here.xml", urlset("/from-here")
		serve := site(files)
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/flaky.xml" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			serve(w, r)
		}, append(urls("a.com", 12), "http://b.org/p1")...)
		l.parser = mapParser{}
		l.cfg.Checkpoint.Every = 100 * time.Millisecond
		kills := 0
		var r *manifest.Result
		for after := 9 * time.Second; ; after += 7 * time.Second {
			var err error
			if r, err = l.run(t.Context(), dying{l.bucket, time.Now().Add(after)}, nil); err == nil {
				break
			}
			if kills++; !errors.Is(err, errKilled) || kills > 6 {
				t.Fatal(err)
			}
		}
		if kills < 2 {
			t.Errorf("the task was killed %d times", kills)
		}
		l.outcomes(r)
		l.checkPace(r)
		asked := map[string]int{}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			asked[q.URL]++
		}
		for u, n := range asked {
			if n > 1 && !strings.HasSuffix(u, "robots.txt") {
				t.Errorf("%d requests for %s are recorded", n, u)
			}
		}
		want := map[string]schema.Outcome{"http://a.com/index.xml": schema.OK, "http://a.com/m1.xml": schema.OK, "http://a.com/m2.xml": schema.OK, "http://a.com/m3.xml": schema.OK,
			"http://a.com/moved.xml": schema.OK, "http://a.com/flaky.xml": schema.HTTP5xx, "http://a.com/p-child": schema.MIMEFiltered}
		if d := cmp.Diff(want, l.sitemapOutcomes(r)); d != "" {
			t.Errorf("outcomes of sitemaps (-want +got):\n%s", d)
		}

		// The next round requests only the sitemap that failed temporarily, although it reads robots.txt again.
		before := len(l.web.hits())
		time.Sleep(48 * time.Hour)
		l.task.Round = 1
		l.setPlanAt(planRows(t, []string{"http://a.com/p50", "http://a.com/p51"}), "p2")
		r1 := l.mustRun(&Input{Before: []*manifest.Result{r}})
		var paths []string
		for _, h := range l.web.hits()[before:] {
			paths = append(paths, h.path)
		}
		slices.Sort(paths)
		if d := cmp.Diff([]string{"/flaky.xml", "/p50", "/p51", "/robots.txt"}, paths); d != "" {
			t.Errorf("requests of the next round (-want +got):\n%s", d)
		}

		// A round that plans no URL of the domain records its rows again for later rounds.
		l.task.Round = 2
		l.setPlanAt(planRows(t, []string{"http://b.org/p2"}), "p3")
		r2 := l.mustRun(&Input{Before: []*manifest.Result{r1}})
		before = len(l.web.hits())
		l.task.Round = 3
		l.setPlanAt(planRows(t, []string{"http://a.com/p60"}), "p4")
		r3 := l.mustRun(&Input{Before: []*manifest.Result{r2}})
		for _, h := range l.web.hits()[before:] {
			if strings.HasSuffix(h.path, ".xml") && h.path != "/flaky.xml" {
				t.Errorf("a later round requests %s again", h.path)
			}
		}
		for _, s := range rowsOf[schema.Sitemap](l, r3, stages.FileSitemaps) {
			if s.Outcome == schema.OK && !s.Earlier {
				t.Errorf("%s is not marked as fetched by an earlier round", s.URL)
			}
		}
	})
}

func TestTheSitemapsOfAHostAreBounded(t *testing.T) {
	files := map[string]string{"a.com/robots.txt": "Sitemap: /index.xml\nSitemap: /extra.xml\n", "a.com/extra.xml": urlset("/e1", "/e2", "/e3")}
	var children []string
	for i := range 8 {
		children = append(children, fmt.Sprintf("/m%d.xml", i))
		files["a.com"+children[i]] = urlset(fmt.Sprintf("/%d-a", i), fmt.Sprintf("/%d-b", i), fmt.Sprintf("/%d-c", i))
	}
	files["a.com/index.xml"] = index(children...)
	for _, c := range []struct {
		name            string
		limits          sitemaps.Limits
		files, listings int
	}{
		{"none", sitemaps.Limits{}, 0, 0},
		{"files", sitemaps.Limits{Files: 4, URLs: 100, Bytes: 1 << 20}, 4, 3 * 3},
		{"entries", sitemaps.Limits{Files: 100, URLs: 8 + 3 + 4, Bytes: 1 << 20}, 4, 3 + 4},
		{"bytes", sitemaps.Limits{Files: 100, URLs: 100, Bytes: 100}, 1, 0},
		{"enough", sitemaps.Default(), 10, 9 * 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newSitemapLab(t, files, urls("a.com", 3)...)
				l.cfg.Sitemaps = c.limits
				r := l.mustRun(nil)
				l.outcomes(r)
				fetched, listed := 0, 0
				for _, h := range l.web.hits() {
					if strings.HasSuffix(h.path, ".xml") {
						fetched++
					}
				}
				for _, link := range linksOf(l, r) {
					if link.Kind == schema.KindSitemap {
						listed++
					}
				}
				if fetched != c.files || listed != c.listings {
					t.Errorf("%d files with %d entries, want %d with %d", fetched, listed, c.files, c.listings)
				}
			})
		})
	}
}

// The opt-out list holds for sitemaps too, whether robots.txt, an index or a redirect names them.
func TestSitemapsOfTheOptOutListAreNotRequested(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newSitemapLab(t, map[string]string{
			"a.com/robots.txt": "Sitemap: /out/one.xml\nSitemap: /index.xml\nSitemap: /moved.xml\n",
			"a.com/index.xml":  index("/out/two.xml", "/in.xml"), "a.com/in.xml": urlset("/q"), "a.com/moved.xml": "301 /out/three.xml",
		}, urls("a.com", 3)...)
		r := l.mustRun(&Input{OptedOut: func(url, _ string) bool { return strings.Contains(url, "/out/") }})
		l.outcomes(r)
		for _, h := range l.web.hits() {
			if strings.Contains(h.path, "/out/") {
				t.Errorf("%s was requested", h.path)
			}
		}
		want := map[string]schema.Outcome{"http://a.com/out/one.xml": schema.Stopped, "http://a.com/out/two.xml": schema.Stopped, "http://a.com/moved.xml": schema.Stopped,
			"http://a.com/index.xml": schema.OK, "http://a.com/in.xml": schema.OK}
		if d := cmp.Diff(want, l.sitemapOutcomes(r)); d != "" {
			t.Errorf("outcomes of sitemaps (-want +got):\n%s", d)
		}
	})
}

// An interrupted task leaves a sitemap between two hops of a redirect to the next attempt.
func TestAnInterruptedSitemapContinuesAtItsNextHop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		serve := site(map[string]string{"a.com/robots.txt": "Sitemap: /moved.xml\n", "a.com/moved.xml": "301 /here.xml", "a.com/here.xml": urlset("/q")})
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			serve(w, r)
			if r.URL.Path == "/moved.xml" {
				time.AfterFunc(time.Second, cancel)
			}
		}, urls("a.com", 3)...)
		l.parser = mapParser{}
		if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatal(err)
		}
		r := l.mustRun(nil)
		l.outcomes(r)
		if l.web.count("/moved.xml") != 1 || l.web.count("/here.xml") != 1 {
			t.Errorf("requests: %v", l.web.hits())
		}
		if o := l.sitemapOutcomes(r)["http://a.com/moved.xml"]; o != schema.OK {
			t.Errorf("the sitemap has the outcome %q", o)
		}
	})
}
