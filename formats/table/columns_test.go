package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// The library's own reader of rows is slow but correct.
func TestColumnsAreReadAsTheLibraryReadsThem(t *testing.T) {
	t.Run("Capture", readsAsTheLibrary[schema.Capture])
	t.Run("Fetch", readsAsTheLibrary[schema.Fetch])
	t.Run("Request", readsAsTheLibrary[schema.Request])
	t.Run("Page", readsAsTheLibrary[schema.Page])
	t.Run("WorkingPage", readsAsTheLibrary[schema.WorkingPage])
	t.Run("Link", readsAsTheLibrary[schema.Link])
	t.Run("Host", readsAsTheLibrary[schema.Host])
	t.Run("URLRecord", readsAsTheLibrary[schema.URLRecord])
	t.Run("PlannedURL", readsAsTheLibrary[schema.PlannedURL])
}

func readsAsTheLibrary[T any](t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]T, 3000)
	for i := range rows {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
			if !f.Anonymous {
				fill(random, reflect.ValueOf(&rows[i]).Elem().FieldByIndex(f.Index))
			}
		}
	}
	b := bucketOf(t)
	for i, opts := range [][]WriterOption{{}, {Fast()}} {
		key := fmt.Sprintf("rows-%d.parquet", i)
		l, err := WriteFile(t.TempDir()+"/rows", func(yield func(T, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}, append(opts, func(o *writerOptions) { o.rowGroupRows = 1100 })...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Commit(t.Context(), b, l, "", key); err != nil {
			t.Fatal(err)
		}
		var read [2][]T
		for i := range read {
			r, err := Open[T](t.Context(), b, key)
			if err != nil {
				t.Fatal(err)
			}
			r.boxed = i == 1
			for row, err := range r.All(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				read[i] = append(read[i], row)
			}
			if want := i == 1; r.boxed != want {
				t.Errorf("%s: the library reads the rows: %t", key, r.boxed)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if len(read[0]) != len(rows) || !reflect.DeepEqual(read[1], read[0]) { // cmp.Diff takes ten times as long
			t.Errorf("%d rows (-library +columns):\n%s", len(read[0]), cmp.Diff(read[1], read[0]))
		}
	}
}

// fill sets a column, or leaves it empty.
func fill(random *rand.Rand, v reflect.Value) {
	if random.IntN(3) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", random.IntN(400)))
		if random.IntN(30) == 0 { // longer than the texts that are copied together
			v.SetString(strings.Repeat("t", random.IntN(1500)))
		}
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(random.Float64())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem())
	case reflect.Slice:
		n := random.IntN(5)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(random, v.Index(i))
		}
	default:
		v.SetInt(int64(int16(random.Uint32())))
	}
}

func bucketOf(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A damaged footer may count fewer rows than the columns have. The last row must not look like the
// end of the file.
func TestAFooterThatCountsTooFewRowsIsDamage(t *testing.T) {
	for _, list := range []bool{false, true} { // with a list, a column has more values than rows
		rows := make([]wideRow, 300)
		for i := range rows {
			rows[i].URL = fmt.Sprint(i)
			if list {
				rows[i].Names = []string{"a", "b"}
			}
		}
		for _, lost := range []int64{0, 1, 200} {
			w, err := NewWriter[wideRow](t.TempDir() + "/rows")
			if err == nil {
				err = w.Write(rows)
			}
			if err != nil {
				t.Fatal(err)
			}
			b := bucketOf(t)
			if _, err := Finish(t.Context(), w, b, "", "rows"); err != nil {
				t.Fatal(err)
			}
			r, err := Open[wideRow](t.Context(), b, "rows")
			if err != nil {
				t.Fatal(err)
			}
			if err = r.startGroup(0); err == nil {
				r.columns.rows = int64(len(rows)) - lost
				r.next = 1
				_, err = r.Read(make([]wideRow, 400))
			}
			if damaged := errors.Is(err, ErrCorrupt); damaged != (lost > 0) || !damaged && err != io.EOF {
				t.Errorf("%d rows less, lists=%t: %v", lost, list, err)
			}
			r.Close()
		}
	}
}

// wideRow is a row with every shape of column.
type wideRow struct {
	URL    string   `parquet:"url"`
	Status int16    `parquet:"status,optional"`
	Kept   *bool    `parquet:"kept"`
	Names  []string `parquet:"names,list"`
}

// A comparer compares rows in batches, and a batch here has rows from two pages.
func TestAComparerFindsEveryDifference(t *testing.T) {
	yes, no := true, false
	rows := func() []wideRow {
		out := make([]wideRow, 200)
		for i := range out {
			out[i] = wideRow{URL: fmt.Sprint("u", i, strings.Repeat("/", 20*i)), Status: int16(i % 3), Names: []string{"a", "b"}[:i%3]}
			if i%2 == 0 {
				out[i].Kept = &no
			}
		}
		return out
	}
	sorted := SortedBy("url")
	for name, c := range map[string]struct {
		same   bool
		opts   []WriterOption
		end    int // number of rows after which a row group ends
		change func([]wideRow) []wideRow
	}{
		"none":               {same: true},
		"a value":            {change: func(r []wideRow) []wideRow { r[150].Status = 9; return r }},
		"a value for null":   {change: func(r []wideRow) []wideRow { r[151].Kept = &no; return r }},
		"another value":      {change: func(r []wideRow) []wideRow { r[150].Kept = &yes; return r }},
		"an element":         {change: func(r []wideRow) []wideRow { r[2].Names = []string{"a", "c"}; return r }},
		"a shorter list":     {change: func(r []wideRow) []wideRow { r[2].Names = nil; return r }},
		"a row less":         {change: func(r []wideRow) []wideRow { return r[:199] }},
		"a row more":         {change: func(r []wideRow) []wideRow { return append(r, wideRow{}) }},
		"two rows swapped":   {change: func(r []wideRow) []wideRow { r[7], r[8] = r[8], r[7]; return r }},
		"no rows":            {change: func([]wideRow) []wideRow { return nil }},
		"the sort order":     {opts: []WriterOption{SortedBy("status")}},
		"the codec":          {opts: []WriterOption{sorted, Fast()}},
		"the end of a group": {end: 100},
	} {
		b := bucketOf(t)
		l, err := WriteFile(t.TempDir()+"/rows", func(yield func(wideRow, error) bool) {
			for _, row := range rows() {
				if !yield(row, nil) {
					return
				}
			}
		}, sorted)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Commit(t.Context(), b, l, "d", "key")
		if err != nil {
			t.Fatal(err)
		}
		opts := c.opts
		if opts == nil {
			opts = []WriterOption{sorted}
		}
		made := rows()
		if c.change != nil {
			made = c.change(made)
		}
		got, err := compareAll(t.Context(), b, made, c.end, opts)
		switch {
		case c.same && (err != nil || got != want):
			t.Errorf("%s: %+v, not %+v: %v", name, got, want, err)
		case !c.same && !errors.Is(err, ErrDiffers):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func compareAll(ctx context.Context, b store.Bucket, rows []wideRow, end int, opts []WriterOption) (f any, err error) {
	w, err := NewComparer[wideRow](ctx, b, "key", nil, opts...)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	for i := range rows {
		if err := w.Append(&rows[i]); err != nil {
			return nil, err
		}
		if i+1 == end {
			if err := w.EndRowGroup(); err != nil {
				return nil, err
			}
		}
	}
	return Finish(ctx, w, b, "d", "key")
}
