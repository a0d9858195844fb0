// Package pack reads values from encoded rows.
//
// The input is a string of values as the Append functions of encoding/binary write them. The output is the
// values. A malformed value is an error and never a panic. Package pack imports nothing of crawlbatch.
package pack

import "encoding/binary"

// Decoder reads values from the front of Data. After a malformed value, Bad is true, Data is empty, and all
// methods return zero values. The strings share the memory of Data.
type Decoder struct {
	Data string
	Bad  bool
}

// fail notes a malformed value.
func (d *Decoder) fail() { d.Bad, d.Data = true, "" }

// Take reads n bytes.
func (d *Decoder) Take(n uint64) string {
	if n > uint64(len(d.Data)) {
		d.fail()
		return ""
	}
	s := d.Data[:n]
	d.Data = d.Data[n:]
	return s
}

// Byte reads a byte.
func (d *Decoder) Byte() byte {
	if s := d.Take(1); s != "" {
		return s[0]
	}
	return 0
}

// Text reads a string after its length, which is an unsigned varint.
func (d *Decoder) Text() string { return d.Take(d.Uvarint()) }

// Varint reads a signed varint.
func (d *Decoder) Varint() int64 {
	u := d.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Uvarint reads an unsigned varint.
func (d *Decoder) Uvarint() uint64 {
	var x uint64
	for i := 0; i < len(d.Data) && i < binary.MaxVarintLen64; i++ {
		b := d.Data[i]
		x |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.Data = d.Data[i+1:]
			return x
		}
	}
	d.fail()
	return 0
}
