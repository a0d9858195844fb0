package wire

import (
	"math/bits"
	"sync"
)

// Buffers come in powers of two from 4 KiB to 8 MiB; others are left to the
// garbage collector.
const (
	minBufferBits = 12
	maxBufferBits = 23
)

var bufferPools [maxBufferBits - minBufferBits + 1]sync.Pool

// getBuffer returns an empty slice with room for at least n bytes.
func getBuffer(n int) []byte {
	class := max(bits.Len(uint(max(n, 1)-1)), minBufferBits)
	if class > maxBufferBits {
		return make([]byte, 0, n)
	}
	if b, ok := bufferPools[class-minBufferBits].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 1<<class)
}

// putBuffer gives back what getBuffer returned.
func putBuffer(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if class < minBufferBits || class > maxBufferBits || cap(b) != 1<<class {
		return
	}
	b = b[:0]
	bufferPools[class-minBufferBits].Put(&b)
}

// growBuffer returns a buffer with the content of b and room for n bytes in
// all; b is given back if it had to move.
func growBuffer(b []byte, n int) []byte {
	if n <= cap(b) {
		return b
	}
	g := append(getBuffer(n), b...)
	putBuffer(b)
	return g
}
