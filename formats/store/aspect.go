package store

import (
	"context"
	"time"
)

// Locker is an optional interface of a Bucket: a store that only one machine uses has locks. A lock
// becomes free as soon as its holder dies. The next holder need not wait until a lease ends.
type Locker interface {
	// Lock takes the named lock if it is free. ok is false if another holder has the lock.
	Lock(name string) (lock Lock, ok bool, err error)
}

// Lock is a held lock. Several goroutines may use a Lock at a time.
type Lock interface {
	// Stands reports whether the lock still excludes other processes. Stands returns false after
	// the lock was released or its file was removed: another process may then take the lock.
	Stands() bool
	// Inherited reports whether the previous holder died or abandoned the lock. Inherited returns
	// false if the previous holder released the lock, or if somebody removed the lock's file.
	Inherited() bool
	// Abandon frees the lock as if this process had died: Inherited returns true for the next
	// holder.
	Abandon()
	// Release frees the lock. A second Release does nothing. If Stands is false, Release does
	// nothing either, because another process may hold a lock of the same name.
	Release()
}

// Dater is an optional interface of a Bucket: a store on a server has a clock of its own.
type Dater interface {
	// Skew returns the store's time minus this machine's time. The error of the result is at most
	// the round trip plus one second, because an HTTP Date has whole seconds.
	Skew(ctx context.Context) (time.Duration, error)
}

// As searches b and the buckets that b wraps, and returns the first one of type T, such as Locker.
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
