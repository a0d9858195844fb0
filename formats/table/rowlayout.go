package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// rowLayout knows the fields of a row struct in order, embedded structs
// flattened. It measures rows and encodes them for spill files. (Package gob
// cannot stand in: it reads a pointer to false back as nil.)
type rowLayout struct {
	fields []rowField
	size   int // bytes of the struct itself
}

type rowField struct {
	index []int
	kind  fieldKind
}

type fieldKind uint8

const (
	kindString fieldKind = iota
	kindInt
	kindBool
	kindFloat
	kindStrings // []string
	kindInts    // []int32
	kindBytes   // []byte
	kindPtrBool
	kindPtrInt
	kindPtrFloat
)

var errSpill = errors.New("damaged spill file")

func layoutOf(t reflect.Type) (*rowLayout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("rows of type %v are no structs", t)
	}
	l := &rowLayout{size: int(t.Size())}
	return l, l.add(t, nil)
}

// columnsOf is layoutOf for rows of a file. parquet-go (v0.32, fieldByIndex) reads null
// into a pointer of an embedded struct as a pointer to zero, so such rows are refused.
func columnsOf(t reflect.Type) (*rowLayout, error) {
	l, err := layoutOf(t)
	if err != nil {
		return nil, err
	}
	for _, f := range l.fields {
		if field := t.FieldByIndex(f.index); field.Type.Kind() == reflect.Pointer && len(f.index) > 1 {
			return nil, fmt.Errorf("field %s of %v: a pointer in an embedded struct cannot be read as null: put it beside the struct", field.Name, t)
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
		kind, ok := kindOf(f.Type)
		if !ok || !f.IsExported() {
			return fmt.Errorf("field %s of %v: type %v is no column type", f.Name, t, f.Type)
		}
		l.fields = append(l.fields, rowField{index, kind})
	}
	return nil
}

func kindOf(t reflect.Type) (fieldKind, bool) {
	switch t.Kind() {
	case reflect.String:
		return kindString, true
	case reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int8, reflect.Int:
		return kindInt, true
	case reflect.Bool:
		return kindBool, true
	case reflect.Float64, reflect.Float32:
		return kindFloat, true
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.String:
			return kindStrings, true
		case reflect.Int32:
			return kindInts, true
		case reflect.Uint8:
			return kindBytes, true
		}
	case reflect.Pointer:
		switch t.Elem().Kind() {
		case reflect.Bool:
			return kindPtrBool, true
		case reflect.Int16, reflect.Int32, reflect.Int64:
			return kindPtrInt, true
		case reflect.Float64:
			return kindPtrFloat, true
		}
	}
	return 0, false
}

// textBytes is the memory that a row holds outside its struct.
func (l *rowLayout) textBytes(v reflect.Value) int {
	n := 0
	for i := range l.fields {
		switch f := &l.fields[i]; f.kind {
		case kindString, kindBytes:
			n += v.FieldByIndex(f.index).Len()
		case kindStrings:
			s := v.FieldByIndex(f.index)
			for j := range s.Len() {
				n += 16 + s.Index(j).Len()
			}
		case kindInts:
			n += 4 * v.FieldByIndex(f.index).Len()
		case kindPtrBool, kindPtrInt, kindPtrFloat:
			n += 8
		}
	}
	return n
}

// encode appends the row v to buf.
func (l *rowLayout) encode(buf []byte, v reflect.Value) []byte {
	for i := range l.fields {
		f := v.FieldByIndex(l.fields[i].index)
		switch l.fields[i].kind {
		case kindString:
			buf = appendText(buf, f.String())
		case kindInt:
			buf = binary.AppendVarint(buf, f.Int())
		case kindBool:
			buf = append(buf, boolByte(f.Bool()))
		case kindFloat:
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(f.Float()))
		case kindStrings:
			// 0 is nil, n+1 a slice of n.
			if f.IsNil() {
				buf = append(buf, 0)
				break
			}
			buf = binary.AppendUvarint(buf, uint64(f.Len())+1)
			for j := range f.Len() {
				buf = appendText(buf, f.Index(j).String())
			}
		case kindInts:
			if f.IsNil() {
				buf = append(buf, 0)
				break
			}
			buf = binary.AppendUvarint(buf, uint64(f.Len())+1)
			for j := range f.Len() {
				buf = binary.AppendVarint(buf, f.Index(j).Int())
			}
		case kindBytes:
			if f.IsNil() {
				buf = append(buf, 0)
				break
			}
			buf = binary.AppendUvarint(buf, uint64(f.Len())+1)
			buf = append(buf, f.Bytes()...)
		case kindPtrBool:
			if f.IsNil() {
				buf = append(buf, 2)
			} else {
				buf = append(buf, boolByte(f.Elem().Bool()))
			}
		case kindPtrInt:
			if f.IsNil() {
				buf = append(buf, 0)
			} else {
				buf = binary.AppendVarint(append(buf, 1), f.Elem().Int())
			}
		case kindPtrFloat:
			if f.IsNil() {
				buf = append(buf, 0)
			} else {
				buf = binary.LittleEndian.AppendUint64(append(buf, 1), math.Float64bits(f.Elem().Float()))
			}
		}
	}
	return buf
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// decode reads a row that encode wrote into the zeroed struct v. Its strings
// share the memory of data.
func (l *rowLayout) decode(data string, v reflect.Value) error {
	d := decoder{data: data}
	for i := range l.fields {
		f := v.FieldByIndex(l.fields[i].index)
		switch l.fields[i].kind {
		case kindString:
			f.SetString(d.text())
		case kindInt:
			f.SetInt(d.varint())
		case kindBool:
			f.SetBool(d.byte() == 1)
		case kindFloat:
			f.SetFloat(d.float())
		case kindStrings:
			n, ok := d.length()
			if !ok {
				break
			}
			s := reflect.MakeSlice(f.Type(), n, n)
			for j := range n {
				s.Index(j).SetString(d.text())
			}
			f.Set(s)
		case kindInts:
			n, ok := d.length()
			if !ok {
				break
			}
			s := reflect.MakeSlice(f.Type(), n, n)
			for j := range n {
				s.Index(j).SetInt(d.varint())
			}
			f.Set(s)
		case kindBytes:
			if n, ok := d.length(); ok {
				f.SetBytes([]byte(d.take(n)))
			}
		case kindPtrBool:
			if b := d.byte(); b != 2 {
				f.Set(reflect.New(f.Type().Elem()))
				f.Elem().SetBool(b == 1)
			}
		case kindPtrInt:
			if d.byte() == 1 {
				f.Set(reflect.New(f.Type().Elem()))
				f.Elem().SetInt(d.varint())
			}
		case kindPtrFloat:
			if d.byte() == 1 {
				f.Set(reflect.New(f.Type().Elem()))
				f.Elem().SetFloat(d.float())
			}
		}
	}
	if d.bad || d.data != "" {
		return errSpill
	}
	return nil
}

// decoder takes values off the front of data; once bad, it gives zero values.
type decoder struct {
	data string
	bad  bool
}

func (d *decoder) take(n int) string {
	if n < 0 || n > len(d.data) {
		d.bad, d.data = true, ""
		return ""
	}
	s := d.data[:n]
	d.data = d.data[n:]
	return s
}

func (d *decoder) byte() byte {
	if s := d.take(1); s != "" {
		return s[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	var x uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b := d.byte()
		x |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return x
		}
	}
	d.bad = true
	return 0
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.data)) {
		d.bad, d.data = true, ""
		return ""
	}
	return d.take(int(n))
}

func (d *decoder) float() float64 {
	s := d.take(8)
	if len(s) < 8 {
		return 0
	}
	var u uint64
	for i := 7; i >= 0; i-- {
		u = u<<8 | uint64(s[i])
	}
	return math.Float64frombits(u)
}

// length reads a slice's length; false means nil. Each element takes a byte at
// least, which bounds it.
func (d *decoder) length() (int, bool) {
	n := d.uvarint()
	if n == 0 {
		return 0, false
	}
	if n-1 > uint64(len(d.data)) {
		d.bad, d.data = true, ""
		return 0, false
	}
	return int(n - 1), true
}
