//go:build lab

package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// changingWeb is a host whose URLs answer in another way each month.
type changingWeb struct {
	month   atomic.Int32
	answers []string // for each path /0, /1, … a letter for each month
}

// changingAnswers are the letters of a changingWeb:
//
//	a b   a text
//	A B   the same text with another payload
//	t     the text a with another title
//	l     the text a with other links: two are new, and one is missing
//	n     304, or the text a without an ETag in the request
//	g G   404, 410
//	s     a page that says "not found" with status 200
//	e     500
//	r     a redirect to the next path
const changingAnswers = "aabbABtlngGser"

func newChangingWeb(t *testing.T, paths, months int) *changingWeb {
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := &changingWeb{answers: []string{"anbg", "nnnn", "gaga", "sasb", "gsan", "aAtA", "erea", "rrnr", "aaaa", "alAl"}} // some that matter
	for i := range w.answers {
		w.answers[i] = (w.answers[i] + strings.Repeat("a", months))[:months]
	}
	for len(w.answers) < paths {
		var b strings.Builder
		for range months {
			b.WriteByte(changingAnswers[random.IntN(len(changingAnswers))])
		}
		w.answers = append(w.answers, b.String())
	}
	return w
}

// ServeHTTP implements http.Handler.
func (w *changingWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var path int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &path); err != nil || path >= len(w.answers) {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	send := func(title, text, comment string) {
		rw.Header().Set("ETag", fmt.Sprintf(`"%s %s %s"`, title, text[:1], comment))
		links := "<a href=/x1></a><a href=/x2></a><a href=/x3></a>"
		if comment == "links" {
			links = "<a href=/x2></a><a href=/x4></a><a href=/x3></a><a href=/x5></a><a href=/x2></a>"
		}
		fmt.Fprintf(rw, "<!DOCTYPE html><html lang=en><head><title>%s %d</title><!-- %s --></head><body>%s<main><h1>Number %d</h1>%s</main></body></html>", title, path, comment, links, path, crawltest.Filler(text))
	}
	switch answer := w.answers[path][w.month.Load()]; answer {
	case 'a', 'b':
		send("Page", string(answer)+fmt.Sprint(path), "")
	case 'A', 'B':
		send("Page", strings.ToLower(string(answer))+fmt.Sprint(path), fmt.Sprint("month ", w.month.Load()))
	case 't':
		send("Another title", fmt.Sprint("a", path), "")
	case 'l':
		send("Page", fmt.Sprint("a", path), "links")
	case 'n':
		if r.Header.Get("If-None-Match") != "" {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		send("Page", fmt.Sprint("a", path), "")
	case 'g', 'G':
		rw.WriteHeader(map[byte]int{'g': http.StatusNotFound, 'G': http.StatusGone}[answer])
	case 's':
		fmt.Fprintf(rw, "<!DOCTYPE html><html lang=en><head><title>404 Not Found</title></head><body><h1>Page not found</h1><p>There is no %d.</p></body></html>", path)
	case 'e':
		rw.WriteHeader(http.StatusInternalServerError)
	case 'r':
		http.Redirect(rw, r, fmt.Sprint("/", (path+1)%len(w.answers)), http.StatusFound)
	}
}

// monthsAhead is a clock that is some years ahead, so that all known URLs are due again.
type monthsAhead struct {
	stages.SystemClock
	years int
}

func (c monthsAhead) Now() time.Time { return time.Now().AddDate(c.years, 0, 0) }

// crawlMonths crawls one round of the web in each month and returns the store.
func (w *changingWeb) crawlMonths(t *testing.T, months []string) (store string) {
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	store, seeds, conf := filepath.Join(dir, "store"), filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
	var list strings.Builder
	for path := range w.answers {
		fmt.Fprintf(&list, "http://a.test/%d\n", path)
	}
	crawltest.Write(t, seeds, list.String())
	crawltest.Write(t, conf, crawltest.Config)
	for i, month := range months {
		w.month.Store(int32(i))
		if i == 0 {
			mustRun(t, "plan", "--month", month, "--source", seeds, "--config", conf, "--connect-to", "::"+server.Listener.Addr().(*net.TCPAddr).String(), "--store", store)
		} else {
			b := crawltest.OpenDir(t, store)
			_, cfg, err := roundstate.OpenCrawl(t.Context(), b, months[0], os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
				Bucket: b, Crawl: month, Frontier: true, Config: cfg, Clock: monthsAhead{years: i}, Version: version, Scratch: t.TempDir(), Lookup: os.LookupEnv,
			}); err != nil {
				t.Fatal(err)
			}
		}
		mustRun(t, "run", "--month", month, "--rounds", "1", "--store", store)
	}
	return store
}

// A reparse of the second month compares the same captures.
func TestPagesSayWhichLinksAreNewAndMissing(t *testing.T) {
	months := []string{"2026-07", "2026-08"}
	store := (&changingWeb{answers: []string{"al", "la", "aa", "aA", "ab", "at", "an", "nl", "gl"}}).crawlMonths(t, months)
	mustRun(t, "reparse", "--month", months[1], "--as", "2026-08r1", "--store", store)
	b := crawltest.OpenDir(t, store)
	want := []string{"/0 2 1", "/1 1 2", "/2 0 0", "/3 0 0", "/4 0 0", "/5 0 0", "/7 2 1"}
	for _, month := range []string{months[1], "2026-08r1"} {
		sealed, err := crawltest.SealedFiles(t.Context(), b, month)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range crawltest.RowsOf[schema.Page](t, b, sealed, "pages") {
			if p.LinksAdded != nil && p.LinksRemoved != nil {
				got = append(got, fmt.Sprintf("%s %d %d", p.Path, *p.LinksAdded, *p.LinksRemoved))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: path, links_added, links_removed (- want, + got):\n%s", month, diff)
		}
		mustRun(t, "verify", "--month", month, "--store", store)
	}
}

// TestDuckDBComputesTheChangesThatACrawlStores compares the rule of the view page_changes for pages of old
// formats with the columns that the stages frontier and publish store, over several months.
func TestDuckDBComputesTheChangesThatACrawlStores(t *testing.T) {
	duckdbtest.Need(t)
	months := []string{"2026-07", "2026-08", "2026-09", "2026-10"}
	web := newChangingWeb(t, 120, len(months))
	store := web.crawlMonths(t, months)
	views := duckdbtest.SQLFile(t, mustRun(t, "views", "--dialect", "duckdb", "--all-months", "--store", store))
	const question = "SELECT crawl, round, url, change, distance, title_changed, last_crawl, last_round FROM page_changes ORDER BY ALL"
	stored, counts := duckdbtest.SQLFile(t, question), duckdbtest.SQLFile(t, "SELECT change, count(*) FROM page_changes GROUP BY ALL ORDER BY ALL")
	// Tables of old formats lack the columns.
	forget := duckdbtest.SQLFile(t, `ALTER VIEW pages RENAME TO stored_pages;
CREATE VIEW pages AS SELECT * REPLACE (NULL::VARCHAR AS change, NULL::INTEGER AS change_distance, NULL::BOOLEAN AS title_changed) FROM stored_pages;`)
	linkQuery, err := os.ReadFile("../sql/queries/links-added-and-removed.sql")
	if err != nil {
		t.Fatal(err)
	}
	links := duckdbtest.SQLFile(t, `SELECT links_added = coalesce(added, 0) AND links_removed = coalesce(removed, 0) AS right, links_added, links_removed
		FROM page_changes LEFT JOIN (
		SELECT url, crawl, count(*) FILTER (link = 'added') AS added, count(*) FILTER (link = 'removed') AS removed
		FROM (`+strings.TrimSuffix(string(linkQuery), ";\n")+`) GROUP BY ALL) USING (url, crawl)
		WHERE change IN ('cosmetic', 'text') AND last_crawl IS NOT NULL GROUP BY ALL ORDER BY ALL`)
	computed := duckdbtest.SQLFile(t, question+"\n-- computed")
	answers := duckdbtest.Ask(t, views, stored, counts, links, forget, computed)
	if diff := cmp.Diff(answers[stored].Lines(), answers[computed].Lines()); diff != "" {
		t.Errorf("changes of %q (- stored, + computed by the view):\n%s", web.answers, diff)
	}
	if diff := cmp.Diff([]string{"true|0|0", "true|1|2", "true|2|1"}, answers[links].Lines()); diff != "" {
		t.Errorf("links_added and links_removed of %q, and whether links of both captures say so (- want, + got):\n%s", web.answers, diff)
	}
	for _, change := range []string{"new", "none", "cosmetic", "text", "gone"} {
		if !strings.Contains("\n"+strings.Join(answers[counts].Lines(), "\n"), "\n"+change+"|") {
			t.Errorf("no change is %q: %q", change, answers[counts].Lines())
		}
	}
	t.Logf("%q", answers[counts].Lines())
}
