package table

import (
	"reflect"
	"strings"
)

// nullable are the index paths of the fields whose zero value is null.
//
// parquet-go (v0.32.0, writeRowsFuncOfOptional) mistakes a run of values for one that
// lasts to the end of the rows where the run is as long as what comes before it: of null,
// x, null, null it writes the last two as zero instead of null. So rows are handed over
// in parts that have no such run. Format 1 has those zeros and keeps them.
type nullable [][]int

func nullableOf(t reflect.Type) (n nullable) {
	for _, f := range reflect.VisibleFields(t) {
		if strings.Contains(f.Tag.Get("parquet"), ",optional") && f.Type.Kind() != reflect.Pointer {
			n = append(n, f.Index)
		}
	}
	return n
}

// misread gives where to cut rows, a slice of structs, so that the library does not
// mistake the last run of values of a column; 0: it mistakes none.
func (n nullable) misread(rows reflect.Value) int {
	for _, index := range n {
		null := func(i int) bool { return rows.Index(i).FieldByIndex(index).IsZero() }
		end := rows.Len()
		for end > 0 && null(end-1) {
			end--
		}
		if end == rows.Len() || end%2 == 1 {
			continue // the run is the last of the rows, or cannot be half of them
		}
		begin := end
		for begin > 0 && !null(begin-1) {
			begin--
		}
		if begin > 0 && end == 2*begin {
			return begin
		}
	}
	return 0
}
