package store

import (
	"context"
	"time"
)

// Locker is what a store on one machine offers beside Bucket: a lock that the
// death of its holder frees, so that a successor need not wait for a lease.
type Locker interface {
	// Lock takes the lock of that name if nobody holds it; ok says whether it
	// did. release frees it and is harmless when called twice.
	Lock(name string) (release func(), ok bool, err error)
}

// Dater is what a store with a clock of its own offers beside Bucket.
type Dater interface {
	// Skew is the store's time minus this machine's. Its error is at most the
	// round trip and the second that an HTTP Date is rounded to.
	Skew(ctx context.Context) (time.Duration, error)
}

// As finds the first of b and the buckets it wraps that is a T, such as Locker.
func As[T any](b Bucket) (T, bool) {
	for b != nil {
		if t, ok := b.(T); ok {
			return t, true
		}
		wrapper, ok := b.(interface{ Unwrap() Bucket })
		if !ok {
			break
		}
		b = wrapper.Unwrap()
	}
	var none T
	return none, false
}
