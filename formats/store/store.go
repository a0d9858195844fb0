// Package store is the one place where crawlbatch keeps state: a flat namespace
// of objects with strongly consistent reads, create-only writes and
// compare-and-swap. S3, R2, MinIO, versitygw and a local directory all have
// these, and no other service is needed.
//
// In: keys (see package layout) and bodies. Out: objects and their versions.
// The package promises that a write is seen whole or not at all, and that the
// answer of a conditional write is definite. It imports the standard library
// alone; implementations live below it (dirstore, s3store), wrappers beside
// them implement the same interface.
package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
)

// Sentinels that every implementation returns, wrapped with the key they are about.
var (
	// ErrNotFound: no object has that key.
	ErrNotFound = errors.New("object not found")
	// ErrExists: Create found an object under that key with other content.
	ErrExists = errors.New("object exists already")
	// ErrConflict: Swap found another version than the one it was given.
	ErrConflict = errors.New("object was changed by another writer")
	// ErrUnavailable: the store did not answer, or answered that it is
	// overloaded; the same call may succeed later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDenied: credentials, permissions or the bucket's name are wrong; the
	// same call cannot succeed without somebody's help.
	ErrDenied = errors.New("store refused access")
	// ErrUnsupported: the store lacks what the protocol needs, such as
	// conditional writes.
	ErrUnsupported = errors.New("store lacks a needed operation")
	// ErrFull: no space or quota is left. Start nothing new, keep what is whole,
	// go on when there is room.
	ErrFull = errors.New("store is full")
	// ErrTooLarge: Get found an object above its limit.
	ErrTooLarge = errors.New("object is larger than allowed")
	// ErrKey: the key or prefix breaks the rules of CheckKey, a bug of the caller.
	ErrKey = errors.New("invalid key")
	// ErrClock: this machine's clock and the store's differ by more than MaxSkew.
	ErrClock = errors.New("clock differs from the store's")
)

// Version names one state of one object: an ETag, or a digest of its content.
// The zero Version means "no object". Bodies that are swapped must be unique
// (attempt, epoch, counter inside), so that a Version never recurs.
type Version string

// Info describes an object in a listing.
type Info struct {
	Key  string
	Size int64 // bytes
}

// Object is an open object that is read by ranges. Close it once; ReadAt may be
// called by several goroutines at a time.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64 // bytes
}

// Bucket is an object store, or a prefix of one. All methods may be called by
// several goroutines and processes at a time. Keys obey CheckKey, and no key is
// also the folder of another.
type Bucket interface {
	// Create stores size bytes of body under key if nothing is there. When an
	// object is there already, Create succeeds if its bytes are the same (so a
	// repeated call, or one whose first answer was lost, is harmless) and
	// returns ErrExists otherwise. The object is durable on return.
	Create(ctx context.Context, key string, body io.ReaderAt, size int64) (Version, error)

	// Swap replaces the object of version old (zero: there is none yet) by body
	// and returns its new version; ErrConflict when the object is at another
	// version. An object that holds exactly body already was swapped by this
	// caller (bodies are unique), so a repeated Swap succeeds. After a lost answer
	// the implementation reads back until it knows: ErrConflict then says that
	// body is not what stands there, be it that it lost, or that it took effect
	// and another writer has replaced it since; a caller to whom that matters
	// leaves a mark of its own in what is handed on. ErrUnavailable with ctx's
	// error is returned only when ctx ends before the outcome is known.
	Swap(ctx context.Context, key string, body []byte, old Version) (Version, error)

	// Get reads a small object whole, at most limit bytes; a larger one is ErrTooLarge.
	Get(ctx context.Context, key string, limit int64) ([]byte, Version, error)

	// Open opens an object for reads by range; ctx bounds these reads too, so it
	// must live until Close.
	Open(ctx context.Context, key string) (Object, error)

	// List yields the objects whose key starts with prefix (need not end at a
	// slash), in byte order of keys, without holding them all in memory. A pair
	// with a non-nil error is the last.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes an object; an absent one is no error.
	Delete(ctx context.Context, key string) error

	// String is the store's address as a user wrote it, without secrets.
	String() string
}

// CreateBytes is Create for a body in memory.
func CreateBytes(ctx context.Context, b Bucket, key string, body []byte) (Version, error) {
	return b.Create(ctx, key, bytes.NewReader(body), int64(len(body)))
}
