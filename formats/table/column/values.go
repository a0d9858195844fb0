package column

import (
	"reflect"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// Values encodes a field of rows as the values of a column.
type Values struct {
	Field
	Column int // index of the column
	Most   int // definition level of a value
}

// Append appends the values of the field of a row.
func (f *Values) Append(values []parquet.Value, row unsafe.Pointer) []parquet.Value {
	p := unsafe.Add(row, f.Offset)
	switch {
	case f.Pointer:
		if p = *(*unsafe.Pointer)(p); p == nil {
			return append(values, parquet.Value{}.Level(0, 0, f.Column))
		}
	case f.List:
		list := *(*[]byte)(p) // a list of any type has its address and length in the same place
		if len(list) == 0 {
			return append(values, parquet.Value{}.Level(0, 0, f.Column))
		}
		for i := range len(list) {
			element := unsafe.Add(unsafe.Pointer(unsafe.SliceData(list)), uintptr(i)*f.Elem.Size())
			values = append(values, f.value(element).Level(min(i, 1), f.Most, f.Column))
		}
		return values
	case f.Most > 0 && reflect.NewAt(f.Elem, p).Elem().IsZero(): // optional: the zero value is null
		return append(values, parquet.Value{}.Level(0, 0, f.Column))
	}
	return append(values, f.value(p).Level(0, f.Most, f.Column))
}

// value returns the value at p, of the field's kind. It shares the memory of a text.
func (f *Values) value(p unsafe.Pointer) parquet.Value {
	switch f.Kind {
	case reflect.String:
		s := *(*string)(p)
		return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(s), len(s)))
	case reflect.Bool:
		return parquet.BooleanValue(*(*bool)(p))
	case reflect.Float64:
		return parquet.DoubleValue(*(*float64)(p))
	case reflect.Int, reflect.Int64:
		return parquet.Int64Value(*(*int64)(p))
	case reflect.Int16:
		return parquet.Int32Value(int32(*(*int16)(p)))
	}
	return parquet.Int32Value(*(*int32)(p))
}
