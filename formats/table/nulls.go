package table

import (
	"reflect"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// nullable lists the fields whose zero value is stored as null.
//
// parquet-go (v0.32.0, writeRowsFuncOfOptional) has a bug in optional columns. It writes the nulls at
// the end of a slice of rows as zeros if the run of values before them is as long as the number of
// rows before this run. For example, the four values null, x, null, null become null, x, 0, 0. The
// writer avoids this bug by passing the rows in parts. Files of format 1 keep the wrong zeros.
type nullable []*rowField

func nullableOf(l *rowLayout) (n nullable) {
	for i := range l.fields {
		if f := &l.fields[i]; f.optional && f.shape != pointer {
			n = append(n, f)
		}
	}
	return n
}

// cut returns the index at which the caller must divide rows, a slice of structs, so that parquet-go
// writes all nulls as null. The result is 0 if the rows need not be divided.
func (n nullable) cut(rows reflect.Value) int {
	for _, f := range n {
		if begin, _ := f.runBeforeZeros(rows); begin > 0 {
			return begin
		}
	}
	return 0
}

// runBeforeZeros returns the run of values of a column after which parquet-go writes nulls as zeros,
// or 0, 0 if there is none.
func (f *rowField) runBeforeZeros(rows reflect.Value) (begin, end int) {
	first, step := unsafe.Add(rows.UnsafePointer(), f.offset), rows.Type().Elem().Size()
	null := func(i int) bool { return f.zero(unsafe.Add(first, uintptr(i)*step)) }
	end = rows.Len()
	for end > 0 && null(end-1) {
		end--
	}
	if end == rows.Len() || end%2 == 1 {
		return 0, 0 // no nulls at the end, or the run cannot be half of the rows up to its end
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

// zero reports whether the value at p is zero or nil.
func (f *rowField) zero(p unsafe.Pointer) bool {
	switch {
	case f.shape != plain:
		return *(*unsafe.Pointer)(p) == nil
	case f.kind == reflect.String:
		return *(*string)(p) == ""
	case f.size == 1:
		return *(*uint8)(p) == 0
	case f.size == 2:
		return *(*uint16)(p) == 0
	case f.size == 4:
		return *(*uint32)(p) == 0
	}
	return *(*uint64)(p) == 0
}

// zeroless lists the pointer fields that a format stores as if they were no pointers: zero becomes
// null.
type zeroless []*rowField

func zerolessOf(l *rowLayout, format int) (z zeroless) {
	for i := range l.fields {
		if f, _ := l.row.FieldByName(l.fields[i].name); schema.TellsZero(f) > format && schema.Since(f) <= format {
			z = append(z, &l.fields[i])
		}
	}
	return z
}

// normalize changes rows, a slice of structs, in the way in which parquet-go stores fields that are no
// pointers: zero becomes null, and some nulls become zero (see nullable).
func (z zeroless) normalize(rows reflect.Value) {
	for _, f := range z {
		for i := range rows.Len() {
			if p := rows.Index(i).FieldByName(f.name); !p.IsNil() && p.Elem().IsZero() {
				p.SetZero()
			}
		}
		if begin, end := f.runBeforeZeros(rows); begin > 0 {
			for i := end; i < rows.Len(); i++ {
				p := rows.Index(i).FieldByName(f.name)
				p.Set(reflect.New(f.elem))
			}
		}
	}
}
