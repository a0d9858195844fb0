//go:build lab

package lab

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/sql"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/jobstest/namesearch"
	"crawlbatch.io/crawlbatch/jobs/prune"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// yearWeb is a web of three domains over a year. It records the requests of each month.
type yearWeb struct {
	mu    sync.Mutex
	month int            // counts from 0
	asked map[string]int // by month, host, purpose and status
}

// yearHosts are the hosts of a yearWeb. goneDomain is taken down.
var yearHosts = []string{"kept.test", "other.test", goneDomain}

// yearPaths lists the paths of each host besides / and /new-N, which the home page links to in the month N only.
//
//	/same      the same body each month
//	/etag      the same body each month, and 304 if the crawler has it
//	/month     a text for each month
//	/leaves    404 from the month leaves on
var yearPaths = []string{"/same", "/etag", "/month", "/leaves"}

const leaves = 5

// body returns the content of a page in a month, or "" if there is no such page.
func (w *yearWeb) body(host, path string, month int) string {
	links := "/same /etag /month /leaves http://kept.test/ http://other.test/ http://gone.test/month"
	switch {
	case path == "/":
		return crawltest.Page("home of "+host, "", fmt.Sprintf("%s /new-%d", links, month))
	case path == "/month":
		return crawltest.Page(fmt.Sprintf("%s number %d", host, month), "", links)
	case path == "/leaves" && month >= leaves:
		return ""
	case path == "/same", path == "/etag", path == "/leaves", strings.HasPrefix(path, "/new-"):
		return crawltest.Page(host+path, "", links)
	}
	return ""
}

// ServeHTTP implements http.Handler.
func (w *yearWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, status := w.body(r.Host, r.URL.Path, w.month), http.StatusOK
	if r.URL.Path == "/etag" {
		rw.Header().Set("ETag", `"one"`)
	}
	switch {
	case body == "":
		status = http.StatusNotFound
	case r.URL.Path == "/etag" && r.Header.Get("If-None-Match") != "":
		body, status = "", http.StatusNotModified
	}
	purpose := "page"
	if r.URL.Path == "/robots.txt" {
		purpose = "robots"
	}
	w.asked[fmt.Sprintf("%s|%s|%s|%d", yearMonth(w.month), r.Host, purpose, status)]++
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.WriteHeader(status)
	_, _ = io.WriteString(rw, body)
}

// yearMonth returns the name of a month of the year.
func yearMonth(n int) string {
	return time.Date(2025, time.Month(1+n), 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
}

const yearMonths = 12

// crawl crawls a month, which continues the months before. Every third month has two rounds.
func (w *yearWeb) crawl(t *testing.T, dir, addr string, month int) {
	t.Helper()
	w.mu.Lock()
	w.month = month
	w.mu.Unlock()
	name, rounds := yearMonth(month), "1"
	if month%3 == 1 {
		rounds = "2"
	}
	if month == 0 {
		tmp := t.TempDir()
		seeds, conf := filepath.Join(tmp, "urls.txt"), filepath.Join(tmp, "c.yaml")
		var list strings.Builder
		for _, h := range yearHosts {
			for _, p := range append([]string{"/"}, yearPaths...) {
				fmt.Fprintf(&list, "http://%s%s\n", h, p)
			}
		}
		crawltest.Write(t, seeds, list.String())
		crawltest.Write(t, conf, crawltest.Config+"store: {takedown_key: \"${"+goneKey+"}\"}\n")
		mustRun(t, "plan", "--month", name, "--source", seeds, "--config", conf, "--connect-to", "::"+addr, "--store", dir)
	} else {
		_, cfg, err := roundstate.OpenCrawl(t.Context(), crawltest.OpenDir(t, dir), yearMonth(month-1), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
			Bucket: crawltest.OpenDir(t, dir), Crawl: name, Frontier: true, Config: cfg, Clock: monthsAhead{years: month}, Version: version, Scratch: t.TempDir(), Lookup: os.LookupEnv,
		}); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "run", "--month", name, "--rounds", rounds, "--store", dir)
}

// fixedClock tells one time, which decides how old a month is.
type fixedClock struct {
	stages.SystemClock
	now time.Time
}

func (c fixedClock) Now() time.Time { return c.now }

// pruneYear prunes the store by the default rules, as of September of the next year. It returns the names of the
// months whose metadata stay, and of those whose raw captures stay too.
func pruneYear(t *testing.T, b store.Bucket) (kept, raw []string) {
	t.Helper()
	rules := config.Default().Retention
	if rules.Raw != 12 || rules.Metadata != 18 {
		t.Fatalf("the default rules are %+v: choose another time for this test", rules)
	}
	f, err := prune.Apply(t.Context(), prune.Request{
		Bucket: b, Working: rules.WorkingDays, Raw: rules.Raw, Metadata: rules.Metadata, Version: version, Clock: fixedClock{now: time.Date(2026, 9, 15, 0, 0, 0, 0, time.UTC)},
	})
	if err != nil {
		t.Fatal(err)
	}
	refers := int64(0)
	for _, c := range f.Crawls {
		refers += c.Kept.Objects
		if c.Policy != manifest.PruneMetadata {
			kept = append(kept, c.Name)
		}
		if c.Policy == "" || c.Policy == manifest.PruneWorking {
			raw = append(raw, c.Name)
		}
	}
	if diff := cmp.Diff([]string{yearMonth(2), yearMonth(8)}, []string{kept[0], raw[0]}); diff != "" || len(kept) != 10 || len(raw) != 4 {
		t.Fatalf("metadata of %q and raw captures of %q stay (- first expected, + first):\n%s", kept, raw, diff)
	}
	if refers == 0 {
		t.Error("no kept capture refers to a pruned month, so the test does not show that its payload stays")
	}
	return kept, raw
}

// A store has twelve months, of which some have two rounds. The oldest are pruned, others are compacted, and a
// domain is taken down. What is left is whole: for verify, for a reparse, for DuckDB, for pywb and for the next month.
func TestDuckDBAndPywbReadAYearThatForgets(t *testing.T) {
	t.Setenv(goneKey, "correct horse battery staple, 0123456789")
	web := &yearWeb{asked: map[string]int{}}
	server := httptest.NewServer(web)
	t.Cleanup(server.Close)
	addr, dir := server.Listener.Addr().(*net.TCPAddr).String(), filepath.Join(t.TempDir(), "store")
	for month := range yearMonths {
		if month == yearMonths-1 { // CDXJ counts in seconds: of two captures of a URL in one second, pywb replays either
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		}
		web.crawl(t, dir, addr, month)
	}
	b := crawltest.OpenDir(t, dir)
	answers := askYear(t, dir, yearMonth(yearMonths-1))
	kept, raw := pruneYear(t, b)
	for _, month := range kept[len(kept)-6:] {
		mustRun(t, "compact", "--month", month, "--store", dir)
	}
	t.Run("the answers about the newest months stay the same", func(t *testing.T) { compareAnswers(t, answers, askYear(t, dir, yearMonth(yearMonths-1))) })
	mustRun(t, "takedown", "--domain", goneDomain, "--reason", "asked for", "--apply", "--store", dir)
	compacted := kept[2:6]
	for _, month := range compacted {
		mustRun(t, "compact", "--month", month, "--store", dir)
	}
	names := &namesearch.Names{}
	names.Domain(goneDomain, "www."+goneDomain)
	if left, _ := namesLeft(t, b, names); len(left) > 0 {
		t.Errorf("%d places still name %s:\n%s", len(left), goneDomain, strings.Join(left, "\n"))
	}
	for _, month := range kept {
		mustRun(t, "verify", "--month", month, "--store", dir)
	}
	t.Run("a month can be parsed again", func(t *testing.T) {
		as := raw[1] + "r1"
		mustRun(t, "reparse", "--month", raw[1], "--as", as, "--store", dir)
		mustRun(t, "verify", "--month", as, "--store", dir)
		for _, d := range catalog.Datasets() {
			if !slices.Contains([]string{"fetches", "captures", "requests", "links", "text"}, d.Name) {
				continue // a takedown leaves ranks, numbers of links to a page and terms as they were
			}
			want, got := crawltest.StableRows(t, b, d, raw[1]), crawltest.StableRows(t, b, d, as)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], as, raw[1])
			}
			slices.Sort(got)
			if d.Name == "links" { // the month with the content of /etag, which answers 304, was pruned with its links
				want = slices.DeleteFunc(want, func(row string) bool { return strings.Contains(row, `/etag","source_surtkey"`) })
			}
			if diff := cmp.Diff(want, got); len(want) == 0 || diff != "" {
				t.Errorf("%s: %d and %d rows differ:\n%s", d.Name, len(want), len(got), diff)
			}
		}
	})
	t.Run("DuckDB counts what the web sent", func(t *testing.T) { countYear(t, web, dir, kept, compacted) })
	t.Run("pywb replays the kept captures", func(t *testing.T) { replayYear(t, web, dir, raw) })
	t.Run("the next month", func(t *testing.T) {
		web.crawl(t, dir, addr, yearMonths)
		mustRun(t, "verify", "--month", yearMonth(yearMonths), "--store", dir)
		for of := range web.asked {
			if strings.HasPrefix(of, yearMonth(yearMonths)+"|"+goneDomain) {
				t.Errorf("%s was requested", of)
			}
		}
		// Every page links to what was taken down, before and after. A takedown is no change of their links.
		sealed, err := crawltest.SealedFiles(t.Context(), b, yearMonth(yearMonths))
		if err != nil {
			t.Fatal(err)
		}
		var links []string
		for _, p := range crawltest.RowsOf[schema.Page](t, b, sealed, "pages") {
			if p.LinksAdded == nil || p.LinksRemoved == nil {
				continue
			}
			if links = append(links, fmt.Sprintf("%s %d %d", p.Path, *p.LinksAdded, *p.LinksRemoved)); p.Path != "/" && p.Path != "/month" && *p.LinksAdded+*p.LinksRemoved > 0 {
				t.Errorf("%s gained %d links and lost %d", p.URL, *p.LinksAdded, *p.LinksRemoved)
			}
		}
		for _, want := range []string{"/ 1 1", "/month 0 0"} { // the home page links to another /new-N
			if !slices.Contains(links, want) {
				t.Errorf("no page is %q: %q", want, links)
			}
		}
	})
}

// askYear returns DuckDB's answers to the cookbook about a month.
func askYear(t *testing.T, dir, month string) map[string][]string {
	t.Helper()
	if os.Getenv(duckdbtest.Modules) == "" {
		return nil
	}
	return askAll(t, duckdbtest.SQLFile(t, mustRun(t, "views", "--dialect", "duckdb", "--month", month, "--store", dir)))
}

// askAll returns DuckDB's answers to the cookbook over views.
func askAll(t *testing.T, views string) map[string][]string {
	t.Helper()
	about := map[string]string{"url": "http://kept.test/month", "host": "kept.test", "domain": "kept.test", "term": "kept"}
	files, names := []string{views}, map[string]string{}
	for _, q := range cookbook(t) {
		text, err := q.Fill(about[q.Of])
		if err != nil {
			t.Fatal(err)
		}
		names[q.Name] = duckdbtest.SQLFile(t, text)
		files = append(files, names[q.Name])
	}
	got, answers := duckdbtest.Ask(t, files...), map[string][]string{}
	for name, file := range names {
		answers[name] = got[file].Lines()
	}
	return answers
}

func compareAnswers(t *testing.T, before, after map[string][]string) {
	t.Helper()
	duckdbtest.Need(t)
	some := 0
	for name, rows := range before {
		if len(rows) > 0 {
			some++
		}
		slices.Sort(rows)
		slices.Sort(after[name])
		if diff := cmp.Diff(rows, after[name]); diff != "" {
			t.Errorf("%s (- before, + after):\n%s", name, diff)
		}
	}
	if some < len(before)/2 {
		t.Errorf("only %d of %d questions have an answer", some, len(before))
	}
}

// countYear compares what DuckDB counts in the kept months with the requests that the web saw. Some of the months
// are read from a compacted copy; the answers are the same from the published parts.
func countYear(t *testing.T, web *yearWeb, dir string, kept, compacted []string) {
	duckdbtest.Need(t)
	script := mustRun(t, "views", "--dialect", "duckdb", "--all-months", "--store", dir)
	for _, month := range kept {
		if got, want := strings.Contains(script, "/compacted/crawl="+month+"/"), slices.Contains(compacted, month); got != want {
			t.Errorf("the views read a copy of %s: %t", month, got)
		}
	}
	views := duckdbtest.SQLFile(t, script)
	compareAnswers(t, askAll(t, duckdbtest.SQLFile(t, mustRun(t, "views", "--dialect", "duckdb", "--all-months", "--published", "--store", dir))), askAll(t, views))

	var requests, gone []string
	outcomes := map[string]int{}
	for of, n := range web.asked {
		month, rest, _ := strings.Cut(of, "|")
		host, what, _ := strings.Cut(rest, "|")
		if !slices.Contains(kept, month) || host == goneDomain {
			continue
		}
		requests = append(requests, fmt.Sprintf("%s|%d", of, n))
		switch what {
		case "page|200":
			outcomes[month+"|"+string(schema.OK)] += n
		case "page|304":
			outcomes[month+"|"+string(schema.NotModified)] += n
		case "page|404":
			outcomes[month+"|"+string(schema.HTTP4xx)] += n
		}
	}
	slices.Sort(requests)
	for _, host := range []string{"kept.test", "other.test"} {
		gone = append(gone, "http://"+host+"/leaves|"+yearMonth(leaves-1)+"|0|"+yearMonth(leaves)+"|0")
	}
	var ended []string
	for of, n := range outcomes {
		ended = append(ended, fmt.Sprintf("%s|%d", of, n))
	}
	slices.Sort(ended)
	const reparsed = " WHERE crawl NOT LIKE '%r%'"
	ask := map[string]string{
		"requests": "SELECT crawl, host, purpose, http_status, count(*) FROM requests" + reparsed + " GROUP BY ALL ORDER BY ALL",
		"outcomes": "SELECT crawl, outcome, sum(urls) FROM (" + yearQuestion(t, "outcomes") + ")" + reparsed + " GROUP BY ALL ORDER BY ALL",
		"gone":     "SELECT * FROM (" + yearQuestion(t, "gone-pages") + ")" + reparsed + " AND url NOT LIKE '%/new-%' ORDER BY ALL",
	}
	files := []string{views}
	for name, text := range ask {
		ask[name] = duckdbtest.SQLFile(t, text)
		files = append(files, ask[name])
	}
	answers := duckdbtest.Ask(t, files...)
	for name, want := range map[string][]string{"requests": requests, "outcomes": ended, "gone": gone} {
		if diff := cmp.Diff(want, answers[ask[name]].Lines()); diff != "" {
			t.Errorf("%s (- the web, + DuckDB):\n%s", name, diff)
		}
	}
}

// yearQuestion returns the SQL of a question without its end.
func yearQuestion(t *testing.T, name string) string {
	t.Helper()
	all := cookbook(t)
	return strings.TrimSuffix(all[slices.IndexFunc(all, func(q sql.Question) bool { return q.Name == name })].SQL, ";\n")
}

// pywbPython is the environment variable that names a Python interpreter with pywb.
const pywbPython = "CRAWLBATCH_PYWB"

// replayYear replays the pages of the last month with pywb. Some of them are revisits whose payloads are in months
// whose raw captures were pruned.
func replayYear(t *testing.T, web *yearWeb, dir string, raw []string) {
	python := os.Getenv(pywbPython)
	if python == "" {
		t.Skipf("set %s to a Python interpreter with pywb: `make test-warc` installs it and runs this test", pywbPython)
	}
	const timestamp, first = "20060102150405", "20000101000000"
	last := raw[len(raw)-1]
	b := crawltest.OpenDir(t, dir)
	sealed, err := crawltest.SealedFiles(t.Context(), b, last)
	if err != nil {
		t.Fatal(err)
	}
	type want struct {
		status int
		body   string
	}
	wanted, elsewhere := map[string]want{}, 0
	var lines strings.Builder
	for _, c := range crawltest.RowsOf[schema.Capture](t, b, sealed, "captures") {
		path := strings.TrimPrefix(c.URL, c.Protocol+"://"+c.HostName)
		if path == "/robots.txt" {
			continue
		}
		at, w := c.FetchTime.Time().Format(timestamp), want{int(c.FetchStatus), web.body(c.HostName, path, yearMonths-1)}
		if c.Revisit == schema.RevisitNotModified { // pywb replays what the server sent; the page is the first capture
			fmt.Fprintf(&lines, "%s %s\n", first, c.URL)
			wanted[first+" "+c.URL] = want{http.StatusOK, w.body}
			w.body = ""
		}
		if c.PayloadFilename != "" && !slices.ContainsFunc(raw, func(m string) bool { return strings.Contains(c.PayloadFilename, "crawl="+m+"/") }) {
			elsewhere++
		}
		wanted[at+" "+c.URL] = w
		fmt.Fprintf(&lines, "%s %s\n", at, c.URL)
	}
	if len(wanted) < 8 || elsewhere == 0 {
		t.Fatalf("%d pages, and %d of them have their payload in a pruned month: %v", len(wanted), elsewhere, wanted)
	}
	wanted[first+" http://gone.test/month"] = want{http.StatusNotFound, ""}
	fmt.Fprintf(&lines, "%s http://gone.test/month\n", first)
	cmd := exec.CommandContext(t.Context(), python, "../../testdata/pywb/replay.py", dir)
	cmd.Stdin = strings.NewReader(lines.String())
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("replay.py: %v\n%s", err, said.String())
	}
	for line := range strings.Lines(string(out)) {
		var got struct {
			At, URL, Location, Body string
			Status                  int
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		body, err := base64.StdEncoding.DecodeString(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		w := wanted[got.At+" "+got.URL]
		if got.Status != w.status || w.body != "" && string(body) != w.body {
			t.Errorf("%s at %s: pywb answers %d %s %.300q, want %d %.100q", got.URL, got.At, got.Status, got.Location, body, w.status, w.body)
		}
		delete(wanted, got.At+" "+got.URL)
	}
	if len(wanted) > 0 {
		t.Errorf("pywb says nothing about %v", slices.Collect(maps.Keys(wanted)))
	}
}
