package table

import (
	"reflect"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// nullable holds the index paths of the fields whose zero value is null.
//
// parquet-go (v0.32.0, writeRowsFuncOfOptional) has a bug: it extends a run of values to
// the end of the rows if the run is as long as the part before it. In null, x, null, null
// it writes the last two as zero instead of null. So the writer passes rows in parts
// without such a run. Format 1 has those zeros and keeps them.
type nullable [][]int

func nullableOf(t reflect.Type) (n nullable) {
	for _, f := range reflect.VisibleFields(t) {
		if strings.Contains(f.Tag.Get("parquet"), ",optional") && f.Type.Kind() != reflect.Pointer {
			n = append(n, f.Index)
		}
	}
	return n
}

// misread returns where to cut rows, a slice of structs, so that the library does not
// extend the last run of values of a column. It returns 0 if no cut is needed.
func (n nullable) misread(rows reflect.Value) int {
	for _, index := range n {
		if begin, _ := misreadRun(rows, index); begin > 0 {
			return begin
		}
	}
	return 0
}

// misreadRun returns the run of values of a column that the library extends to the end of
// rows. It returns 0, 0 if there is none.
func misreadRun(rows reflect.Value, index []int) (begin, end int) {
	null := func(i int) bool { return rows.Index(i).FieldByIndex(index).IsZero() }
	end = rows.Len()
	for end > 0 && null(end-1) {
		end--
	}
	if end == rows.Len() || end%2 == 1 {
		return 0, 0 // the run reaches the end of the rows, or is too short to be extended
	}
	begin = end
	for begin > 0 && !null(begin-1) {
		begin--
	}
	if begin == 0 || end != 2*begin {
		return 0, 0
	}
	return begin, end
}

// zeroless holds the index paths of pointer fields that a format stores as plain optional
// values. Such a format stores zero as null.
type zeroless [][]int

func zerolessOf(t reflect.Type, format int) (z zeroless) {
	for _, f := range reflect.VisibleFields(t) {
		if schema.TellsZero(f) > format && schema.Since(f) <= format {
			z = append(z, f.Index)
		}
	}
	return z
}

// write changes rows, a slice of structs, to what the library made of plain values: zero
// becomes null, and the nulls after a run that it extended become zero.
func (z zeroless) write(rows reflect.Value) {
	for _, index := range z {
		for i := range rows.Len() {
			if f := rows.Index(i).FieldByIndex(index); !f.IsNil() && f.Elem().IsZero() {
				f.SetZero()
			}
		}
		if begin, end := misreadRun(rows, index); begin > 0 {
			for i := end; i < rows.Len(); i++ {
				f := rows.Index(i).FieldByIndex(index)
				f.Set(reflect.New(f.Type().Elem()))
			}
		}
	}
}
