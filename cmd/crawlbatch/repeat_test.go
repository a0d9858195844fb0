package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// TestTwoCrawlsAgreeOnEveryStableColumn crawls the demo's web twice.
func TestTwoCrawlsAgreeOnEveryStableColumn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	mustRun(t, "demo", "--store", one)
	mustRun(t, "demo", "--store", two)
	compareStable(t, openDir(t, one), openDir(t, two), withoutStale)
	t.Run("no column is null in every row", func(t *testing.T) { columnsHaveValues(t, openDir(t, one)) })
	t.Run("reduces made twice are the same bytes", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		reduceAgain(t, one, func(to string) { mustRun(t, "run", "--month", demo.Crawl, "--rounds", "1", "--store", to) })
	})
}

// TestS3CrawlEqualsADirectorysCrawl crawls the demo's web into a real S3 server.
func TestS3CrawlEqualsADirectorysCrawl(t *testing.T) {
	server := versitygw.Start(t)
	endpoint, bucket := server.Endpoint, server.NewBucket(t)
	for _, pair := range server.Env(endpoint) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	address, dir := "s3://"+bucket+"/a/prefix", filepath.Join(t.TempDir(), "store")
	mustRun(t, "demo", "--store", address)
	mustRun(t, "demo", "--store", dir)
	b, err := s3store.Open(t.Context(), address, s3store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compareStable(t, b, openDir(t, dir), withoutStale)
}

func openDir(t *testing.T, dir string) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compareStable compares the stable columns of every dataset of two demo crawls, as JSON objects. It
// compares only the rows that normal returns.
func compareStable(t *testing.T, a, b store.Bucket, normal func(dataset string, rows []string) []string) {
	t.Helper()
	for _, d := range catalog.Datasets() {
		if !hasStable(d) {
			continue
		}
		x, y := normal(d.Name, stableRows(t, a, d)), normal(d.Name, stableRows(t, b, d))
		if len(x) == 0 {
			t.Errorf("%s has no rows: nothing is compared", d.Name)
		}
		if diff := gocmp.Diff(x, y); diff != "" {
			lines := strings.Split(diff, "\n")
			t.Errorf("%s: %d and %d rows differ:\n%s", d.Name, len(x), len(y), strings.Join(lines[:min(40, len(lines))], "\n"))
		}
	}
}

// hasStable reports whether a dataset has stable columns. stages and runs have none.
func hasStable(d catalog.Dataset) bool {
	return slices.ContainsFunc(d.Columns, func(c catalog.Column) bool { return c.Stable })
}

// withoutStale removes the rows of requests that failed because the server had closed the kept-alive
// connection, and that were sent again. Two crawls may differ in them, because they depend on timing.
func withoutStale(dataset string, rows []string) []string {
	if dataset != "requests" {
		return rows
	}
	return slices.DeleteFunc(rows, func(row string) bool {
		return strings.Contains(row, `"error_class":null,`) && strings.Contains(row, `"http_status":null,`)
	})
}

// hopsOnce removes the same rows as withoutStale, and also repeated rows. Rows repeat if an attempt
// ends between the hops of a redirect, because that attempt has recorded the first hop and the next
// attempt follows all hops again.
func hopsOnce(dataset string, rows []string) []string {
	rows = withoutStale(dataset, rows)
	if dataset == "requests" || dataset == "captures" {
		rows = slices.Compact(rows)
	}
	return rows
}

// readRows maps each dataset to a function that reads the dataset's rows.
var readRows = map[string]func(*testing.T, store.Bucket, []*manifest.Sealed, string) []any{
	"captures": anyRows[schema.Capture], "fetches": anyRows[schema.Fetch], "requests": anyRows[schema.Request],
	"pages": anyRows[schema.Page], "text": anyRows[schema.Text], "links": anyRows[schema.Link],
	"duplicates": anyRows[schema.Duplicate], "hosts": anyRows[schema.Host], "domains": anyRows[schema.Domain], "terms": anyRows[schema.Term], "urls": anyRows[schema.URLRecord], "skips": anyRows[schema.Skip],
	"stages": anyRows[schema.StageAttempt], "runs": anyRows[schema.Run],
}

// stableRows returns the stable columns of a dataset's rows as JSON, sorted.
func stableRows(t *testing.T, b store.Bucket, d catalog.Dataset) []string {
	return stableRowsOf(t, b, d, demo.Crawl)
}

func stableRowsOf(t *testing.T, b store.Bucket, d catalog.Dataset, crawl string) []string {
	t.Helper()
	sealed, err := sealedFiles(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	read := readRows[d.Name]
	if read == nil {
		t.Fatalf("no row type for dataset %s", d.Name)
	}
	stable := map[string]bool{}
	for _, c := range d.Columns {
		stable[c.Name] = c.Stable
	}
	var rows []string
	for _, row := range read(t, b, sealed, d.Name) {
		text, err := catalog.AppendJSON(nil, row)
		if err != nil {
			t.Fatal(err)
		}
		var columns map[string]any
		if err := json.Unmarshal(text, &columns); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(columns, func(name string, _ any) bool { return !stable[name] })
		text, err = json.Marshal(columns)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(text))
	}
	slices.Sort(rows)
	return rows
}

func anyRows[T any](t *testing.T, b store.Bucket, sealed []*manifest.Sealed, dataset string) []any {
	t.Helper()
	var all []any
	for _, s := range sealed {
		for _, f := range s.FilesOf(dataset) {
			rows := tabletest.Read[T](t, b, f.Key)
			for _, row := range rows {
				all = append(all, row)
			}
		}
	}
	return all
}

// reduceAgain copies the first round's plan and the results of its fetch stage to a new store, lets run
// execute the reduce stages there, and compares every object with the original byte for byte.
func reduceAgain(t *testing.T, from string, run func(to string)) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "again")
	round := "crawl=" + demo.Crawl + "/round=0/"
	copied := 0
	for _, key := range keysBelow(t, from) {
		rest, inRound := strings.CutPrefix(key, round)
		if key == "crawl="+demo.Crawl+"/crawl.json" || inRound && (strings.HasPrefix(rest, "plan-") || strings.HasPrefix(rest, "fetch/")) {
			body, err := os.ReadFile(filepath.Join(from, key))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(to, key)), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(to, key), string(body))
			copied++
		}
	}
	ledgertest.Make(t, openDir(t, to), demo.Crawl)
	run(to)
	made := 0
	if diff := gocmp.Diff(sealsOf(t, from, demo.Crawl)[:1], sealsOf(t, to, demo.Crawl)); diff != "" {
		t.Errorf("the seal (-first +second time):\n%s", diff)
	}
	for _, key := range keysBelow(t, to) {
		if hasCosts(key) {
			continue
		}
		want, err := os.ReadFile(filepath.Join(from, key))
		if err != nil {
			t.Errorf("%s was made only the second time", key)
			continue
		}
		got, err := os.ReadFile(filepath.Join(to, key))
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != string(got) {
			t.Errorf("%s: other bytes the second time", key)
		}
		made++
	}
	if made < copied+20 {
		t.Errorf("only %d objects were made again", made-copied)
	}
}

// hasCosts reports whether an object tells what a round took and cost, as no two runs do: a part of
// stages or runs, and the seal with its manifests, which list the digests of these parts.
func hasCosts(key string) bool {
	return slices.ContainsFunc(publish.Accounts, func(dataset string) bool { return strings.HasPrefix(key, "tables/"+dataset+"/") }) ||
		strings.Contains(key, "/manifests/") || strings.HasSuffix(key, "/sealed.json")
}

// sealsOf returns the seals of a crawl as JSON, with all listed files except the parts of stages and runs.
func sealsOf(t *testing.T, dir, crawl string) (seals []string) {
	t.Helper()
	b := openDir(t, dir)
	sealed, err := roundstate.Sealed(t.Context(), b, crawl)
	if err == nil {
		sealed, err = roundstate.WithFiles(t.Context(), b, sealed, roundstate.Selection{
			Dataset: func(dataset string) bool { return !slices.Contains(publish.Accounts, dataset) },
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sealed {
		if len(s.Files) < 10 {
			t.Errorf("the seal of round %d lists %d files", s.Round, len(s.Files))
		}
		for i := range s.Manifests {
			s.Manifests[i].File = manifest.File{Key: path.Dir(s.Manifests[i].Key)}
		}
		body, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		seals = append(seals, string(body))
	}
	return seals
}

// keysBelow lists the objects of a directory store, except working state.
func keysBelow(t *testing.T, dir string) []string {
	t.Helper()
	var keys []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == ".tmp" {
				return fs.SkipDir
			}
			return err
		}
		key, err := filepath.Rel(dir, path)
		// These documents and the records of attempts are left out, because they have times and costs,
		// which differ between two crawls.
		volatile := []string{"active.json", "crawls.json", "ledger.json"}
		if !slices.Contains(volatile, d.Name()) && !strings.Contains(filepath.ToSlash(key), "/attempts/") {
			keys = append(keys, filepath.ToSlash(key))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
