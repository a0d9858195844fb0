package table

import (
	"bytes"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// What an older format froze has the bytes of the struct before columns came.
func TestColumnsOfAnOlderFormat(t *testing.T) {
	type inner struct {
		Host string `parquet:"host,dict"`
		Path string `parquet:"path,optional" since:"2"`
	}
	type row struct {
		inner
		Rule  string `parquet:"rule,optional"`
		Extra *int64 `parquet:"extra,optional" since:"2"`
		Last  int32  `parquet:"last"`
	}
	n := int64(7)
	rows := []row{{inner{"a.example", "/p"}, "r", &n, 3}, {inner{"b.example", ""}, "", nil, 4}}
	if got, _ := written(t, rows, Format(1)); !bytes.Equal(got, beforeFormat2(t)) {
		t.Error("the file differs from one of the struct before format 2")
	}
	for _, format := range []int{0, 2} {
		if _, columns := written(t, rows, Format(format)); !slices.Equal(columns, []string{"host", "path", "rule", "extra", "last"}) {
			t.Errorf("format %d has columns %v", format, columns)
		}
	}
}

func beforeFormat2(t *testing.T) []byte {
	type inner struct {
		Host string `parquet:"host,dict"`
	}
	type row struct {
		inner
		Rule string `parquet:"rule,optional"`
		Last int32  `parquet:"last"`
	}
	data, _ := written(t, []row{{inner{"a.example"}, "r", 3}, {inner{"b.example"}, "", 4}}, Format(1))
	return data
}

func written[T any](t *testing.T, rows []T, opts ...WriterOption) ([]byte, []string) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriterTo[T](&b, opts...)
	if err == nil {
		err = w.Write(rows)
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, path := range f.Schema().Columns() {
		columns = append(columns, path[0])
	}
	return b.Bytes(), columns
}
