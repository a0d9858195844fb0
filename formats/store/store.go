// Package store defines the object store that holds all state of crawlbatch: a flat namespace of
// objects with strongly consistent reads, create-only writes and compare-and-swap. A store can be
// in S3, R2, MinIO, versitygw or a local directory. crawlbatch needs no other service.
//
// The input is keys (see package layout) and bodies. The output is objects and their versions. A
// write is visible whole or not at all. Unless its context ends first, a conditional write returns
// only when it is certain whether it took effect. The packages dirstore and s3store implement
// Bucket. Wrappers such as WithRetry implement Bucket too. Package store imports the standard
// library only.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Every implementation returns these errors, wrapped in an error that names the key.
var (
	// ErrNotFound means that no object has the given key.
	ErrNotFound = errors.New("object not found")
	// ErrExists means that Create found an object with the same key and other bytes.
	ErrExists = errors.New("object exists already")
	// ErrConflict means that Swap found an object with another version than the expected one.
	ErrConflict = errors.New("object was changed by another writer")
	// ErrUnavailable means that the store did not answer or is overloaded. The same call may
	// succeed later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDenied means that credentials, permissions or the bucket's name are wrong. The same call
	// fails until somebody corrects the settings.
	ErrDenied = errors.New("store refused access")
	// ErrUnsupported means that the store lacks an operation that the protocol needs, such as
	// conditional writes.
	ErrUnsupported = errors.New("store lacks a needed operation")
	// ErrFull means that the store has no space or quota left. The caller then starts no new work,
	// keeps complete objects, and continues when there is space.
	ErrFull = errors.New("store is full")
	// ErrTooLarge means that Get found an object larger than the given limit.
	ErrTooLarge = errors.New("object is larger than allowed")
	// ErrKey means that a key or prefix breaks the rules of CheckKey or CheckPrefix. The caller has
	// a bug.
	ErrKey = errors.New("invalid key")
	// ErrClock means that this machine's clock and the store's clock differ by more than MaxSkew.
	ErrClock = errors.New("clock differs from the store's")
)

// Version identifies one state of one object, such as an ETag or a digest of the content. The zero
// Version means "no object". Each body that Swap writes must differ from all earlier bodies of the
// object, for example by a counter, so that a Version never recurs.
type Version string

// Info describes an object in a listing.
type Info struct {
	Key  string
	Size int64 // size of the object, in bytes
}

// Object is an open object, of which a caller reads ranges. The caller closes an Object once.
// Several goroutines may call ReadAt at the same time.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64 // size of the object, in bytes
	// Version returns the version of the content that ReadAt reads. It may read the whole object.
	Version() (Version, error)
}

// ReadBy wraps o in an object whose ReadAt calls readAt. A readAt that is a closure can use a
// context, which io.ReaderAt does not pass.
func ReadBy(o Object, readAt func(p []byte, off int64) (int, error)) Object {
	return &readObject{o, readAt}
}

type readObject struct {
	Object
	readAt func([]byte, int64) (int, error)
}

// ReadAt implements io.ReaderAt.
func (o *readObject) ReadAt(p []byte, off int64) (int, error) { return o.readAt(p, off) }

// File is a body of Create that is a whole local file. Nobody writes to the file after Create began, so a
// store in the same file system may link the object to the file, instead of copying its bytes.
type File struct {
	*os.File
	SHA256 string // digest of the content, in hex
}

// CreateFile creates a scratch file for the body of a File. It removes an earlier file at the path and does not
// truncate it, because a store may have linked an object to that file.
func CreateFile(path string) (*os.File, error) {
	_ = os.Remove(path) // OpenFile reports a file that remains
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	return f, nil
}

// Bucket is an object store, or the part of an object store under a prefix. Several goroutines and
// processes may call all methods at the same time. Keys obey CheckKey. No key names both an object
// and a folder.
type Bucket interface {
	// Create stores the first size bytes of body as an object, if the key has no object. If the key
	// has an object with the same bytes, Create succeeds too, so repeating a Create is harmless. If
	// the object has other bytes, Create returns ErrExists. The object is durable when Create
	// returns.
	Create(ctx context.Context, key string, body io.ReaderAt, size int64) (Version, error)

	// Swap replaces the object with the first size bytes of body if the object's version is old, and
	// returns the new version. Swap may read body more than once. If old is the zero Version, Swap requires that no object exists. Swap returns ErrConflict if the
	// object has another version. Callers never swap in the same content twice. If the object
	// already has the new content, an earlier call of this caller wrote it, and Swap succeeds.
	//
	// If the response to a write is lost, Swap reads back the object until the outcome is known.
	// ErrConflict then means that the object has other bytes: the swap had no effect, or another
	// writer has replaced the new content since. To distinguish the two cases, a caller puts a mark
	// into the new content, and other writers keep the mark. If ctx ends before the outcome is
	// known, Swap returns ErrUnavailable with ctx's error.
	Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old Version) (Version, error)

	// Get reads a whole small object. If the object has more than limit bytes, Get returns
	// ErrTooLarge.
	Get(ctx context.Context, key string, limit int64) ([]byte, Version, error)

	// Open opens an object, so that ranges of it can be read. If ctx ends, reads of the object fail.
	Open(ctx context.Context, key string) (Object, error)

	// List yields the objects whose key starts with the prefix, in byte order of keys. It never
	// holds all objects in memory. The prefix need not end in a slash. An error ends the sequence.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes an object. If the object is missing, Delete succeeds.
	Delete(ctx context.Context, key string) error

	// String returns the store's address as a user wrote it, without secrets.
	String() string
}

// CreateBytes calls Create with a body in memory.
func CreateBytes(ctx context.Context, b Bucket, key string, body []byte) (Version, error) {
	return b.Create(ctx, key, bytes.NewReader(body), int64(len(body)))
}

// SwapBytes calls Swap with a body in memory.
func SwapBytes(ctx context.Context, b Bucket, key string, body []byte, old Version) (Version, error) {
	return b.Swap(ctx, key, bytes.NewReader(body), int64(len(body)), old)
}
