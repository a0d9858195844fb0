package wire

import (
	"math/bits"
	"sync"
)

// Buffers come in sizes of 4, 6, 8, 12 … KiB up to 8 MiB; others are left to the
// garbage collector.
const (
	minBufferBits = 12
	maxBufferBits = 23
)

var bufferPools [2*(maxBufferBits-minBufferBits) + 1]sync.Pool

// bufferSize is the least size of buffers with room for n bytes, and the pool
// that has them; there is no pool for sizes beyond 8 MiB.
func bufferSize(n int) (size, pool int) {
	b := max(bits.Len(uint(max(n, 1)-1)), minBufferBits)
	switch {
	case b > maxBufferBits:
		return n, -1
	case b > minBufferBits && n <= 3<<(b-2):
		return 3 << (b - 2), 2*(b-minBufferBits) - 1
	}
	return 1 << b, 2 * (b - minBufferBits)
}

// getBuffer returns an empty slice with room for at least n bytes.
func getBuffer(n int) []byte {
	size, pool := bufferSize(n)
	if pool < 0 {
		return make([]byte, 0, size)
	}
	if b, ok := bufferPools[pool].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, size)
}

// putBuffer gives back what getBuffer returned.
func putBuffer(b []byte) {
	if cap(b) == 0 {
		return
	}
	if size, pool := bufferSize(cap(b)); pool >= 0 && cap(b) == size {
		b = b[:0]
		bufferPools[pool].Put(&b)
	}
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
