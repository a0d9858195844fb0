package table

import (
	"strings"
	"unsafe"
)

// nullable lists the fields whose zero value is stored as null.
//
// parquet-go (v0.32.0, writeRowsFuncOfOptional) writes some nulls of an optional column as zeros: the nulls at the end of
// a slice of rows, if the run of values before them is as long as the number of rows before this run. Writing one slice
// with the values null, x, null, null stores null, x, 0, 0. TestParquetGoWritesNullsAsZeros shows it without this
// package. The writer avoids the fault by passing such a slice in two parts, which are divided where the run begins: a
// slice that begins with the run has no rows before it. Readers of this program take both for the same, so working files
// (Fast) are not divided.
type nullable []rowField

func nullableOf(l *rowLayout) (n nullable) {
	for _, f := range l.fields {
		if in, ok := l.row.FieldByName(f.name); ok && strings.Contains(in.Tag.Get("parquet"), ",optional") && f.shape != pointer {
			n = append(n, f)
		}
	}
	return n
}

// cut returns the index at which the caller must divide n rows, so that parquet-go writes all nulls as null. The
// result is 0 if the rows need not be divided.
func (n nullable) cut(l *rowLayout, first unsafe.Pointer, rows int) int {
	begin := 0
	for i := 0; i < len(n) && begin == 0; i++ {
		begin = l.runBeforeZeros(&n[i], first, rows)
	}
	return begin
}

// runBeforeZeros returns the index at which the run of values of a column begins after which parquet-go writes nulls as
// zeros, or 0 if there is none.
func (l *rowLayout) runBeforeZeros(f *rowField, first unsafe.Pointer, rows int) int {
	end := rows
	for end > 0 && f.isZero(unsafe.Add(first, (end-1)*l.size)) {
		end--
	}
	if end == rows || end%2 == 1 {
		return 0 // no nulls at the end, or the run cannot be half of the rows up to its end
	}
	begin := end
	for begin > 0 && !f.isZero(unsafe.Add(first, (begin-1)*l.size)) {
		begin--
	}
	if end != 2*begin {
		return 0
	}
	return begin
}
