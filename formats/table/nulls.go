package table

import (
	"reflect"
	"strings"
	"unsafe"
)

// nullable lists the fields whose zero value is stored as null.
//
// parquet-go (v0.32.0, writeRowsFuncOfOptional) has a bug in optional columns. It writes the nulls at
// the end of a slice of rows as zeros if the run of values before them is as long as the number of
// rows before this run. For example, the four values null, x, null, null become null, x, 0, 0. The
// writer avoids this bug by passing the rows in parts.
type nullable []rowField

func nullableOf(l *rowLayout) nullable {
	return l.fieldsOf(func(f reflect.StructField) bool {
		return strings.Contains(f.Tag.Get("parquet"), ",optional") && f.Type.Kind() != reflect.Pointer
	})
}

// fieldsOf returns the fields that is selects.
func (l *rowLayout) fieldsOf(is func(reflect.StructField) bool) (fields []rowField) {
	for _, f := range l.fields {
		if in, ok := l.row.FieldByName(f.name); ok && is(in) {
			fields = append(fields, f)
		}
	}
	return fields
}

// cut returns the index at which the caller must divide n rows, so that parquet-go writes all nulls as null. The
// result is 0 if the rows need not be divided.
func (n nullable) cut(l *rowLayout, first unsafe.Pointer, rows int) int {
	begin := 0
	for i := 0; i < len(n) && begin == 0; i++ {
		begin, _ = l.runBeforeZeros(&n[i], first, rows)
	}
	return begin
}

// runBeforeZeros returns the run of values of a column after which parquet-go writes nulls as zeros,
// or 0, 0 if there is none.
func (l *rowLayout) runBeforeZeros(f *rowField, first unsafe.Pointer, rows int) (begin, end int) {
	end = rows
	for end > 0 && f.isZero(unsafe.Add(first, (end-1)*l.size)) {
		end--
	}
	if end == rows || end%2 == 1 {
		return 0, 0 // no nulls at the end, or the run cannot be half of the rows up to its end
	}
	begin = end
	for begin > 0 && !f.isZero(unsafe.Add(first, (begin-1)*l.size)) {
		begin--
	}
	if begin == 0 || end != 2*begin {
		return 0, 0
	}
	return begin, end
}
