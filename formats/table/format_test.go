package table

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"
)

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

// parquet-go makes the Bloom filter of a column with a dictionary from the dictionary alone. It would lack the values
// after a full dictionary, so row groups with filters must end before their dictionaries are full.
func TestDictionariesOfLookupFilesAreNeverFull(t *testing.T) {
	if o := optionsOf([]WriterOption{Lookup("value")}); o.rowGroupBytes > o.dictionaryBytes() {
		t.Errorf("a row group of %d bytes has a dictionary of at most %d", o.rowGroupBytes, o.dictionaryBytes())
	}
	type row struct {
		Value string `parquet:"value,dict"`
	}
	rows := make([]row, 20_000)
	for i := range rows {
		rows[i].Value = fmt.Sprintf("%0600d", i)
	}
	data, _ := written(t, rows, Lookup("value"))
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, group := range f.RowGroups() {
		filter := group.ColumnChunks()[0].BloomFilter()
		for i, r := range rows[at : at+int(group.NumRows())] {
			if found, err := filter.Check(parquet.ValueOf(r.Value)); err != nil || !found {
				t.Fatalf("the filter of the rows from %d lacks row %d: %v", at, at+i, err)
			}
		}
		at += int(group.NumRows())
	}
	if at != len(rows) {
		t.Errorf("%d rows", at)
	}
}
