package extsort

import (
	"encoding/binary"
	"math"
	"strings"
)

// Key is bytes whose order is that of the values that were appended.
type Key []byte

// Text appends a text. A text that another one begins with comes before it, whatever follows in the key.
func (k Key) Text(s string) Key {
	// The lowest byte ends the text, so it and the one by which it is replaced must not be in the text.
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, 1) < 0 {
		return append(append(k, s...), 0)
	}
	for i := range len(s) {
		if s[i] <= 1 {
			k = append(k, 1, s[i]+1)
		} else {
			k = append(k, s[i])
		}
	}
	return append(k, 0)
}

// Uint appends a number.
func (k Key) Uint(n uint64) Key { return binary.BigEndian.AppendUint64(k, n) }

// Int appends a number, negative ones first. For the highest number first, append ^n.
func (k Key) Int(n int64) Key { return k.Uint(uint64(n) ^ 1<<63) }

// Bool appends a bool, false first.
func (k Key) Bool(b bool) Key {
	if b {
		return append(k, 1)
	}
	return append(k, 0)
}

// Float appends a number, the least first. For the greatest number first, append -f.
func (k Key) Float(f float64) Key {
	bits := math.Float64bits(f + 0) // makes of -0 a 0
	if bits>>63 != 0 {
		return k.Uint(^bits)
	}
	return k.Uint(bits | 1<<63)
}
