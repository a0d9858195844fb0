// Package store defines the object store that holds all state of crawlbatch: a flat
// namespace of objects with strongly consistent reads, create-only writes and
// compare-and-swap. S3, R2, MinIO, versitygw and a local directory offer these. No other
// service is needed.
//
// In: keys (see package layout) and bodies. Out: objects and their versions. A write is
// visible whole or not at all, and the result of a conditional write is definite. The
// package imports the standard library only. Implementations live below it (dirstore,
// s3store). Wrappers implement the same interface.
package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
)

// The errors that every implementation returns, wrapped with the key.
var (
	// ErrNotFound: no object has that key.
	ErrNotFound = errors.New("object not found")
	// ErrExists: Create found an object with that key and other content.
	ErrExists = errors.New("object exists already")
	// ErrConflict: Swap found a different version from the one it was given.
	ErrConflict = errors.New("object was changed by another writer")
	// ErrUnavailable: the store did not answer, or answered that it is overloaded. The
	// same call may succeed later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDenied: credentials, permissions or the bucket's name are wrong. The same call
	// fails until somebody changes them.
	ErrDenied = errors.New("store refused access")
	// ErrUnsupported: the store lacks an operation that the protocol needs, such as conditional
	// writes.
	ErrUnsupported = errors.New("store lacks a needed operation")
	// ErrFull: no space or quota is left. The caller starts nothing new, keeps what is complete,
	// and continues when there is room.
	ErrFull = errors.New("store is full")
	// ErrTooLarge: Get found an object above its limit.
	ErrTooLarge = errors.New("object is larger than allowed")
	// ErrKey: the key or prefix breaks the rules of CheckKey, which is a bug of the
	// caller.
	ErrKey = errors.New("invalid key")
	// ErrClock: this machine's clock and the store's differ by more than MaxSkew.
	ErrClock = errors.New("clock differs from the store's")
)

// Version names one state of one object: an ETag, or a digest of its content. The zero
// Version means "no object". Bodies that are swapped must be unique (they contain attempt,
// epoch or counter), so that a Version never recurs.
type Version string

// Info describes an object in a listing.
type Info struct {
	Key  string
	Size int64 // bytes
}

// Object is an open object that is read by ranges. Close it once. Several goroutines may
// call ReadAt at a time.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64 // bytes
}

// ReadBy returns o, but calls of ReadAt go to readAt. A closure can hold what io.ReaderAt
// lacks, such as a context.
func ReadBy(o Object, readAt func(p []byte, off int64) (int, error)) Object {
	return &readObject{o, readAt}
}

type readObject struct {
	Object
	readAt func([]byte, int64) (int, error)
}

// ReadAt implements io.ReaderAt.
func (o *readObject) ReadAt(p []byte, off int64) (int, error) { return o.readAt(p, off) }

// Bucket is an object store, or a prefix of one. Several goroutines and processes may call
// all methods at a time. Keys obey CheckKey, and no key is also the folder of another key.
type Bucket interface {
	// Create stores size bytes of body under key if no object exists there. If one exists
	// with the same bytes, Create succeeds, so repeating a call is harmless. If it has
	// other bytes, Create returns ErrExists. The object is durable on return.
	Create(ctx context.Context, key string, body io.ReaderAt, size int64) (Version, error)

	// Swap replaces the object of version old by body and returns its new version. A zero
	// old means that there is no object. Swap returns ErrConflict if the object has
	// another version. If the object already has exactly these bytes, this caller swapped
	// it before (bodies are unique), so a repeated Swap succeeds. After a lost response
	// the implementation reads back until it knows the outcome. ErrConflict then means
	// that other bytes are there now: either body lost, or it took effect and another
	// writer has replaced it since. A caller that must tell these apart puts a mark of its
	// own into the body, and other writers keep that mark. Swap returns ErrUnavailable
	// with ctx's error only if ctx ends before the outcome is known.
	Swap(ctx context.Context, key string, body []byte, old Version) (Version, error)

	// Get reads a small object whole, at most limit bytes. For a larger object it returns
	// ErrTooLarge.
	Get(ctx context.Context, key string, limit int64) ([]byte, Version, error)

	// Open opens an object for reads by range. ctx also bounds these reads, so it must
	// live until Close.
	Open(ctx context.Context, key string) (Object, error)

	// List yields the objects whose key starts with prefix, in byte order of keys, without
	// holding them all in memory. prefix need not end at a slash. A pair with an error is
	// the last.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, key string) error

	// String returns the store's address as a user wrote it, without secrets.
	String() string
}

// CreateBytes is Create for a body in memory.
func CreateBytes(ctx context.Context, b Bucket, key string, body []byte) (Version, error) {
	return b.Create(ctx, key, bytes.NewReader(body), int64(len(body)))
}
