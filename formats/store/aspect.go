package store

import (
	"context"
	"time"
)

// Locker is an optional interface of a store on one machine. Its lock becomes free when
// the holder dies, so a successor does not have to wait for a lease.
type Locker interface {
	// Lock takes the named lock if it is free; ok reports whether it did.
	Lock(name string) (lock Lock, ok bool, err error)
}

// Lock is a lock that was taken. Several goroutines may use it at a time.
type Lock interface {
	// Stands reports whether the lock still keeps others out. Once it is released or its file is
	// removed, another process may hold the name.
	Stands() bool
	// Release frees the lock. It may be called twice. It does nothing to a lock that no
	// longer stands, because another process may hold the name.
	Release()
}

// Dater is an optional interface of a store that has its own clock.
type Dater interface {
	// Skew returns the store's time minus this machine's. Its error is at most the round
	// trip plus one second, because an HTTP Date has whole seconds.
	Skew(ctx context.Context) (time.Duration, error)
}

// As returns the first value of type T, such as a Locker, among b and the buckets that b
// wraps.
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
