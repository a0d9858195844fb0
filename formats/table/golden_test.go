package table_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
)

// file describes a file of one row type. format1 is the digest of the file that the last crawlbatch
// of format 1 wrote for the rows of filled.
type file struct {
	name    string
	write   func(t *testing.T, opts ...table.WriterOption) ([]byte, table.Local)
	fast    bool // crawlbatch wrote the file with Fast in format 1
	format1 string
}

var files = []file{
	{"captures", filled[schema.Capture], false, "325600ba344413e4"},
	{"fetches", filled[schema.Fetch], false, "28257b696f2ce612"},
	{"requests", filled[schema.Request], false, "c5b8e107522204d1"},
	{"pages", filled[schema.Page], false, "fcbfaedf2baf004e"},
	{"text", filled[schema.Text], false, "868fec37ab3c8400"},
	{"links", filled[schema.Link], false, "e265466666fca18e"},
	{"duplicates", filled[schema.Duplicate], false, "523c9e6f4509cfde"},
	{"hosts", filled[schema.Host], false, "7e6580a89ea5913c"},
	{"urls", filled[schema.URLRecord], false, "b4b19b70c611a2aa"},
	{"skips", filled[schema.Skip], false, "22fc234fab7a01b1"},
	{"plan", filled[schema.PlannedURL], true, "abec1b03bb8715fe"},
	{"refused", filled[schema.Refused], false, "be358bdda69431ee"},
	{"working pages", filled[schema.WorkingPage], true, "3ad15dfc93378df5"},
	{"edges", filled[schema.Edge], true, "bcc62b045c129ee4"},
	{"representatives", filled[schema.Representative], false, "401cb481efd33326"},
}

// filled writes several pages of rows with nulls. Column name and row number determine each value,
// so that a new column changes no other column.
func filled[T any](t *testing.T, opts ...table.WriterOption) ([]byte, table.Local) {
	t.Helper()
	var b bytes.Buffer
	w, err := table.NewWriterTo[T](&b, append(opts, table.RowGroups(2000, 0))...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		var row T
		for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
			if !f.Anonymous {
				fill(reflect.ValueOf(&row).Elem().FieldByIndex(f.Index), f.Name, i)
			}
		}
		if err := w.Append(&row); err != nil {
			t.Fatal(err)
		}
	}
	l, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), l
}

func fill(v reflect.Value, column string, i int) {
	h := fnv.New64a()
	fmt.Fprint(h, column, i/3)
	n := h.Sum64()
	if n%5 == 0 {
		return // leaves the column null or zero
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s-%d-%s", column, n%1000, "äöü of a text that repeats"[:n%27]))
	case reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n % 30000))
	case reflect.Bool:
		v.SetBool(n%2 == 0)
	case reflect.Float64:
		v.SetFloat(float64(n%1000) / 7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), column, i)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), int(n%4), 4))
		for j := range v.Len() {
			fill(v.Index(j), column, i*7+j)
		}
	}
}

func TestFormat1HasTheBytesThatItHadBeforeFormat2Came(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, f := range files {
		opts := []table.WriterOption{table.Format(1)}
		if f.fast {
			opts = append(opts, table.Fast())
		}
		if _, l := f.write(t, opts...); l.SHA256[:16] != f.format1 {
			t.Errorf("%s: digest %s, format 1 gave %s", f.name, l.SHA256[:16], f.format1)
		}
	}
}

func TestFormat2HasTheEncodingsThatEveryReaderHas(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, f := range files {
		if f.name == "edges" {
			continue // working files have the same bytes in every format
		}
		data, _ := f.write(t)
		pf, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range pf.Metadata().RowGroups {
			for _, c := range group.Columns {
				for _, e := range c.MetaData.Encoding {
					if e != format.Plain && e != format.RLE && e != format.RLEDictionary {
						t.Errorf("%s: %v has encoding %v", f.name, c.MetaData.PathInSchema, e)
					}
				}
				for _, s := range c.MetaData.EncodingStats {
					if s.PageType != format.DataPage && s.PageType != format.DictionaryPage {
						t.Errorf("%s: %v has a page of type %v", f.name, c.MetaData.PathInSchema, s.PageType)
					}
				}
				if len(c.MetaData.EncodingStats) == 0 || c.MetaData.Codec != format.Zstd {
					t.Errorf("%s: %v is compressed with %v, its pages are %v", f.name, c.MetaData.PathInSchema, c.MetaData.Codec, c.MetaData.EncodingStats)
				}
			}
		}
	}
}
