// Package leasetest provides a clock that simulates a suspended machine or a changed wall clock.
package leasetest

import (
	"sync/atomic"
	"time"
	"unsafe"

	"crawlbatch.io/crawlbatch/stages"
)

// Clock has a correct monotonic time and a wall time that is wrong by Step. It computes the
// monotonic readings itself, because times in a synctest bubble have none.
type Clock struct {
	stages.SystemClock
	Step  atomic.Int64 // seconds by which the wall time is ahead
	base  time.Time    // has a wall and a monotonic reading
	began time.Time    // time of the bubble's clock when this Clock was made
}

// NewClock makes a clock for a synctest bubble. The caller reads base outside the bubble, where
// times have a monotonic reading.
func NewClock(base time.Time) *Clock { return &Clock{base: base, began: time.Now()} }

// Now returns the time with both readings.
func (c *Clock) Now() time.Time { return WithWall(c.base.Add(time.Since(c.began)), c.Step.Load()) }

// WithWall moves the wall reading of t by some seconds and keeps its monotonic reading. Package
// time has no such function, so WithWall edits the bits. In a time.Time with both readings, the
// seconds of the wall clock are stored above 30 bits of nanoseconds.
func WithWall(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}
