package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
)

// Counts holds the numbers of calls and bytes of a bucket since Count wrapped the bucket. One call
// of a Bucket method counts once, even if it needs several requests to the store.
type Counts struct {
	// Puts is the number of calls of Create and Swap. Gets is the number of calls of Get, GetNew,
	// Open and ReadAt.
	Puts, Gets, Lists, Deletes int64
	Failed                     int64 // calls that returned an error, except ErrExists, ErrConflict, ErrNotFound, ErrUnchanged and io.EOF
	BytesIn, BytesOut          int64 // bytes read from the store, and bytes of accepted writes to the store
}

// Counter is a Bucket that counts the calls to the wrapped bucket.
type Counter struct {
	Bucket
	mu     sync.Mutex
	counts Counts
	last   string // key of the object that was read last
}

// Count wraps b in a Counter.
func Count(b Bucket) *Counter { return &Counter{Bucket: b} }

// Unwrap returns the counted bucket.
func (c *Counter) Unwrap() Bucket { return c.Bucket }

// Counts returns the counts so far.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Last returns the key of the object that was read last, or "".
func (c *Counter) Last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// reads notes the key of an object that is read.
func (c *Counter) reads(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = key
}

// note adds one to *calls, adds the bytes that the call read or wrote, and counts a failure.
func (c *Counter) note(calls *int64, err error, in, out int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*calls++
	c.counts.BytesIn += in
	switch {
	case err == nil:
		c.counts.BytesOut += out
	case err == io.EOF, errors.Is(err, ErrExists), errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound), errors.Is(err, ErrUnchanged):
	default:
		c.counts.Failed++
	}
}

// Create implements Bucket.
func (c *Counter) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (Version, error) {
	v, err := c.Bucket.Create(ctx, key, body, size)
	c.note(&c.counts.Puts, err, 0, size)
	return v, err
}

// Swap implements Bucket.
func (c *Counter) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old Version) (Version, error) {
	v, err := c.Bucket.Swap(ctx, key, body, size, old)
	c.note(&c.counts.Puts, err, 0, size)
	return v, err
}

// Get implements Bucket.
func (c *Counter) Get(ctx context.Context, key string, limit int64) ([]byte, Version, error) {
	c.reads(key)
	body, v, err := c.Bucket.Get(ctx, key, limit)
	c.note(&c.counts.Gets, err, int64(len(body)), 0)
	return body, v, err
}

// Open implements Bucket. The Counter also counts reads of the object.
func (c *Counter) Open(ctx context.Context, key string) (Object, error) {
	c.reads(key)
	object, err := c.Bucket.Open(ctx, key)
	c.note(&c.counts.Gets, err, 0, 0)
	if err != nil {
		return nil, err
	}
	return ReadBy(object, func(p []byte, off int64) (int, error) {
		n, err := object.ReadAt(p, off)
		c.note(&c.counts.Gets, err, int64(n), 0)
		return n, err
	}), nil
}

// List implements Bucket.
func (c *Counter) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		var failed error
		defer func() { c.note(&c.counts.Lists, failed, 0, 0) }()
		for info, err := range c.Bucket.List(ctx, prefix) {
			failed = err
			if !yield(info, err) {
				return
			}
		}
	}
}

// Delete implements Bucket.
func (c *Counter) Delete(ctx context.Context, key string) error {
	err := c.Bucket.Delete(ctx, key)
	c.note(&c.counts.Deletes, err, 0, 0)
	return err
}
