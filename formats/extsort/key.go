package extsort

import (
	"encoding/binary"
	"strings"
)

// AppendText appends a text to a key. A text that another one begins with comes before it, whatever follows in the key.
func AppendText(key []byte, s string) []byte {
	// The lowest byte ends the text, so it and the one by which it is replaced must not be in the text.
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, 1) < 0 {
		return append(append(key, s...), 0)
	}
	for i := range len(s) {
		if s[i] <= 1 {
			key = append(key, 1, s[i]+1)
		} else {
			key = append(key, s[i])
		}
	}
	return append(key, 0)
}

// AppendUint appends a number to a key.
func AppendUint(key []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(key, n) }

// AppendInt appends a number to a key, negative ones first. For the highest number first, append ^n.
func AppendInt(key []byte, n int64) []byte { return AppendUint(key, uint64(n)^1<<63) }
