package table

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Stream is a source of rows, such as a Reader. Read fills batch from its start. Read returns fewer
// rows than len(batch) only with an error, which is io.EOF at the end.
type Stream[T any] interface {
	Read(batch []T) (int, error)
}

// All yields the rows of a stream. An error ends the sequence. If ctx ends, the last pair holds the
// error of ctx.
func All[T any](ctx context.Context, s Stream[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		batch := make([]T, readRows)
		for {
			if err := ctx.Err(); err != nil {
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
					yield(zero, err)
				}
				return
			}
		}
	}
}

// Concat yields the rows of several objects one after another. Only one object is open at a time.
// An error ends the sequence.
func Concat[T any](ctx context.Context, b store.Bucket, keys []string, opts ...ReaderOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, key := range keys {
			if !streamObject(ctx, b, key, opts, yield) {
				return
			}
		}
	}
}

// streamObject yields the rows of a single object. It also reports whether the caller may continue
// with the next object.
func streamObject[T any](ctx context.Context, b store.Bucket, key string, opts []ReaderOption, yield func(T, error) bool) (more bool) {
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

// maxOpen is the number of objects that MergeFiles merges at a time, which bounds open objects and
// their buffers.
const maxOpen = 64

// MergeFiles yields the rows of several objects as one sorted sequence (see Merge). The rows of
// each object must be sorted by compare. MergeFiles merges more than 64 objects in passes: it
// writes all rows to runs in the directory scratch before it yields the first row. If scratch is
// empty, MergeFiles opens all objects at the same time.
func MergeFiles[T any](ctx context.Context, b store.Bucket, scratch string, keys []string, compare func(a, b *T) int, opts ...ReaderOption) iter.Seq2[T, error] {
	return mergeInPasses(ctx, scratch, keys, compare, func(key string) (*Reader[T], error) { return Open[T](ctx, b, key, opts...) })
}

// mergeInPasses merges inputs as MergeFiles does.
func mergeInPasses[I, T any](ctx context.Context, scratch string, inputs []I, compare func(a, b *T) int, open func(I) (*Reader[T], error)) iter.Seq2[T, error] {
	if len(inputs) <= maxOpen || scratch == "" {
		return mergeOpen(ctx, inputs, compare, open)
	}
	return func(yield func(T, error) bool) {
		fail := func(err error) {
			var zero T
			yield(zero, err)
		}
		s, err := NewSorter(scratch, compare, 0) // holds only runs, and no rows in memory
		if err != nil {
			fail(err)
			return
		}
		defer s.Close() //nolint:errcheck // the runs hold only temporary data
		for some := range slices.Chunk(inputs, maxOpen) {
			if err := s.addRun(mergeOpen(ctx, some, compare, open)); err != nil {
				fail(err)
				return
			}
		}
		s.Sorted(ctx)(yield)
	}
}

// mergeOpen is like mergeInPasses, with all inputs open at the same time.
func mergeOpen[I, T any](ctx context.Context, inputs []I, compare func(a, b *T) int, open func(I) (*Reader[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := false
		merge := func() (err error) {
			readers, err := openAll(inputs, open)
			defer func() {
				for _, r := range readers {
					err = errors.Join(err, r.Close())
				}
			}()
			if err != nil {
				return err
			}
			streams := make([]Stream[T], len(readers))
			for i, r := range readers {
				streams[i] = r
			}
			for row, err := range Merge(ctx, compare, streams...) {
				if err != nil {
					return err
				}
				if stopped = !yield(row, nil); stopped {
					break
				}
			}
			return nil
		}
		if err := merge(); err != nil && !stopped {
			var zero T
			yield(zero, err)
		}
	}
}

// openers is the number of inputs that openAll opens at a time. On S3, opening takes two requests.
const openers = 8

// openAll opens all inputs, and stops after an error. It returns the readers that were opened, and
// the error of the first input that could not be opened.
func openAll[I, T any](inputs []I, open func(I) (*Reader[T], error)) ([]*Reader[T], error) {
	readers, failed, panics := make([]*Reader[T], len(inputs)), make([]error, len(inputs)), make([]any, len(inputs))
	var stop atomic.Bool
	var g errgroup.Group
	g.SetLimit(openers)
	for i, input := range inputs {
		if stop.Load() {
			break
		}
		g.Go(func() error {
			opened := false
			defer func() {
				if panics[i] = recover(); !opened {
					stop.Store(true)
				}
			}()
			readers[i], failed[i] = open(input)
			opened = failed[i] == nil
			return nil
		})
	}
	_ = g.Wait() // failed has the errors
	for _, p := range panics {
		if p != nil {
			panic(p) // the caller recovers only panics of its own goroutine
		}
	}
	return slices.DeleteFunc(readers, func(r *Reader[T]) bool { return r == nil }), cmp.Or(failed...)
}

// convertRows is the number of rows that Convert reads at a time.
const convertRows = 32

// Convert calls convert with each row of a stream, and returns a stream of the results. If convert
// returns false, the new stream omits the row. The pointer that convert receives stays valid after
// the call.
func Convert[T, U any](in Stream[T], convert func(*T) (U, bool)) Stream[U] {
	return &converted[T, U]{in: in, convert: convert}
}

type converted[T, U any] struct {
	in      Stream[T]
	convert func(*T) (U, bool)
	rows    []T // rows that are read but not yet converted
	err     error
}

// Read implements Stream.
func (c *converted[T, U]) Read(batch []U) (int, error) {
	n := 0
	for n < len(batch) {
		if len(c.rows) == 0 {
			if c.err != nil {
				return n, c.err
			}
			c.rows = make([]T, convertRows) // the batch is new, because converted rows may point into the old batch
			var m int
			m, c.err = c.in.Read(c.rows)
			c.rows = c.rows[:m]
			continue
		}
		if u, ok := c.convert(&c.rows[0]); ok {
			batch[n] = u
			n++
		}
		c.rows = c.rows[1:]
	}
	return n, nil
}
