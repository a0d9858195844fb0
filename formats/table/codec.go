package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// ErrScratch: a row in a scratch file cannot be decoded. The disk or the program is
// faulty.
var ErrScratch = errors.New("damaged scratch file")

// Codec encodes rows of T for scratch files. It covers every field, so it needs no change
// for a new column. The encoding is not a durable format. (Package gob would lose data: it
// decodes a pointer to false as nil.)
type Codec[T any] struct {
	layout *rowLayout
}

// NewCodec returns a Codec. It fails if T has a field that is not a column type.
func NewCodec[T any]() (*Codec[T], error) {
	layout, err := layoutOf(reflect.TypeFor[T]())
	return &Codec[T]{layout}, err
}

// MustCodec is like NewCodec, for a type that consists of column types. It panics if T
// does not.
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

// Decode sets row to the row that data encodes. Its strings share the memory of data.
// Decode returns ErrScratch if data is not the encoding of a row.
func (c *Codec[T]) Decode(data string, row *T) error {
	var zero T
	*row = zero
	return c.layout.decode(data, unsafe.Pointer(row))
}

// rowLayout lists the fields of a row struct in order, with embedded structs flattened. It
// measures, encodes and decodes rows. It reaches a field by its offset, several times
// faster than by reflection. The field's kind gives the type at that offset.
type rowLayout struct {
	fields []rowField
	size   int // bytes of the struct itself
}

type rowField struct {
	name     string
	embedded bool
	offset   uintptr
	shape    shape
	kind     kind
	elem     reflect.Type // of the value, or of each element
}

type shape uint8

const (
	plain   shape = iota
	pointer       // nil is null
	list
)

type kind uint8

const (
	kindString kind = iota
	kindInt
	kindBool
	kindFloat
	kindByte // only as an element of []byte
	kindUint // only in scratch files: columns of Parquet files are signed
)

func layoutOf(t reflect.Type) (*rowLayout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("row type %v is not a struct", t)
	}
	l := &rowLayout{size: int(t.Size())}
	return l, l.add(t, 0, false)
}

// columnsOf is layoutOf for rows of a Parquet file. It refuses pointers in embedded
// structs: parquet-go (v0.32, fieldByIndex) reads null into them as a pointer to zero.
func columnsOf(t reflect.Type) (*rowLayout, error) {
	l, err := layoutOf(t)
	if err != nil {
		return nil, err
	}
	for _, f := range l.fields {
		if f.kind == kindUint {
			return nil, fmt.Errorf("field %s of %v: columns are signed", f.name, t)
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
		var ok bool
		if field.kind, ok = kindOf(field.elem.Kind(), field.shape); !ok || !f.IsExported() {
			return fmt.Errorf("field %s of %v: type %v is not a column type", f.Name, t, f.Type)
		}
		l.fields = append(l.fields, field)
	}
	return nil
}

// kindOf returns the kind of a value or element. It returns false if no column has this
// type.
func kindOf(k reflect.Kind, s shape) (kind, bool) {
	switch k {
	case reflect.String:
		return kindString, s != pointer
	case reflect.Int32:
		return kindInt, true
	case reflect.Int16, reflect.Int64, reflect.Int:
		return kindInt, s != list
	case reflect.Bool:
		return kindBool, s != list
	case reflect.Float64:
		return kindFloat, s != list
	case reflect.Uint8:
		return kindByte, s == list
	case reflect.Uint64:
		return kindUint, s == plain
	}
	return 0, false
}

// textBytes returns the memory that a row holds outside its struct.
func (l *rowLayout) textBytes(row unsafe.Pointer) int {
	n := 0
	for i := range l.fields {
		f := &l.fields[i]
		p := unsafe.Add(row, f.offset)
		switch {
		case f.shape == pointer:
			n += 8
		case f.shape == list && f.kind == kindString:
			for _, s := range *(*[]string)(p) {
				n += 16 + len(s)
			}
		case f.shape == list && f.kind == kindInt:
			n += 4 * len(*(*[]int32)(p))
		case f.shape == list:
			n += len(*(*[]byte)(p))
		case f.kind == kindString:
			n += len(*(*string)(p))
		}
	}
	return n
}

// encode appends a row to buf.
func (l *rowLayout) encode(buf []byte, row unsafe.Pointer) []byte {
	for i := range l.fields {
		f := &l.fields[i]
		p := unsafe.Add(row, f.offset)
		switch f.shape {
		case plain:
			buf = f.appendValue(buf, p)
		case pointer:
			if p = *(*unsafe.Pointer)(p); p == nil {
				buf = append(buf, 0)
			} else {
				buf = f.appendValue(append(buf, 1), p)
			}
		case list:
			buf = f.appendList(buf, p)
		}
	}
	return buf
}

func (f *rowField) appendValue(buf []byte, p unsafe.Pointer) []byte {
	switch f.kind {
	case kindString:
		return appendText(buf, *(*string)(p))
	case kindUint:
		return binary.AppendUvarint(buf, *(*uint64)(p))
	case kindFloat:
		return binary.LittleEndian.AppendUint64(buf, math.Float64bits(*(*float64)(p)))
	case kindBool:
		if *(*bool)(p) {
			return append(buf, 1)
		}
		return append(buf, 0)
	}
	switch f.elem.Size() {
	case 2:
		return binary.AppendVarint(buf, int64(*(*int16)(p)))
	case 4:
		return binary.AppendVarint(buf, int64(*(*int32)(p)))
	}
	return binary.AppendVarint(buf, *(*int64)(p))
}

// appendList appends a list of n elements: n+1, then the elements. For nil it appends 0.
func (f *rowField) appendList(buf []byte, p unsafe.Pointer) []byte {
	if *(*unsafe.Pointer)(p) == nil {
		return append(buf, 0)
	}
	switch f.kind {
	case kindString:
		list := *(*[]string)(p)
		buf = binary.AppendUvarint(buf, uint64(len(list))+1)
		for _, s := range list {
			buf = appendText(buf, s)
		}
	case kindInt:
		list := *(*[]int32)(p)
		buf = binary.AppendUvarint(buf, uint64(len(list))+1)
		for _, n := range list {
			buf = binary.AppendVarint(buf, int64(n))
		}
	case kindByte:
		list := *(*[]byte)(p)
		buf = append(binary.AppendUvarint(buf, uint64(len(list))+1), list...)
	}
	return buf
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// decode reads a row that encode wrote into row, which must be zeroed.
func (l *rowLayout) decode(data string, row unsafe.Pointer) error {
	d := decoder{data: data}
	for i := range l.fields {
		f := &l.fields[i]
		p := unsafe.Add(row, f.offset)
		switch f.shape {
		case plain:
			d.value(f, p)
		case pointer:
			if d.uvarint() == 1 {
				to := reflect.New(f.elem).UnsafePointer()
				d.value(f, to)
				*(*unsafe.Pointer)(p) = to
			}
		case list:
			d.list(f, p)
		}
	}
	if d.bad || d.data != "" {
		return ErrScratch
	}
	return nil
}

// decoder reads values from the front of data. After bad data it returns zero values.
type decoder struct {
	data string
	bad  bool
}

func (d *decoder) value(f *rowField, p unsafe.Pointer) {
	switch f.kind {
	case kindString:
		*(*string)(p) = d.take(d.uvarint())
	case kindUint:
		*(*uint64)(p) = d.uvarint()
	case kindFloat:
		if s := d.take(8); len(s) == 8 {
			*(*float64)(p) = math.Float64frombits(binary.LittleEndian.Uint64([]byte(s)))
		}
	case kindBool:
		*(*bool)(p) = d.uvarint() == 1
	case kindInt:
		switch n := d.varint(); f.elem.Size() {
		case 2:
			*(*int16)(p) = int16(n)
		case 4:
			*(*int32)(p) = int32(n)
		default:
			*(*int64)(p) = n
		}
	}
}

func (d *decoder) list(f *rowField, p unsafe.Pointer) {
	n := d.uvarint()
	if n == 0 {
		return
	}
	if n--; n > uint64(len(d.data)) { // each element takes at least one byte
		d.bad = true
		return
	}
	switch f.kind {
	case kindString:
		list := make([]string, n)
		for i := range list {
			list[i] = d.take(d.uvarint())
		}
		*(*[]string)(p) = list
	case kindInt:
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(d.varint())
		}
		*(*[]int32)(p) = list
	case kindByte:
		*(*[]byte)(p) = []byte(d.take(n))
	}
}

func (d *decoder) take(n uint64) string {
	if n > uint64(len(d.data)) {
		d.bad, d.data = true, ""
		return ""
	}
	s := d.data[:n]
	d.data = d.data[n:]
	return s
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) uvarint() uint64 {
	var x uint64
	for i := 0; i < len(d.data) && i < binary.MaxVarintLen64; i++ {
		b := d.data[i]
		x |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.data = d.data[i+1:]
			return x
		}
	}
	d.bad, d.data = true, ""
	return 0
}
