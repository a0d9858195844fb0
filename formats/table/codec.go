package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// ErrScratch: a row in a scratch file cannot be decoded. The disk or the program is at fault.
var ErrScratch = errors.New("damaged scratch file")

// Codec encodes rows of T for scratch files. It covers every field, so a new column
// passes through it without a change. The encoding is no durable format. (Package gob
// would lose data: it decodes a pointer to false as nil.)
type Codec[T any] struct {
	layout *rowLayout
}

// NewCodec refuses types with a field that is no column type.
func NewCodec[T any]() (*Codec[T], error) {
	layout, err := layoutOf(reflect.TypeFor[T]())
	return &Codec[T]{layout}, err
}

// MustCodec is NewCodec for a type that is known to consist of column types: it panics
// on another.
func MustCodec[T any]() *Codec[T] {
	c, err := NewCodec[T]()
	if err != nil {
		panic(err)
	}
	return c
}

// Append appends the encoded row to buf.
func (c *Codec[T]) Append(buf []byte, row *T) []byte {
	return c.layout.encode(buf, reflect.ValueOf(row).Elem())
}

// Decode sets row to the one that data encodes. Its strings share the memory of data.
// Data that no row encodes to gives ErrScratch.
func (c *Codec[T]) Decode(data string, row *T) error {
	var zero T
	*row = zero
	return c.layout.decode(data, reflect.ValueOf(row).Elem())
}

// rowLayout lists the fields of a row struct in order, embedded structs flattened. It
// measures, encodes and decodes rows.
type rowLayout struct {
	fields []rowField
	size   int // bytes of the struct itself
}

type rowField struct {
	index []int
	shape shape
	kind  kind // of the value, or of each element
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
	kindByte // element of []byte only
	kindUint // in scratch files only: columns of Parquet files are signed
)

func layoutOf(t reflect.Type) (*rowLayout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("row type %v is not a struct", t)
	}
	l := &rowLayout{size: int(t.Size())}
	return l, l.add(t, nil)
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
			return nil, fmt.Errorf("field %s of %v: columns are signed", t.FieldByIndex(f.index).Name, t)
		}
		if f.shape == pointer && len(f.index) > 1 {
			return nil, fmt.Errorf("field %s of %v: a pointer in an embedded struct cannot be read as null: move it to the outer struct", t.FieldByIndex(f.index).Name, t)
		}
	}
	return l, nil
}

func (l *rowLayout) add(t reflect.Type, prefix []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if err := l.add(f.Type, index); err != nil {
				return err
			}
			continue
		}
		shape, kind, ok := typeOf(f.Type)
		if !ok || !f.IsExported() {
			return fmt.Errorf("field %s of %v: type %v is no column type", f.Name, t, f.Type)
		}
		l.fields = append(l.fields, rowField{index, shape, kind})
	}
	return nil
}

// typeOf classifies a column type; false: it is none.
func typeOf(t reflect.Type) (s shape, k kind, ok bool) {
	switch t.Kind() {
	case reflect.Pointer:
		s, t = pointer, t.Elem()
	case reflect.Slice:
		s, t = list, t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return s, kindString, s != pointer
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return s, kindInt, s != list || t.Kind() == reflect.Int32
	case reflect.Bool:
		return s, kindBool, s != list
	case reflect.Float32, reflect.Float64:
		return s, kindFloat, s != list
	case reflect.Uint8:
		return s, kindByte, s == list
	case reflect.Uint64:
		return s, kindUint, s == plain
	}
	return s, 0, false
}

// textBytes is the memory that a row holds outside its struct.
func (l *rowLayout) textBytes(v reflect.Value) int {
	n := 0
	for i := range l.fields {
		f := &l.fields[i]
		switch {
		case f.shape == pointer:
			n += 8
		case f.shape == list && f.kind == kindString:
			s := v.FieldByIndex(f.index)
			for j := range s.Len() {
				n += 16 + s.Index(j).Len()
			}
		case f.shape == list && f.kind == kindInt:
			n += 4 * v.FieldByIndex(f.index).Len()
		case f.shape == list || f.kind == kindString:
			n += v.FieldByIndex(f.index).Len()
		}
	}
	return n
}

// encode appends the row v to buf.
func (l *rowLayout) encode(buf []byte, v reflect.Value) []byte {
	for i := range l.fields {
		f := &l.fields[i]
		switch field := v.FieldByIndex(f.index); {
		case f.shape == plain:
			buf = appendValue(buf, f.kind, field)
		case field.IsNil():
			buf = append(buf, 0)
		case f.shape == pointer:
			buf = appendValue(append(buf, 1), f.kind, field.Elem())
		default: // a list of n elements begins with n+1
			buf = binary.AppendUvarint(buf, uint64(field.Len())+1)
			if f.kind == kindByte {
				buf = append(buf, field.Bytes()...)
				continue
			}
			for j := range field.Len() {
				buf = appendValue(buf, f.kind, field.Index(j))
			}
		}
	}
	return buf
}

func appendValue(buf []byte, k kind, v reflect.Value) []byte {
	switch k {
	case kindString:
		s := v.String()
		return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
	case kindInt:
		return binary.AppendVarint(buf, v.Int())
	case kindUint:
		return binary.AppendUvarint(buf, v.Uint())
	case kindFloat:
		return binary.LittleEndian.AppendUint64(buf, math.Float64bits(v.Float()))
	}
	if v.Bool() {
		return append(buf, 1)
	}
	return append(buf, 0)
}

// decode reads a row that encode wrote into the zeroed struct v.
func (l *rowLayout) decode(data string, v reflect.Value) error {
	d := decoder{data: data}
	for i := range l.fields {
		f := &l.fields[i]
		field := v.FieldByIndex(f.index)
		if f.shape == plain {
			d.value(f.kind, field)
			continue
		}
		n := d.uvarint()
		switch {
		case n == 0: // nil
		case f.shape == pointer:
			field.Set(reflect.New(field.Type().Elem()))
			d.value(f.kind, field.Elem())
		case n-1 > uint64(len(d.data)): // each element takes a byte at least
			d.bad = true
		case f.kind == kindByte:
			field.SetBytes([]byte(d.take(n - 1)))
		default:
			field.Set(reflect.MakeSlice(field.Type(), int(n-1), int(n-1)))
			for j := range field.Len() {
				d.value(f.kind, field.Index(j))
			}
		}
	}
	if d.bad || d.data != "" {
		return ErrScratch
	}
	return nil
}

// decoder takes values off the front of data. Once bad, it returns zero values.
type decoder struct {
	data string
	bad  bool
}

func (d *decoder) value(k kind, v reflect.Value) {
	switch k {
	case kindString:
		v.SetString(d.take(d.uvarint()))
	case kindInt:
		u := d.uvarint()
		v.SetInt(int64(u>>1) ^ -int64(u&1))
	case kindUint:
		v.SetUint(d.uvarint())
	case kindFloat:
		if s := d.take(8); len(s) == 8 {
			v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64([]byte(s))))
		}
	case kindBool:
		v.SetBool(d.uvarint() == 1)
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
