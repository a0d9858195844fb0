package table

import (
	"context"
	"io"
	"iter"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Stream is a source of rows, such as a Reader: Read fills batch from its start
// and returns fewer rows than asked only with an error, io.EOF at the end.
type Stream[T any] interface {
	Read(batch []T) (int, error)
}

// All yields the rows of a stream; a pair with an error is the last. It ends with
// the context's error when that ends.
func All[T any](ctx context.Context, s Stream[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		batch := make([]T, readRows)
		for {
			if err := ctx.Err(); err != nil {
				var zero T
				yield(zero, err)
				return
			}
			n, err := s.Read(batch)
			for i := range n {
				if !yield(batch[i], nil) {
					return
				}
			}
			if err != nil {
				if err != io.EOF {
					var zero T
					yield(zero, err)
				}
				return
			}
		}
	}
}

// Concat is the rows of several objects one after another, one open at a time.
func Concat[T any](ctx context.Context, b store.Bucket, keys []string, opts ...ReaderOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, key := range keys {
			if !one(ctx, b, key, opts, yield) {
				return
			}
		}
	}
}

// one yields the rows of one object; false: stop.
func one[T any](ctx context.Context, b store.Bucket, key string, opts []ReaderOption, yield func(T, error) bool) (more bool) {
	var zero T
	r, err := Open[T](ctx, b, key, opts...)
	if err != nil {
		yield(zero, err)
		return false
	}
	defer func() {
		if err := r.Close(); err != nil && more {
			yield(zero, err)
			more = false
		}
	}()
	for row, err := range r.All(ctx) {
		if !yield(row, err) || err != nil {
			return false
		}
	}
	return true
}
