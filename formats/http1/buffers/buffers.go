// Package buffers pools the byte slices that hold requests and responses.
//
// Buffers have sizes of 4, 6, 8, 12 … KiB up to 8 MiB. Larger buffers are not pooled.
package buffers

import (
	"math/bits"
	"sync"
)

const (
	minBits = 12
	maxBits = 23
)

var pools [2*(maxBits-minBits) + 1]sync.Pool

// Size returns the capacity in bytes of the buffer that Get(n) returns.
func Size(n int) int {
	size, _ := sizeClass(n)
	return size
}

// sizeClass returns the smallest buffer size for n bytes and the index of its pool. Above 8 MiB the
// index is -1.
func sizeClass(n int) (size, pool int) {
	b := max(bits.Len(uint(max(n, 1)-1)), minBits)
	switch {
	case b > maxBits:
		return n, -1
	case b > minBits && n <= 3<<(b-2):
		return 3 << (b - 2), 2*(b-minBits) - 1
	}
	return 1 << b, 2 * (b - minBits)
}

// Get returns an empty slice with room for at least n bytes.
func Get(n int) []byte {
	size, pool := sizeClass(n)
	if pool < 0 {
		return make([]byte, 0, size)
	}
	if b, ok := pools[pool].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, size)
}

// Put returns b to its pool. The caller must not use b afterwards. Put ignores nil and slices whose
// size is not pooled.
func Put(b []byte) {
	if cap(b) == 0 {
		return
	}
	if size, pool := sizeClass(cap(b)); pool >= 0 && cap(b) == size {
		b = b[:0]
		pools[pool].Put(&b)
	}
}

// Grow returns a buffer with the content of b and room for n bytes in total. If it moves the
// content, it returns b to its pool.
func Grow(b []byte, n int) []byte {
	if n <= cap(b) {
		return b
	}
	g := append(Get(n), b...)
	Put(b)
	return g
}
