package store

import (
	"context"
	"time"
)

// Locker is an optional interface of a store on one machine: a lock that becomes free when its
// holder dies, so that a successor need not wait for a lease.
type Locker interface {
	// Lock takes the lock of that name if it is free; ok reports whether it did. release frees it
	// and may be called twice.
	Lock(name string) (release func(), ok bool, err error)
}

// Dater is an optional interface of a store with its own clock.
type Dater interface {
	// Skew is the store's time minus this machine's. Its error is at most the round trip plus the
	// second to which an HTTP Date is rounded.
	Skew(ctx context.Context) (time.Duration, error)
}

// As returns the first T, such as a Locker, among b and the buckets that it wraps.
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
