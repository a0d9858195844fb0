package table

import (
	"reflect"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// nullable holds the reflect index paths of the fields whose zero value is stored as null.
//
// parquet-go (v0.32.0, writeRowsFuncOfOptional) extends a run of values to the end of the rows if
// the run is as long as the rows before the run. For null, x, null, null, parquet-go writes the
// last two nulls as zero. The writer avoids this bug by passing rows in parts. Files of format 1
// keep the wrong zeros.
type nullable [][]int

func nullableOf(t reflect.Type) (n nullable) {
	for _, f := range reflect.VisibleFields(t) {
		if strings.Contains(f.Tag.Get("parquet"), ",optional") && f.Type.Kind() != reflect.Pointer {
			n = append(n, f.Index)
		}
	}
	return n
}

// misread returns the index at which to cut rows, a slice of structs, so that parquet-go extends no
// run of values. The result is 0 if no cut is needed.
func (n nullable) misread(rows reflect.Value) int {
	for _, index := range n {
		if begin, _ := misreadRun(rows, index); begin > 0 {
			return begin
		}
	}
	return 0
}

// misreadRun returns the run of a column's values that parquet-go would extend to the end of rows,
// or 0, 0 if parquet-go would extend no run.
func misreadRun(rows reflect.Value, index []int) (begin, end int) {
	null := func(i int) bool { return rows.Index(i).FieldByIndex(index).IsZero() }
	end = rows.Len()
	for end > 0 && null(end-1) {
		end--
	}
	if end == rows.Len() || end%2 == 1 {
		return 0, 0 // parquet-go extends no run that reaches the end of the rows or is short
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

// zeroless holds the index paths of pointer fields that a format stores as plain optional values. A
// format without pointer fields stores zero as null.
type zeroless [][]int

func zerolessOf(t reflect.Type, format int) (z zeroless) {
	for _, f := range reflect.VisibleFields(t) {
		if schema.TellsZero(f) > format && schema.Since(f) <= format {
			z = append(z, f.Index)
		}
	}
	return z
}

// write changes rows, a slice of structs, as parquet-go changed plain values. Zero becomes null,
// and the nulls after an extended run become zero.
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
