//go:build lab

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

// TestDuckDBOpensAWholeCrawl queries the views of a complete crawl with DuckDB and compares
// the answers with the store's own rows.
func TestDuckDBOpensAWholeCrawl(t *testing.T) {
	duckdbtest.Need(t)
	d := crawlDemo(t)
	views := duckdbtest.SQLFile(t, mustRun(t, "views", "--dialect", "duckdb", "--store", d.dir))
	t.Run("row counts are those of sealed.json", func(t *testing.T) { compareRowCounts(t, views, d.sealed) })
	t.Run("captures has the columns of cc-index", func(t *testing.T) { describeCaptures(t, views) })
	t.Run("queries for cc-index run on the view ccindex", func(t *testing.T) { askCCIndex(t, views, capturesBySubset(t, d)) })
	t.Run("query runs SQL", func(t *testing.T) { askQuery(t, d.dir) })
	t.Run("the cookbook has answers", func(t *testing.T) { askCookbook(t, d, views) })
	t.Run("the commands that the demo prints work", func(t *testing.T) { followDemo(t, d.told) })
	t.Run("a compacted copy has the same rows", func(t *testing.T) { compareCompacted(t, d.dir, views) })
}

// compareCompacted compares the rows of each dataset in a compacted copy with the published ones.
func compareCompacted(t *testing.T, dir, published string) {
	mustRun(t, "compact", "--month", "2000-01", "--store", dir)
	compacted := mustRun(t, "views", "--dialect", "duckdb", "--store", dir)
	if !strings.Contains(compacted, "/compacted/") {
		t.Fatal("the views do not read the copy")
	}
	keep, compare := "", ""
	for _, dataset := range catalog.Datasets() {
		keep += fmt.Sprintf("CREATE TABLE published_%s AS FROM %[1]s;\n", dataset.Name)
		compare += fmt.Sprintf("SELECT '%s', (SELECT count(*) FROM (FROM %[1]s EXCEPT ALL FROM published_%[1]s)), (SELECT count(*) FROM (FROM published_%[1]s EXCEPT ALL FROM %[1]s)), (SELECT count(*) FROM %[1]s) = (SELECT count(*) FROM published_%[1]s)\nUNION ALL ", dataset.Name)
	}
	question := duckdbtest.SQLFile(t, strings.TrimSuffix(compare, "\nUNION ALL ")+" ORDER BY ALL")
	got := duckdbtest.Ask(t, published, duckdbtest.SQLFile(t, keep), duckdbtest.SQLFile(t, compacted), question)[question].Lines()
	var want []string
	for _, dataset := range catalog.Datasets() {
		want = append(want, dataset.Name+"|0|0|true")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want, +DuckDB):\n%s", diff)
	}
}

// compareRowCounts compares the row count of each dataset's view with the sealed rounds.
func compareRowCounts(t *testing.T, views string, sealed []*manifest.Sealed) {
	want, files, names := map[string][]string{}, []string{views}, map[string]string{}
	for _, dataset := range catalog.Datasets() {
		view := dataset.Name
		if view == "urls" {
			view = "urls_history" // the view urls holds only the newest state of each URL
		}
		file := duckdbtest.SQLFile(t, "SELECT crawl, round, count(*) AS n FROM "+view+" GROUP BY ALL ORDER BY ALL")
		files, names[dataset.Name] = append(files, file), file
		for _, s := range sealed {
			var rows int64
			for _, f := range s.FilesOf(dataset.Name) {
				rows += f.Rows
			}
			if rows == 0 {
				t.Errorf("round %d has no row of %s, so the demo does not show it", s.Round, dataset.Name)
				continue
			}
			want[dataset.Name] = append(want[dataset.Name], fmt.Sprintf("%s|%d|%d", s.Crawl, s.Round, rows))
		}
	}
	newest := duckdbtest.SQLFile(t, "SELECT count(*) = count(DISTINCT url) AND count(*) = (SELECT count(DISTINCT url) FROM urls_history) AS newest FROM urls")
	answers, got := duckdbtest.Ask(t, append(files, newest)...), map[string][]string{}
	for dataset, file := range names {
		got[dataset] = answers[file].Lines()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (- sealed.json, + DuckDB):\n%s", diff)
	}
	if answers[newest].String() != "true" {
		t.Error("the view urls does not have one row for each URL")
	}
}

// ccIndexColumns lists the columns of Common Crawl's cc-index in the order of its flat schema
// (cc-index-table, cc-index-schema-flat.json), with DuckDB's types. Crawlbatch adds the URL that was sent and
// the columns of revisits before the partition columns, and the column round at the end.
const ccIndexColumns = `url_surtkey VARCHAR, url VARCHAR, url_host_name VARCHAR, url_host_tld VARCHAR,
url_host_2nd_last_part VARCHAR, url_host_3rd_last_part VARCHAR, url_host_4th_last_part VARCHAR, url_host_5th_last_part VARCHAR,
url_host_registry_suffix VARCHAR, url_host_registered_domain VARCHAR, url_host_private_suffix VARCHAR, url_host_private_domain VARCHAR,
url_host_name_reversed VARCHAR, url_protocol VARCHAR, url_port INTEGER, url_path VARCHAR, url_query VARCHAR,
fetch_time TIMESTAMP, fetch_status SMALLINT, fetch_redirect VARCHAR,
content_digest VARCHAR, content_mime_type VARCHAR, content_mime_detected VARCHAR, content_charset VARCHAR, content_languages VARCHAR,
content_truncated VARCHAR,
warc_filename VARCHAR, warc_record_offset INTEGER, warc_record_length INTEGER, warc_segment VARCHAR,
sent VARCHAR, revisit VARCHAR, payload_warc_filename VARCHAR, payload_warc_record_offset INTEGER, payload_warc_record_length INTEGER,
crawl VARCHAR, subset VARCHAR, round INTEGER`

func describeCaptures(t *testing.T, views string) {
	describe := duckdbtest.SQLFile(t, "SELECT column_name, column_type FROM (DESCRIBE captures)")
	got := duckdbtest.Ask(t, views, describe)[describe].Lines()
	var want []string
	for column := range strings.SplitSeq(ccIndexColumns, ",") {
		want = append(want, strings.Join(strings.Fields(column), "|"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns of captures (- cc-index, + DuckDB):\n%s", diff)
	}
}

// capturesBySubset reads captures through this project's own reader.
func capturesBySubset(t *testing.T, d *demoStore) map[string][]schema.Capture {
	t.Helper()
	rows := map[string][]schema.Capture{}
	for _, subset := range []string{"warc", "crawldiagnostics", "robotstxt"} {
		var sealed []*manifest.Sealed
		for _, s := range d.sealed {
			of := *s
			of.Files = slices.DeleteFunc(slices.Clone(s.Files), func(f manifest.File) bool { return f.Subset != subset })
			sealed = append(sealed, &of)
		}
		if rows[subset] = crawltest.RowsOf[schema.Capture](t, d.bucket, sealed, "captures"); len(rows[subset]) == 0 {
			t.Fatalf("no capture in subset=%s", subset)
		}
	}
	return rows
}

// followDemo runs the commands that the demo prints.
func followDemo(t *testing.T, told string) {
	_, after, ok := strings.Cut(told, "query them with DuckDB:\n")
	first, after, ok2 := strings.Cut(after, "\n")
	second, _, ok3 := strings.Cut(after, "\n")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("the demo prints no commands:\n%s", told)
	}
	run := func(line string, more ...string) string {
		words, err := exec.Command("sh", "-c", `printf '%s\n' `+strings.TrimPrefix(line, "  crawlbatch ")).Output()
		if err != nil {
			t.Fatalf("sh: %s: %v", line, err)
		}
		return mustRun(t, append(strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"), more...)...)
	}
	var rows []map[string]any
	if answer := run(first, "-o", "json"); json.Unmarshal([]byte(answer), &rows) != nil || len(rows) != 10 {
		t.Fatalf("%s: %s, want 10 rows", first, answer)
	}
	for _, r := range rows {
		for _, column := range []string{"url", "title", "inlinks", "rank"} {
			if r[column] == nil {
				t.Errorf("%s: no %s in %v", first, column, r)
			}
		}
	}
	if list := run(second); !strings.Contains(list, "broken-links") {
		t.Errorf("%s: %s", second, list)
	}
}

// TestS3StoreViewsOpenInDuckDB crawls into a real S3 server and opens the parts in the server's folder with
// DuckDB. It does not run the SQL for s3://, for which DuckDB would have to download an extension, but
// checks its text.
func TestS3StoreViewsOpenInDuckDB(t *testing.T) {
	duckdbtest.Need(t)
	server := versitygw.Start(t)
	for _, setting := range server.Env(server.Endpoint) {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	bucket := server.NewBucket(t)
	address := "s3://" + bucket + "/round=7/crawl=2099-01/demo" // folders that DuckDB must not take for partitions
	mustRun(t, "demo", "--store", address)
	page := filepath.Join(t.TempDir(), "report.html")
	mustRun(t, "report", "--month", demo.Crawl, "--store", address, "--out", page)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "2 finished rounds in <bdi>"+address) {
		t.Errorf("the report of %s: %v", address, err)
	}
	sql := mustRun(t, "views", "--dialect", "duckdb", "--store", address)
	secret, rest, ok := strings.Cut(sql, "\nCREATE OR REPLACE VIEW ")
	endpoint := strings.TrimPrefix(server.Endpoint, "http://")
	for _, want := range []string{
		"INSTALL httpfs;\nLOAD httpfs;", "TYPE s3", "PROVIDER credential_chain", "SCOPE '" + address + "'",
		"REGION 'us-east-1'", "ENDPOINT '" + endpoint + "'", "URL_STYLE 'path'", "USE_SSL false",
	} {
		if !strings.Contains(secret, want) {
			t.Errorf("%s does not precede the views:\n%s", want, secret)
		}
	}
	for _, not := range []string{versitygw.AccessKey, versitygw.SecretKey} {
		if strings.Contains(sql, not) {
			t.Error("credentials are in the SQL")
		}
	}
	if !ok || strings.Count(rest, "'s3://") != strings.Count(rest, "'"+address+"/tables/") {
		t.Errorf("a view opens other objects than those under %s/tables", address)
	}
	b, err := s3store.Open(t.Context(), address, s3store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := crawltest.SealedFiles(t.Context(), b, demo.Crawl)
	if err != nil {
		t.Fatal(err)
	}
	folder := strings.ReplaceAll("CREATE OR REPLACE VIEW "+rest, "'s3://"+bucket+"/", "'"+filepath.Join(server.Dir, bucket)+"/")
	compareRowCounts(t, duckdbtest.SQLFile(t, folder), sealed)
}

// readQuestion reads a query for cc-index and rewrites the query for captures.
func readQuestion(t *testing.T, file string) string {
	t.Helper()
	sql, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(sql, []byte(`"ccindex"."ccindex"`)) || !bytes.Contains(sql, []byte("'CC-MAIN-2018-05'")) {
		t.Errorf("%s queries another table or crawl", file)
	}
	return strings.NewReplacer(`"ccindex"."ccindex"`, "ccindex", "CC-MAIN-2018-05", demo.Crawl).Replace(string(sql))
}
