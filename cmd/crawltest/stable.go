package crawltest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

// CompareStable compares the stable columns of every dataset of two demo crawls, as JSON objects. It
// compares only the rows that normal returns.
func CompareStable(t *testing.T, a, b store.Bucket, normal func(dataset string, rows []string) []string) {
	t.Helper()
	for _, d := range catalog.Datasets() {
		if !HasStable(d) {
			continue
		}
		x, y := normal(d.Name, stableRows(t, a, d)), normal(d.Name, stableRows(t, b, d))
		if len(x) == 0 {
			t.Errorf("%s has no rows: nothing is compared", d.Name)
		}
		if diff := cmp.Diff(x, y); diff != "" {
			lines := strings.Split(diff, "\n")
			t.Errorf("%s: %d and %d rows differ:\n%s", d.Name, len(x), len(y), strings.Join(lines[:min(40, len(lines))], "\n"))
		}
	}
}

// HasStable reports whether a dataset has stable columns. stages and runs have none.
func HasStable(d catalog.Dataset) bool {
	return slices.ContainsFunc(d.Columns, func(c catalog.Column) bool { return c.Stable })
}

// WithoutStale removes the rows of requests that failed because the server had closed the kept-alive
// connection, and that were sent again. Two crawls may differ in them, because they depend on timing.
func WithoutStale(dataset string, rows []string) []string {
	if dataset != "requests" {
		return rows
	}
	return slices.DeleteFunc(rows, func(row string) bool {
		return strings.Contains(row, `"error_class":null,`) && strings.Contains(row, `"http_status":null,`)
	})
}

// HopsOnce removes the same rows as withoutStale, and also repeated rows. Rows repeat if an attempt
// ends between the hops of a redirect, because that attempt has recorded the first hop and the next
// attempt follows all hops again.
func HopsOnce(dataset string, rows []string) []string {
	rows = WithoutStale(dataset, rows)
	if dataset == "requests" || dataset == "captures" {
		rows = slices.Compact(rows)
	}
	return rows
}

// ReadRows maps each dataset to a function that reads the dataset's rows.
var ReadRows = map[string]func(*testing.T, store.Bucket, []*manifest.Sealed, string) []any{
	"captures": anyRows[schema.Capture], "fetches": anyRows[schema.Fetch], "requests": anyRows[schema.Request],
	"pages": anyRows[schema.Page], "text": anyRows[schema.Text], "links": anyRows[schema.Link],
	"duplicates": anyRows[schema.Duplicate], "hosts": anyRows[schema.Host], "domains": anyRows[schema.Domain], "terms": anyRows[schema.Term], "urls": anyRows[schema.URLRecord], "skips": anyRows[schema.Skip],
	"stages": anyRows[schema.StageAttempt], "runs": anyRows[schema.Run],
}

// stableRows is StableRows of the demo.
func stableRows(t *testing.T, b store.Bucket, d catalog.Dataset) []string {
	return StableRows(t, b, d, demo.Crawl)
}

// StableRows returns the stable columns of the rows that a crawl has in a dataset as JSON, sorted.
func StableRows(t *testing.T, b store.Bucket, d catalog.Dataset, crawl string) []string {
	t.Helper()
	sealed, err := SealedFiles(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	read := ReadRows[d.Name]
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
