package warc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// RecordIDs gives a source of record IDs that depends on name alone: the n-th
// call gives a UUID of version 8 (RFC 9562, section 5.8) made of the SHA-256 of
// name and n. A name that is that of one WARC file of one plan makes them
// unique, and makes the same records the same bytes. The source is for one
// goroutine.
func RecordIDs(name string) func() string {
	seed := sha256.Sum256([]byte(name))
	var n uint64
	return func() string {
		var in [sha256.Size + 8]byte
		copy(in[:], seed[:])
		binary.BigEndian.PutUint64(in[sha256.Size:], n)
		n++
		sum := sha256.Sum256(in[:])
		return uuidURN([16]byte(sum[:16]), 8)
	}
}

// randomID gives a random UUID (version 4).
func randomID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails: crypto/rand ends the program instead
	return uuidURN(u, 4)
}

// uuidURN formats u as RFC 9562 has it, with its version and variant set.
func uuidURN(u [16]byte, version byte) string {
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	b := make([]byte, 0, len("urn:uuid:")+36)
	b = append(b, "urn:uuid:"...)
	for i, group := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, group)
	}
	return string(b)
}
