package catalog_test

import (
	"bytes"
	cmp2 "cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// fixture is a small store in a directory whose name is full of SQL and glob characters. Its folders are named like
// partitions and columns, whose values must not come from there.
type fixture struct {
	root   string
	bucket store.Bucket
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	root := filepath.Join(t.TempDir(), "it's [a] store", "host=web1", "url_host_name=x", "crawl=2099-01", "round=7", "subset=all")
	b, err := dirstore.Open(root, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{root, b}
}

func put[T any](t *testing.T, f *fixture, dataset, key string, rows []T) manifest.File {
	t.Helper()
	return tabletest.Write(t, f.bucket, dataset, key, rows)
}

// views writes the SQL script for sealed rounds to a file and returns its name.
func (f *fixture) views(t *testing.T, sealed ...*manifest.Sealed) string {
	t.Helper()
	return duckdbtest.SQLFile(t, script(t, func(b *bytes.Buffer) error { return catalog.DuckDB(b, f.root, catalog.S3{}, "", sealed) }))
}

// noon is 2026-11-02 12:00:00 UTC.
const noon = 1793620800000_000

// capture returns the row of a stored response for url.
func capture(t *testing.T, url string, status int16, mime, languages string) schema.Capture {
	t.Helper()
	key, err := urlkey.KeyOf(url)
	if err != nil {
		t.Fatal(err)
	}
	p, err := urlkey.Split(url)
	if err != nil {
		t.Fatal(err)
	}
	return schema.Capture{
		URLColumns: schema.URLColumns{
			SURT: key.SURT, URL: url, HostName: p.HostName, HostTLD: p.TLD, Host2ndLastPart: p.SecondLast,
			Host3rdLastPart: p.ThirdLast, Host4thLastPart: p.FourthLast, Host5thLastPart: p.FifthLast,
			HostRegistrySuffix: p.RegistrySuffix, HostRegisteredDomain: p.RegisteredDomain,
			HostPrivateSuffix: p.PrivateSuffix, HostPrivateDomain: p.PrivateDomain, HostNameReversed: p.NameReversed,
			Protocol: p.Protocol, Port: p.Port, Path: p.Path, Query: p.Query,
		},
		CaptureColumns: schema.CaptureColumns{
			FetchTime: noon, FetchStatus: status, ContentDigest: "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
			MimeType: mime, MimeDetected: mime, Charset: "UTF-8", Languages: languages,
			WARCFilename: layout.WARC("2026-11", 0, "4f2a", 0, 1, 0), WARCRecordOffset: 400, WARCRecordLength: 1000, WARCSegment: "part-00000",
		},
	}
}

func TestDuckDBOpensEveryDatasetEvenBeforeARoundIsSealed(t *testing.T) {
	for name, sealed := range map[string][]*manifest.Sealed{"no round": nil, "empty parts": {{Crawl: "2026-11"}}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if len(sealed) > 0 {
				sealed[0].Files = emptyParts(t, f, "2026-11", 0)
			}
			files := []string{f.views(t, sealed...)}
			datasets := catalog.Datasets()
			for _, d := range datasets {
				files = append(files, duckdbtest.SQLFile(t, "SELECT * FROM "+d.Name))
			}
			answers := duckdbtest.Ask(t, files...)
			for i, d := range datasets {
				a := answers[files[i+1]]
				if a == nil || len(a.Rows) != 0 {
					t.Fatalf("%s: %+v", d.Name, a)
				}
				var want [][2]string
				for _, c := range append(d.Columns, d.Partitions...) {
					want = append(want, [2]string{c.Name, c.Type.DuckDB()})
				}
				if diff := cmp.Diff(want, a.Columns); diff != "" {
					t.Errorf("%s: columns as DuckDB sees them (-want +got):\n%s", d.Name, diff)
				}
			}
		})
	}
}

// emptyParts writes a part without rows for every dataset.
func emptyParts(t *testing.T, f *fixture, crawl string, round int) []manifest.File {
	t.Helper()
	key := func(dataset string) string { return layout.Table(dataset, crawl, round, 0) }
	return []manifest.File{
		put[schema.Capture](t, f, "captures", layout.Captures(crawl, "warc", round, 0), nil),
		put[schema.Fetch](t, f, "fetches", key("fetches"), nil),
		put[schema.Request](t, f, "requests", key("requests"), nil),
		put[schema.Page](t, f, "pages", key("pages"), nil),
		put[schema.Text](t, f, "text", key("text"), nil),
		put[schema.Link](t, f, "links", key("links"), nil),
		put[schema.Duplicate](t, f, "duplicates", key("duplicates"), nil),
		put[schema.Host](t, f, "hosts", key("hosts"), nil),
		put[schema.Domain](t, f, "domains", key("domains"), nil),
		put[schema.Term](t, f, "terms", key("terms"), nil),
		put[schema.URLRecord](t, f, "urls", key("urls"), nil),
		put[schema.Skip](t, f, "skips", key("skips"), nil),
		put[schema.StageAttempt](t, f, "stages", key("stages"), nil),
		put[schema.Run](t, f, "runs", key("runs"), nil),
	}
}

func TestDuckDBViewsGiveUTCTimesNullsListsAndTheNewestStateOfAURL(t *testing.T) {
	f := newFixture(t)
	no, half := false, 0.5
	round := func(n int) *manifest.Sealed {
		return &manifest.Sealed{Crawl: "2026-11", Round: n, Files: []manifest.File{
			put(t, f, "urls", layout.Table("urls", "2026-11", n, 0), []schema.URLRecord{
				{SURT: "org,example)/", URL: "https://example.org/", State: schema.StateFetched, Fetches: int32(n + 1)},
				{SURT: fmt.Sprintf("org,example)/%d", n), URL: fmt.Sprintf("https://example.org/%d", n), State: schema.StateFound},
			}),
			put(t, f, "pages", layout.Table("pages", "2026-11", n, 0), []schema.Page{
				{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{URL: "https://example.org/"}, CaptureColumns: schema.CaptureColumns{FetchTime: noon},
					Topics: []string{"tea", "o'clock"}, SimHash: -1, Scripts: []string{"Latn", "Zyyy"}, ScriptWords: []int32{7, 2}}, Changed: &no, LinkDensity: &half},
			}),
		}}
	}
	sealed := []*manifest.Sealed{round(0), round(1)}
	round(2) // round 2 has complete parts but is not sealed
	files := []string{
		f.views(t, sealed...),
		duckdbtest.SQLFile(t, "SELECT url, fetches, round FROM urls ORDER BY url"),
		duckdbtest.SQLFile(t, "SELECT count(*) AS n FROM urls_history"),
		duckdbtest.SQLFile(t, `SELECT fetch_time, CAST(fetch_time AS VARCHAR) AS text, topics, simhash, changed, title, script_words, link_density, text_ratio FROM pages WHERE crawl = '2026-11' AND round = 1`),
		duckdbtest.SQLFile(t, `EXPLAIN SELECT url FROM pages WHERE crawl = '2026-11' AND round = 1`),
	}
	answers := duckdbtest.Ask(t, files...)
	want := []map[string]any{
		{"url": "https://example.org/", "fetches": 2.0, "round": 1.0},
		{"url": "https://example.org/0", "fetches": 0.0, "round": 0.0},
		{"url": "https://example.org/1", "fetches": 0.0, "round": 1.0},
	}
	if diff := cmp.Diff(want, answers[files[1]].Rows); diff != "" {
		t.Errorf("urls: %s", diff)
	}
	if got := answers[files[2]].Rows[0]["n"]; got != "4" {
		t.Errorf("urls_history has %v rows, want 4", got)
	}
	want = []map[string]any{{"fetch_time": "2026-11-02 12:00:00", "text": "2026-11-02 12:00:00", "topics": []any{"tea", "o'clock"},
		"simhash": "-1", "changed": false, "title": nil, "script_words": []any{7.0, 2.0}, "link_density": 0.5, "text_ratio": nil}}
	if diff := cmp.Diff(want, answers[files[3]].Rows); diff != "" {
		t.Errorf("pages: %s", diff)
	}
	if plan := fmt.Sprint(answers[files[4]].Rows); !regexp.MustCompile(`Scanning Files:[^/]*1/2`).MatchString(plan) {
		t.Errorf("a query of one round opens the files of others:\n%s", plan)
	}
}

// The URL of cc-index is the one that was requested. Its path and query are those of this URL.
func TestDuckDBShowsCapturesAsCommonCrawlsIndexDoes(t *testing.T) {
	f := newFixture(t)
	var rows []schema.Capture
	var want []map[string]any
	for _, c := range []struct {
		url, sent   string
		path, query any // as the view has them
	}{
		{"http://a.test/", "", "/", nil},
		{"http://b.test/", "http://b.test/?", "/", nil},
		{"http://c.test/p?a=1&b=2", "", "/p", "a=1&b=2"},
		{"http://d.test/p?a=1&b=2", "http://d.test/p?b=2&a=1", "/p", "b=2&a=1"},
		{"http://e.test/p?a", "http://e.test/%70?utm_source=x?y&a", "/%70", "utm_source=x?y&a"},
		{"http://f.test:81/", "http://f.test:81/?utm_source=x", "/", "utm_source=x"},
		{"http://g.test/~q//r", "http://g.test/%7eq//r", "/%7eq//r", nil},
		{"http://h.test/?a=http://i.test/j", "http://h.test/?a=http://i.test/j&", "/", "a=http://i.test/j&"},
	} {
		row := capture(t, c.url, 200, "text/html", "")
		row.Sent = c.sent
		rows = append(rows, row)
		want = append(want, map[string]any{"url": cmp2.Or(c.sent, c.url), "url_path": c.path, "url_query": c.query, "url_host_name": row.HostName, "subset": "warc"})
	}
	sealed := &manifest.Sealed{Crawl: "2026-11", Files: []manifest.File{put(t, f, "captures", layout.Captures("2026-11", "warc", 0, 0), rows)}}
	ask, all := duckdbtest.SQLFile(t, "SELECT url, url_path, url_query, url_host_name, subset FROM ccindex ORDER BY url_host_name"), duckdbtest.SQLFile(t, "SELECT * FROM ccindex")
	answers := duckdbtest.Ask(t, f.views(t, sealed), ask, all)
	if diff := cmp.Diff(want, answers[ask].Rows); diff != "" {
		t.Error(diff)
	}
	var columns []string
	for _, c := range answers[all].Columns {
		columns = append(columns, c[0])
	}
	if diff := cmp.Diff(append(columnNames(ccIndex), "crawl", "subset", "round"), columns); diff != "" {
		t.Errorf("columns (-cc-index +view):\n%s", diff)
	}
}

func TestDuckDBAddsUpTheRoundsOfADomain(t *testing.T) {
	f := newFixture(t)
	slow, fast, changed := 90.0, 20.0, true
	round := func(crawl string, n int, rows ...schema.Domain) *manifest.Sealed {
		s := &manifest.Sealed{Crawl: crawl, Round: n}
		if rows != nil { // an older round has no part
			s.Files = []manifest.File{put(t, f, "domains", layout.Table("domains", crawl, n, 0), rows)}
		}
		return s
	}
	sealed := []*manifest.Sealed{
		round("2026-09", 0),
		round("2026-10", 9, schema.Domain{Domain: "a.org", Planned: 5, NewPages: 4, Requests: 8, FailedRequests: 4, FirstRequest: noon, LastRequest: noon + 5_000, RobotsDigest: "AA", FirstByteP50: &slow}),
		round("2026-10", 10, schema.Domain{Domain: "a.org", Planned: 1, Requests: 2, FirstRequest: noon + 7_000, LastRequest: noon + 9_000, RobotsChanged: &changed, RobotsDigest: "BB", BlockedBy: "forbidden"},
			schema.Domain{Domain: "b.org", Planned: 1}),
		round("2026-10r1", 0, schema.Domain{Domain: "a.org", Planned: 5, FirstByteP50: &fast}),
		round("2026-11", 0, schema.Domain{Domain: "b.org", Planned: 2}),
	}
	files := []string{f.views(t, sealed...), duckdbtest.SQLFile(t, `SELECT domain, CAST(rounds AS INTEGER) AS rounds, first_crawl, first_round, last_crawl, last_round, first_request, last_request,
		CAST(planned AS INTEGER) AS planned, CAST(new_pages AS INTEGER) AS new_pages, error_rate, CAST(robots_changes AS INTEGER) AS robots_changes, robots_digest, blocked_by, first_byte_p50_ms FROM domains_all ORDER BY domain`)}
	answers := duckdbtest.Ask(t, files...)
	want := []map[string]any{
		{"domain": "a.org", "rounds": 2.0, "first_crawl": "2026-10", "first_round": 9.0, "last_crawl": "2026-10", "last_round": 10.0,
			"first_request": "2026-11-02 12:00:00", "last_request": "2026-11-02 12:00:00.009", "planned": 6.0, "new_pages": 4.0, "error_rate": 0.4,
			"robots_changes": 1.0, "robots_digest": "BB", "blocked_by": "forbidden", "first_byte_p50_ms": nil},
		{"domain": "b.org", "rounds": 2.0, "first_crawl": "2026-10", "first_round": 10.0, "last_crawl": "2026-11", "last_round": 0.0,
			"first_request": nil, "last_request": nil, "planned": 3.0, "new_pages": 0.0, "error_rate": nil,
			"robots_changes": 0.0, "robots_digest": nil, "blocked_by": nil, "first_byte_p50_ms": nil},
	}
	if diff := cmp.Diff(want, answers[files[1]].Rows); diff != "" {
		t.Errorf("domains_all: %s", diff)
	}
}

// The test starts a reparse after the first round of a month. A second round of that month follows.
func TestDuckDBsNewestStateOfAURLIsTheMonthsNotAReparses(t *testing.T) {
	f := newFixture(t)
	round := func(crawl string, n int, s schema.URLState) *manifest.Sealed {
		return &manifest.Sealed{Crawl: crawl, Round: n, Files: []manifest.File{
			put(t, f, "urls", layout.Table("urls", crawl, n, 0), []schema.URLRecord{{SURT: "org,example)/", URL: "https://example.org/", State: s}}),
		}}
	}
	first, second, again := round("2026-11", 0, schema.StateFound), round("2026-11", 1, schema.StateFetched), round("2026-11r1", 0, schema.StateFound)
	for name, tc := range map[string]struct {
		sealed        []*manifest.Sealed
		urls, history string
	}{
		"all":         {[]*manifest.Sealed{first, second, again}, "2026-11|1|fetched", "2026-11|0|found 2026-11|1|fetched 2026-11r1|0|found"},
		"the reparse": {[]*manifest.Sealed{again}, "2026-11r1|0|found", "2026-11r1|0|found"},
	} {
		t.Run(name, func(t *testing.T) {
			files := []string{f.views(t, tc.sealed...), duckdbtest.SQLFile(t, "SELECT crawl, round, state FROM urls"),
				duckdbtest.SQLFile(t, "SELECT crawl, round, state FROM urls_history ORDER BY ALL")}
			answers := duckdbtest.Ask(t, files...)
			if got := answers[files[1]].String(); got != tc.urls {
				t.Errorf("urls: %s, want %s", got, tc.urls)
			}
			if got := answers[files[2]].String(); got != tc.history {
				t.Errorf("urls_history: %s, want %s", got, tc.history)
			}
		})
	}
}

// TestDuckDBRunsQueriesWrittenForCommonCrawlsIndex runs the queries in testdata/duckdb/cc-index.
// The test changes only the names of the table and the crawl.
func TestDuckDBRunsQueriesWrittenForCommonCrawlsIndex(t *testing.T) {
	f := newFixture(t)
	robots := capture(t, "https://www.example.org/robots.txt", 200, "text/plain", "")
	moved := capture(t, "https://example.org/", 301, "text/html", "")
	moved.FetchRedirect = "https://www.example.org/"
	sealed := &manifest.Sealed{Crawl: "2026-11"}
	for subset, rows := range map[string][]schema.Capture{
		"warc": {
			capture(t, "http://news.example.co.uk:8080/a/b?x=1", 200, "text/html", "eng"),
			capture(t, "https://blog.example.github.io/", 200, "text/html", "deu,eng"),
			capture(t, "https://www.example.org/", 200, "text/html", "eng,deu"),
			capture(t, "https://www.example.org/de/paper.pdf", 200, "application/pdf", ""),
			capture(t, "https://xn--bcher-kva.example.org/de/", 200, "text/html", "deu"),
		},
		"crawldiagnostics": {moved, capture(t, "https://www.example.org/gone", 404, "text/html", "")},
		"robotstxt":        {robots},
	} {
		sealed.Files = append(sealed.Files, put(t, f, "captures", layout.Captures("2026-11", subset, 0, 0), rows))
	}
	questions, err := filepath.Glob("../../testdata/duckdb/cc-index/*.sql")
	if err != nil || len(questions) < 15 {
		t.Fatalf("%d questions (%v)", len(questions), err)
	}
	changed := strings.NewReplacer(`"ccindex"."ccindex"`, "ccindex", "CC-MAIN-2018-05", "2026-11")
	files, byFile := []string{f.views(t, sealed)}, map[string]string{}
	for _, q := range questions {
		sql, err := os.ReadFile(q)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(sql, []byte(`"ccindex"."ccindex"`)) || !bytes.Contains(sql, []byte("'CC-MAIN-2018-05'")) {
			t.Errorf("%s queries another table or crawl", q)
		}
		file := duckdbtest.SQLFile(t, changed.Replace(string(sql)))
		files = append(files, file)
		byFile[strings.TrimSuffix(filepath.Base(q), ".sql")] = file
	}
	answers := duckdbtest.Ask(t, files...)
	for question, want := range map[string]string{
		"count-by-tld":                   "org|3|2|1 io|1|1|1 uk|1|1|1",
		"count-by-partition":             "2026-11|crawldiagnostics|2 2026-11|robotstxt|1 2026-11|warc|5",
		"count-by-status":                "200|6 301|1 404|1",
		"count-by-mime-type":             "text/html|4|80.0 application/pdf|1|20.0",
		"mime-type-declared-or-detected": "application/pdf|application/pdf|1 text/html|text/html|4",
		"count-by-language":              "eng|2 deu|2",
		"pages-in-a-language":            "https://blog.example.github.io/|deu,eng https://xn--bcher-kva.example.org/de/|deu",
		"domains-of-a-suffix":            "example.co.uk|1",
		"private-domains":                "github.io|example.github.io|1",
		"records-of-a-domain":            "https://www.example.org/|warc/crawl=2026-11/round=0/2026-11-r0-4f2a-part-00000-e1-00000.warc.gz|400|1399 https://www.example.org/de/paper.pdf|warc/crawl=2026-11/round=0/2026-11-r0-4f2a-part-00000-e1-00000.warc.gz|400|1399 https://xn--bcher-kva.example.org/de/|warc/crawl=2026-11/round=0/2026-11-r0-4f2a-part-00000-e1-00000.warc.gz|400|1399",
		"home-pages":                     "blog.example.github.io|deu,eng www.example.org|eng,deu",
		"robots-files":                   "www.example.org|/robots.txt|200",
		"redirects":                      "https://example.org/|https://www.example.org/",
		"pages-a-day":                    "2026-11-02 00:00:00|12|5",
		"international-names":            "xn--bcher-kva.example.org|1",
		"first-path-element":             "de|2 |2 a|1",
		"ports-and-queries":              "http|8080|x=1",
		"host-name-parts":                "org|example|www|2 io|github|example|1 org|example|xn--bcher-kva|1 uk|co|example|1",
		"record-size-by-mime-type":       "application/pdf|1000.0|1 text/html|1000.0|4",
		"surt-prefix":                    "org,example)/ org,example)/ org,example)/de/paper.pdf org,example)/gone org,example)/robots.txt org,example,xn--bcher-kva)/de",
	} {
		a := answers[byFile[question]]
		if a == nil {
			t.Errorf("%s was not asked or gave no answer", question)
			continue
		}
		if got := a.String(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", question, got, want)
		}
	}
}
