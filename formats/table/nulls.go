package table

import (
	"reflect"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// nullable lists the fields whose zero value is stored as null. Each field is given by its index
// path (see reflect.Value.FieldByIndex).
//
// parquet-go (v0.32.0, writeRowsFuncOfOptional) has a bug in optional columns. It writes the nulls at
// the end of a slice of rows as zeros if the run of values before them is as long as the number of
// rows before this run. For example, the four values null, x, null, null become null, x, 0, 0. The
// writer avoids this bug by passing the rows in parts. Files of format 1 keep the wrong zeros.
type nullable [][]int

func nullableOf(t reflect.Type) (n nullable) {
	for _, f := range reflect.VisibleFields(t) {
		if strings.Contains(f.Tag.Get("parquet"), ",optional") && f.Type.Kind() != reflect.Pointer {
			n = append(n, f.Index)
		}
	}
	return n
}

// cut returns the index at which the caller must divide rows, a slice of structs, so that parquet-go
// writes all nulls as null. The result is 0 if the rows need not be divided.
func (n nullable) cut(rows reflect.Value) int {
	for _, index := range n {
		if begin, _ := runBeforeZeros(rows, index); begin > 0 {
			return begin
		}
	}
	return 0
}

// runBeforeZeros returns the run of values of a column after which parquet-go writes nulls as zeros,
// or 0, 0 if there is none.
func runBeforeZeros(rows reflect.Value, index []int) (begin, end int) {
	null := func(i int) bool { return rows.Index(i).FieldByIndex(index).IsZero() }
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

// zeroless lists the pointer fields that a format stores as if they were no pointers: zero becomes
// null. Each field is given by its index path.
type zeroless [][]int

func zerolessOf(t reflect.Type, format int) (z zeroless) {
	for _, f := range reflect.VisibleFields(t) {
		if schema.TellsZero(f) > format && schema.Since(f) <= format {
			z = append(z, f.Index)
		}
	}
	return z
}

// normalize changes rows, a slice of structs, in the way in which parquet-go stores fields that are no
// pointers: zero becomes null, and some nulls become zero (see nullable).
func (z zeroless) normalize(rows reflect.Value) {
	for _, index := range z {
		for i := range rows.Len() {
			if f := rows.Index(i).FieldByIndex(index); !f.IsNil() && f.Elem().IsZero() {
				f.SetZero()
			}
		}
		if begin, end := runBeforeZeros(rows, index); begin > 0 {
			for i := end; i < rows.Len(); i++ {
				f := rows.Index(i).FieldByIndex(index)
				f.Set(reflect.New(f.Type().Elem()))
			}
		}
	}
}
