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

// file describes a file of one row type.
type file struct {
	name  string
	write func(t *testing.T, opts ...table.WriterOption) ([]byte, table.Local)
}

var files = []file{
	{"captures", filled[schema.Capture]},
	{"fetches", filled[schema.Fetch]},
	{"requests", filled[schema.Request]},
	{"pages", filled[schema.Page]},
	{"text", filled[schema.Text]},
	{"links", filled[schema.Link]},
	{"duplicates", filled[schema.Duplicate]},
	{"hosts", filled[schema.Host]},
	{"urls", filled[schema.URLRecord]},
	{"skips", filled[schema.Skip]},
	{"plan", filled[schema.PlannedURL]},
	{"domains", filled[schema.Domain]},
	{"terms", filled[schema.Term]},
	{"stages", filled[schema.StageAttempt]},
	{"runs", filled[schema.Run]},
	{"refused", filled[schema.Refused]},
	{"representatives", filled[schema.Representative]},
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

func TestPublishedFilesHaveTheEncodingsThatEveryReaderHas(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, f := range files {
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
