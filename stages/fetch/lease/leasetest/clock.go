// Package leasetest has a clock for tests of machines that are suspended or whose clock is set.
package leasetest

import (
	"sync/atomic"
	"time"
	"unsafe"

	"crawlbatch.io/crawlbatch/stages"
)

// Clock is a clock whose monotonic time is right and whose wall time is wrong by Step. Times of a
// synctest bubble have no monotonic reading, so Clock computes one.
type Clock struct {
	stages.SystemClock
	Step  atomic.Int64 // seconds by which the wall time is ahead
	base  time.Time    // has a wall and a monotonic reading
	began time.Time    // time of the bubble's clock when this Clock was made
}

// NewClock makes a clock for use in a synctest bubble. The caller reads base outside the bubble, so
// that base has a monotonic reading.
func NewClock(base time.Time) *Clock { return &Clock{base: base, began: time.Now()} }

// Now returns the time with both readings.
func (c *Clock) Now() time.Time { return WithWall(c.base.Add(time.Since(c.began)), c.Step.Load()) }

// WithWall returns t with its wall reading moved by some seconds and the same monotonic reading.
// Package time has no function that changes only the wall reading. A time.Time with both readings
// holds the wall seconds above 30 bits of nanoseconds.
func WithWall(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}
