package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/extsort"
	"crawlbatch.io/crawlbatch/formats/pack"
)

// ErrScratch means that a row in a scratch file cannot be decoded: the disk or the program is faulty.
var ErrScratch = extsort.ErrScratch

// Codec encodes rows of T for scratch files. It finds the fields of T by reflection, so it needs no
// change for a new column. No file in the store has this encoding. Package gob would not do, because
// it decodes a pointer to false as nil.
type Codec[T any] struct {
	layout *rowLayout
}

// NewCodec returns a Codec, or an error if T has a field that is not a column type.
func NewCodec[T any]() (*Codec[T], error) {
	layout, err := layoutOf(reflect.TypeFor[T]())
	return &Codec[T]{layout}, err
}

// MustCodec is like NewCodec but panics if T has a field that is not a column type.
func MustCodec[T any]() *Codec[T] {
	c, err := NewCodec[T]()
	if err != nil {
		panic(err)
	}
	return c
}

// Append appends the encoded row to buf.
func (c *Codec[T]) Append(buf []byte, row *T) []byte {
	return c.layout.encode(buf, unsafe.Pointer(row))
}

// Decode decodes a row. The row's strings share the memory of data. Decode returns ErrScratch if
// data is not the encoding of a row.
func (c *Codec[T]) Decode(data string, row *T) error {
	*row = *new(T)
	return c.layout.decode(data, unsafe.Pointer(row))
}

// rowLayout lists the fields of a row struct in order, with the fields of embedded structs in their
// place. Its methods measure, encode and decode rows. They find a field by its offset, which is
// several times faster than reflection. A field's shape and kind tell the type of the value there.
type rowLayout struct {
	fields []rowField
	row    reflect.Type
	size   int // size of the struct itself, in bytes
}

type rowField struct {
	name     string
	embedded bool    // the field belongs to an embedded struct
	offset   uintptr // offset of the field in the row, in bytes
	shape    shape
	kind     reflect.Kind // kind of the value, or of each element of a list
	elem     reflect.Type // Go type of the value, or of each element of a list
	size     uintptr      // size of elem; calling elem.Size for each value would be slow
}

type shape uint8

const (
	plain   shape = iota
	pointer       // pointer to a value; nil is null
	list
)

func layoutOf(t reflect.Type) (*rowLayout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("row type %v is not a struct", t)
	}
	l := &rowLayout{row: t, size: int(t.Size())}
	return l, l.add(t, 0, false)
}

// columnsOf returns the layout of rows of a Parquet file. It refuses pointers in embedded structs,
// because parquet-go (v0.32, fieldByIndex) would read null as a pointer to zero.
func columnsOf(t reflect.Type) (*rowLayout, error) {
	l, err := layoutOf(t)
	if err != nil {
		return nil, err
	}
	for _, f := range l.fields {
		if f.kind == reflect.Uint64 {
			return nil, fmt.Errorf("field %s of %v: integer columns must be signed", f.name, t)
		}
		if f.shape == pointer && f.embedded {
			return nil, fmt.Errorf("field %s of %v: a pointer in an embedded struct cannot be read as null: move it to the outer struct", f.name, t)
		}
	}
	return l, nil
}

func (l *rowLayout) add(t reflect.Type, offset uintptr, embedded bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if err := l.add(f.Type, offset+f.Offset, true); err != nil {
				return err
			}
			continue
		}
		field := rowField{name: f.Name, embedded: embedded, offset: offset + f.Offset, elem: f.Type}
		switch f.Type.Kind() {
		case reflect.Pointer:
			field.shape, field.elem = pointer, f.Type.Elem()
		case reflect.Slice:
			field.shape, field.elem = list, f.Type.Elem()
		}
		field.size = field.elem.Size()
		if field.kind = field.elem.Kind(); !field.isColumn() || !f.IsExported() {
			return fmt.Errorf("field %s of %v: type %v is not a column type", f.Name, t, f.Type)
		}
		l.fields = append(l.fields, field)
	}
	return nil
}

// isColumn reports whether a column may have the shape and kind of f. A uint64 occurs only in scratch
// files, because integers in Parquet files are signed.
func (f *rowField) isColumn() bool {
	switch f.kind {
	case reflect.String:
		return f.shape != pointer
	case reflect.Int32:
		return true
	case reflect.Int16, reflect.Int64, reflect.Int, reflect.Bool, reflect.Float64:
		return f.shape != list
	case reflect.Uint8:
		return f.shape == list
	}
	return f.kind == reflect.Uint64 && f.shape == plain
}

// textBytes returns the number of bytes that the fields of a row hold outside the struct: texts,
// lists, and values behind pointers.
func (l *rowLayout) textBytes(row unsafe.Pointer) int {
	n := 0
	for i := range l.fields {
		f := &l.fields[i]
		p := unsafe.Add(row, f.offset)
		switch {
		case f.shape == pointer:
			n += 8
		case f.shape == list:
			first, length := elements(p)
			n += length * int(f.size)
			for i := 0; f.kind == reflect.String && i < length; i++ {
				n += len(*(*string)(f.elementAt(first, i)))
			}
		case f.kind == reflect.String:
			n += len(*(*string)(p))
		}
	}
	return n
}

// elements returns the address of the first element of the list at p, of any type, and its length.
func elements(p unsafe.Pointer) (first unsafe.Pointer, length int) {
	l := *(*[]byte)(p)
	return unsafe.Pointer(unsafe.SliceData(l)), len(l)
}

// elementAt returns a pointer to element i of a list. first is the address of element 0.
func (f *rowField) elementAt(first unsafe.Pointer, i int) unsafe.Pointer {
	return unsafe.Add(first, uintptr(i)*f.size)
}

const maskFields = 32 // number of fields that share a mask

// encode appends an encoded row to buf: for each maskFields fields, a mask of those that are not zero, as in most rows
// few are, and the values of these fields. A list is its length and its elements.
func (l *rowLayout) encode(buf []byte, row unsafe.Pointer) []byte {
	for fields := range slices.Chunk(l.fields, maskFields) {
		mask := uint64(0)
		for i := range fields {
			if !fields[i].isZero(row) {
				mask |= 1 << i
			}
		}
		for buf = binary.AppendUvarint(buf, mask); mask != 0; mask &= mask - 1 {
			f := &fields[bits.TrailingZeros64(mask)]
			p := unsafe.Add(row, f.offset)
			switch f.shape {
			case plain:
				buf = f.encode(buf, p)
			case pointer:
				buf = f.encode(buf, *(*unsafe.Pointer)(p))
			case list:
				first, length := elements(p)
				buf = binary.AppendUvarint(buf, uint64(length))
				for i := range length {
					buf = f.encode(buf, f.elementAt(first, i))
				}
			}
		}
	}
	return buf
}

// isZero reports whether the field of a row has no bits set, is an empty text, or a pointer or list that is nil.
func (f *rowField) isZero(row unsafe.Pointer) bool {
	switch p := unsafe.Add(row, f.offset); {
	case f.shape == plain && f.kind == reflect.String:
		return *(*string)(p) == ""
	case f.shape != plain || f.size == 8:
		return *(*uint64)(p) == 0
	case f.size == 4:
		return *(*uint32)(p) == 0
	default:
		return *(*byte)(p) == 0 && (f.size == 1 || *(*int16)(p) == 0)
	}
}

// encode appends the encoding of the value at p.
func (f *rowField) encode(buf []byte, p unsafe.Pointer) []byte {
	switch f.kind {
	case reflect.String:
		s := *(*string)(p)
		return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
	case reflect.Int16:
		return binary.AppendVarint(buf, int64(*(*int16)(p)))
	case reflect.Int32:
		return binary.AppendVarint(buf, int64(*(*int32)(p)))
	case reflect.Int64, reflect.Int:
		return binary.AppendVarint(buf, *(*int64)(p))
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(buf, math.Float64bits(*(*float64)(p)))
	case reflect.Uint64:
		return binary.AppendUvarint(buf, *(*uint64)(p))
	}
	return append(buf, *(*byte)(p)) // Go stores a bool as the byte 0 or 1
}

// decode decodes a row. The row must be zero before the call.
func (l *rowLayout) decode(data string, row unsafe.Pointer) error {
	d := decoder{pack.Decoder{Data: data}}
	for fields := range slices.Chunk(l.fields, maskFields) {
		mask := d.Uvarint()
		if mask>>len(fields) != 0 {
			return ErrScratch
		}
		for ; mask != 0; mask &= mask - 1 {
			f := &fields[bits.TrailingZeros64(mask)]
			p := unsafe.Add(row, f.offset)
			switch f.shape {
			case plain:
				d.value(f, p)
			case pointer:
				to := reflect.New(f.elem).UnsafePointer()
				d.value(f, to)
				*(*unsafe.Pointer)(p) = to
			case list:
				d.list(f, p)
			}
		}
	}
	if d.Bad || d.Data != "" {
		return ErrScratch
	}
	return nil
}

// decoder reads the fields of a row.
type decoder struct{ pack.Decoder }

func (d *decoder) value(f *rowField, p unsafe.Pointer) {
	switch f.kind {
	case reflect.String:
		*(*string)(p) = d.Text()
	case reflect.Int16:
		*(*int16)(p) = int16(d.Varint())
	case reflect.Int32:
		*(*int32)(p) = int32(d.Varint())
	case reflect.Int64, reflect.Int:
		*(*int64)(p) = d.Varint()
	case reflect.Float64:
		if s := d.Take(8); len(s) == 8 {
			*(*float64)(p) = math.Float64frombits(binary.LittleEndian.Uint64([]byte(s)))
		}
	case reflect.Uint64:
		*(*uint64)(p) = d.Uvarint()
	case reflect.Bool:
		*(*bool)(p) = d.Uvarint() == 1
	}
}

func (d *decoder) list(f *rowField, p unsafe.Pointer) {
	n := d.Uvarint()
	if n > uint64(len(d.Data)) { // each element takes at least one byte
		d.Bad = true
		return
	}
	switch f.kind {
	case reflect.String:
		*(*[]string)(p) = make([]string, n)
	case reflect.Int32:
		*(*[]int32)(p) = make([]int32, n)
	case reflect.Uint8:
		*(*[]byte)(p) = []byte(d.Take(n))
		return
	}
	for first, i := *(*unsafe.Pointer)(p), 0; i < int(n); i++ {
		d.value(f, f.elementAt(first, i))
	}
}
