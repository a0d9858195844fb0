// Package leasetest has a clock for tests of machines that are suspended or whose clock is set.
package leasetest

import (
	"sync/atomic"
	"time"
	"unsafe"

	"crawlbatch.io/crawlbatch/stages"
)

// Clock is a clock whose wall time is off by Step, but whose monotonic time is right. The
// times of a synctest bubble have no monotonic reading, so the clock keeps its own.
type Clock struct {
	stages.SystemClock
	Step  atomic.Int64 // seconds
	base  time.Time    // has a wall and a monotonic reading
	began time.Time    // by the bubble's clock
}

// NewClock makes a clock for use in a synctest bubble. base was read outside the bubble.
func NewClock(base time.Time) *Clock { return &Clock{base: base, began: time.Now()} }

// Now is the time by both readings.
func (c *Clock) Now() time.Time { return WithWall(c.base.Add(time.Since(c.began)), c.Step.Load()) }

// WithWall changes the wall reading of a time and keeps its monotonic reading. Package time
// has no function for that. A time.Time with both readings holds the wall seconds above 30
// bits of nanoseconds.
func WithWall(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}
