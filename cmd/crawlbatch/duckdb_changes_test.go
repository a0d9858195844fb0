package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
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
//	n     304, or the text a without an ETag in the request
//	g G   404, 410
//	s     a page that says "not found" with status 200
//	e     500
//	r     a redirect to the next path
const changingAnswers = "aabbABtngGser"

func newChangingWeb(t *testing.T, paths, months int) *changingWeb {
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := &changingWeb{answers: []string{"anbg", "nnnn", "gaga", "sasb", "gsan", "aAtA", "erea", "rrnr", "aaaa"}} // some that matter
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
		fmt.Fprintf(rw, "<!DOCTYPE html><html lang=en><head><title>%s %d</title><!-- %s --></head><body><main><h1>Number %d</h1>%s</main></body></html>", title, path, comment, path, filler(text))
	}
	switch answer := w.answers[path][w.month.Load()]; answer {
	case 'a', 'b':
		send("Page", string(answer)+fmt.Sprint(path), "")
	case 'A', 'B':
		send("Page", strings.ToLower(string(answer))+fmt.Sprint(path), fmt.Sprint("month ", w.month.Load()))
	case 't':
		send("Another title", fmt.Sprint("a", path), "")
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

// TestDuckDBComputesTheChangesThatACrawlStores compares the rule of the view page_changes for pages of old
// formats with the columns that the stages frontier and publish store, over several months.
func TestDuckDBComputesTheChangesThatACrawlStores(t *testing.T) {
	duckdbtest.Need(t)
	months := []string{"2026-07", "2026-08", "2026-09", "2026-10"}
	web := newChangingWeb(t, 120, len(months))
	server := httptest.NewServer(web)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	store, seeds, conf := filepath.Join(dir, "store"), filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
	var list strings.Builder
	for path := range web.answers {
		fmt.Fprintf(&list, "http://a.test/%d\n", path)
	}
	write(t, seeds, list.String())
	write(t, conf, reparseConfig)
	for i, month := range months {
		web.month.Store(int32(i))
		if i == 0 {
			mustRun(t, "plan", "--month", month, "--source", seeds, "--config", conf, "--connect-to", "::"+server.Listener.Addr().(*net.TCPAddr).String(), "--store", store)
		} else {
			b := openDir(t, store)
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
	views := duckdbtest.SQLFile(t, crawlbatch(t, "views", "--dialect", "duckdb", "--all-months", "--store", store))
	const question = "SELECT crawl, round, url, change, distance, title_changed, last_crawl, last_round FROM page_changes ORDER BY ALL"
	stored, counts := duckdbtest.SQLFile(t, question), duckdbtest.SQLFile(t, "SELECT change, count(*) FROM page_changes GROUP BY ALL ORDER BY ALL")
	// Tables of old formats lack the columns.
	forget := duckdbtest.SQLFile(t, `ALTER VIEW pages RENAME TO stored_pages;
CREATE VIEW pages AS SELECT * REPLACE (NULL::VARCHAR AS change, NULL::INTEGER AS change_distance, NULL::BOOLEAN AS title_changed) FROM stored_pages;`)
	computed := duckdbtest.SQLFile(t, question+"\n-- computed")
	answers := duckdbtest.Ask(t, views, stored, counts, forget, computed)
	if diff := cmp.Diff(answers[stored].Lines(), answers[computed].Lines()); diff != "" {
		t.Errorf("changes of %q (- stored, + computed by the view):\n%s", web.answers, diff)
	}
	for _, change := range []string{"new", "none", "cosmetic", "text", "gone"} {
		if !strings.Contains("\n"+strings.Join(answers[counts].Lines(), "\n"), "\n"+change+"|") {
			t.Errorf("no change is %q: %q", change, answers[counts].Lines())
		}
	}
	t.Logf("%q", answers[counts].Lines())
}
