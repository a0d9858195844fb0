package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
)

// Counts are the calls and bytes of a bucket since it was wrapped. They count calls of
// Bucket: a multipart upload is one PUT, and reads that settle a lost response do not
// count.
type Counts struct {
	Puts, Gets, Lists, Deletes int64 // Create and Swap; Get, Open and ReadAt; List; Delete
	Failed                     int64 // calls that returned an error, except a lost race, absence or end of object
	BytesIn, BytesOut          int64 // bytes read from the store; bytes of accepted writes to it
}

// Counter is a Bucket that counts the calls to the wrapped one.
type Counter struct {
	Bucket
	puts, gets, lists, deletes, failed, bytesIn, bytesOut atomic.Int64
}

// Count wraps b.
func Count(b Bucket) *Counter { return &Counter{Bucket: b} }

// Unwrap returns the counted bucket.
func (c *Counter) Unwrap() Bucket { return c.Bucket }

// Counts reads the counters. Each one is exact; together they are not a snapshot.
func (c *Counter) Counts() Counts {
	return Counts{
		Puts: c.puts.Load(), Gets: c.gets.Load(), Lists: c.lists.Load(), Deletes: c.deletes.Load(),
		Failed: c.failed.Load(), BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
	}
}

func (c *Counter) note(err error) {
	switch {
	case err == nil, err == io.EOF, errors.Is(err, ErrExists), errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
	default:
		c.failed.Add(1)
	}
}

func (c *Counter) wrote(size int64, err error) {
	c.puts.Add(1)
	c.note(err)
	if err == nil {
		c.bytesOut.Add(size)
	}
}

// Create implements Bucket.
func (c *Counter) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (Version, error) {
	v, err := c.Bucket.Create(ctx, key, body, size)
	c.wrote(size, err)
	return v, err
}

// Swap implements Bucket.
func (c *Counter) Swap(ctx context.Context, key string, body []byte, old Version) (Version, error) {
	v, err := c.Bucket.Swap(ctx, key, body, old)
	c.wrote(int64(len(body)), err)
	return v, err
}

// Get implements Bucket.
func (c *Counter) Get(ctx context.Context, key string, limit int64) ([]byte, Version, error) {
	body, v, err := c.Bucket.Get(ctx, key, limit)
	c.read(len(body), err)
	return body, v, err
}

func (c *Counter) read(n int, err error) {
	c.gets.Add(1)
	c.bytesIn.Add(int64(n))
	c.note(err)
}

// Open implements Bucket. The Counter also counts reads of the object.
func (c *Counter) Open(ctx context.Context, key string) (Object, error) {
	object, err := c.Bucket.Open(ctx, key)
	c.read(0, err)
	if err != nil {
		return nil, err
	}
	return &countedObject{object, c}, nil
}

type countedObject struct {
	Object
	counter *Counter
}

func (o *countedObject) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.Object.ReadAt(p, off)
	o.counter.read(n, err)
	return n, err
}

// List implements Bucket.
func (c *Counter) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		c.lists.Add(1)
		for info, err := range c.Bucket.List(ctx, prefix) {
			c.note(err)
			if !yield(info, err) {
				return
			}
		}
	}
}

// Delete implements Bucket.
func (c *Counter) Delete(ctx context.Context, key string) error {
	err := c.Bucket.Delete(ctx, key)
	c.deletes.Add(1)
	c.note(err)
	return err
}
