package table_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

type origin struct {
	From string `parquet:"from,dict"`
	N    int32  `parquet:"n"`
}

// unite writes the union of files as the object all, and returns its description.
func unite(t *testing.T, b store.Bucket, u *table.Union, keys ...string) manifest.File {
	t.Helper()
	var files []table.Placed
	for i, key := range keys {
		files = append(files, table.Placed{Key: key, Added: origin{key, int32(i)}})
	}
	w, err := u.NewWriter(filepath.Join(t.TempDir(), "all"), table.Lookup())
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range u.Merge(t.Context(), b, t.TempDir(), files) {
		if err == nil {
			err = w.Append(row)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Finish(t.Context(), b, "", "all")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A union of files has the rows that each file has.
func TestAUnionKeepsEveryColumn(t *testing.T) {
	for _, test := range []func(*testing.T){
		unionKeeps[schema.Capture], unionKeeps[schema.Fetch], unionKeeps[schema.Request], unionKeeps[schema.Page], unionKeeps[schema.Text], unionKeeps[schema.Link],
		unionKeeps[schema.Duplicate], unionKeeps[schema.Host], unionKeeps[schema.Domain], unionKeeps[schema.Term], unionKeeps[schema.URLRecord], unionKeeps[schema.Skip],
	} {
		test(t)
	}
}

func unionKeeps[T any](t *testing.T) {
	b, rows := newStore(t), extremes[T]()
	tabletest.Write(t, b, "", "first", rows)
	tabletest.Write(t, b, "", "second", rows)
	u, err := table.NewUnion(reflect.TypeFor[T](), reflect.TypeFor[origin]())
	if err != nil {
		t.Fatal(err)
	}
	unite(t, b, u, "first", "second")
	want := append(tabletest.Read[T](t, b, "first"), tabletest.Read[T](t, b, "second")...)
	if d := cmp.Diff(want, tabletest.Read[T](t, b, "all"), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%T (-want +got):\n%s", rows, d)
	}
	from := []origin{{"first", 0}, {"first", 0}, {"first", 0}, {"second", 1}, {"second", 1}, {"second", 1}}
	if d := cmp.Diff(from, tabletest.Read[origin](t, b, "all")); d != "" {
		t.Errorf("%T: origins (-want +got):\n%s", rows, d)
	}
}

// More files than are opened at a time are merged in passes, and equal rows keep the order of their files.
func TestAUnionOfManyFilesIsSorted(t *testing.T) {
	b := newStore(t)
	var keys []string
	for i := range 150 {
		keys = append(keys, fmt.Sprint("part", i))
		var rows []schema.Skip
		for j := range 3 {
			var row schema.Skip
			row.SURT = fmt.Sprint("example)/", j)
			row.URL = fmt.Sprint("http://example/", j)
			rows = append(rows, row)
		}
		tabletest.Write(t, b, "", keys[i], rows)
	}
	u, err := table.NewUnion(reflect.TypeFor[schema.Skip](), reflect.TypeFor[origin](), "url_surtkey", "url")
	if err != nil {
		t.Fatal(err)
	}
	unite(t, b, u, keys...)
	urls, origins := tabletest.Read[schema.Skip](t, b, "all"), tabletest.Read[origin](t, b, "all")
	for i := range 450 {
		if j := fmt.Sprint("example)/", i/150); urls[i].SURT != j || origins[i].N != int32(i%150) || origins[i].From != keys[i%150] {
			t.Fatalf("row %d: %s of %+v, want %s of file %d", i, urls[i].SURT, origins[i], j, i%150)
		}
	}
}
