package table

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A file written in an older format has the bytes of a file without the newer columns.
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
		t.Error("the file differs from a file of the struct before format 2")
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

// Since format 2 the column ms distinguishes 0 from null. In format 1 the column ms must have the
// same bytes as a field without a pointer. These bytes include the zeros that the library wrongly
// writes for some nulls (see nullable).
func TestColumnsThatDidNotTellZero(t *testing.T) {
	type row struct {
		Row int32  `parquet:"row"`
		MS  *int64 `parquet:"ms,optional" zero:"2"`
		US  *int64 `parquet:"us,optional" since:"2"`
	}
	random := rand.New(rand.NewPCG(1, 2))
	mistaken := 0
	for n := range 300 {
		var old []int64
		var rows []row
		for len(rows) < 1+n { // adds 64 rows: nulls, about as many values, then nulls
			begin := 1 + random.IntN(31)
			end := 2*begin + random.IntN(2)
			for i := range 64 {
				value, r := int64(0), row{Row: int32(len(rows))}
				if begin <= i && i < end {
					value = 7
				}
				if value != 0 || random.IntN(2) == 0 {
					r.MS = &value
				}
				old, rows = append(old, value), append(rows, r)
			}
		}
		want := plainZero(t, old)
		if got, _ := written(t, rows, Format(1)); !bytes.Equal(got, want) {
			t.Fatalf("%d rows have other bytes than rows with a field without a pointer", len(rows))
		}
		f, err := parquet.OpenFile(bytes.NewReader(want), int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		nulls := 0
		for _, o := range old {
			if o == 0 {
				nulls++
			}
		}
		if nullsOf(t, f, "ms") != nulls {
			mistaken++
		}
	}
	if mistaken < 10 {
		t.Errorf("only %d of 300 files have a run that parquet-go miswrites: the test shows little", mistaken)
	}
}

// plainZero writes rows with the given values in the struct of format 1.
func plainZero(t *testing.T, values []int64) []byte {
	type row struct {
		Row int32 `parquet:"row"`
		MS  int64 `parquet:"ms,optional"`
	}
	var rows []row
	for i, v := range values {
		rows = append(rows, row{int32(i), v})
	}
	data, _ := written(t, rows, Format(1))
	return data
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
