package table

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/extsort"
	"crawlbatch.io/crawlbatch/formats/extsort/runfiles"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Stream is a source of rows, such as a Reader. Read stores rows in batch and returns their number. If
// the number is less than len(batch), Read returns an error, which is io.EOF at the end.
type Stream[T any] interface {
	Read(batch []T) (int, error)
}

// All yields the rows of a stream. An error ends the sequence, also the error of ctx.
func All[T any](ctx context.Context, s Stream[T]) iter.Seq2[T, error] {
	return rowsOf[T](func(yield func(row unsafe.Pointer) bool) error {
		return eachRow(ctx, newBatches(reflect.TypeFor[T](), readRows, sourceOf[T]{s}), yield)
	})
}

// Concat yields the rows of several objects one after another. Only one object is open at a time.
// An error ends the sequence.
func Concat[T any](ctx context.Context, b store.Bucket, keys []string, opts ...ReaderOption) iter.Seq2[T, error] {
	return rowsOf[T](objectsOf(ctx, b, keys, reflect.TypeFor[T](), opts).concat(ctx))
}

// maxOpen returns the largest number of objects that MergeFiles merges at a time, normally 64. It bounds open objects and
// their buffers.
func maxOpen() int { return runfiles.Max / 2 }

// MergeFiles yields the rows of several objects as one sorted sequence (see Merge). The rows of
// each object must be sorted by their keys. If there are more than 64 objects, MergeFiles first merges as
// many as needed, at most 64 at a time, into scratch files in the directory scratch. It then merges these
// files and the other objects. If scratch is empty, MergeFiles opens all objects at the same time.
func MergeFiles[T any](ctx context.Context, b store.Bucket, scratch string, keys []string, key func(k Key, row *T) Key, opts ...ReaderOption) iter.Seq2[T, error] {
	return rowsOf[T](objectsOf(ctx, b, keys, reflect.TypeFor[T](), opts).merge(ctx, scratch, untyped(key)))
}

// objects are n tables with rows of type t.
type objects struct {
	t    reflect.Type
	n    int
	open func(i int) (*reader, error) // opens table i
}

func objectsOf(ctx context.Context, b store.Bucket, keys []string, t reflect.Type, opts []ReaderOption) objects {
	return objects{t, len(keys), func(i int) (*reader, error) { return openTable(ctx, b, keys[i], t, opts) }}
}

// eachOf calls yield with each row of some tables, until yield returns false.
type eachOf = func(yield func(row unsafe.Pointer) bool) error

// concat returns the rows of one object after another.
func (o objects) concat(ctx context.Context) eachOf {
	return func(yield func(row unsafe.Pointer) bool) error {
		for i := range o.n {
			r, err := o.open(i)
			if err != nil {
				return err
			}
			more := true
			err = eachRow(ctx, newBatches(o.t, readRows, r), func(row unsafe.Pointer) bool { more = yield(row); return more })
			if err = cmp.Or(err, r.Close()); !more || err != nil {
				return err
			}
		}
		return nil
	}
}

// merge returns the rows of all objects in sorted order.
func (o objects) merge(ctx context.Context, scratch string, key keyOf) eachOf {
	return func(yield func(row unsafe.Pointer) bool) error {
		layout, err := layoutOf(o.t)
		if err != nil && scratch != "" {
			return err
		}
		s := extsort.New(scratch, 0)         // holds only runs, and no rows in memory
		defer s.Close()                      //nolint:errcheck // the runs hold only temporary data
		begin, runs, most := 0, 0, maxOpen() // the objects before begin are merged into runs
		for scratch != "" && begin < o.n && o.n-begin+runs > most {
			end := min(o.n, begin+most, o.n+runs-most+1) // one run replaces them
			err := s.AddSorted(func(add func(key, rest []byte) error) error {
				var k Key
				var encoded []byte
				return o.mergeSome(ctx, begin, end, key, nil, func(row unsafe.Pointer) error {
					k, encoded = key(k[:0], row), layout.encode(encoded[:0], row)
					return add(k, encoded)
				})
			})
			if err != nil {
				return err
			}
			begin, runs = end, len(s.Runs())
		}
		var in []keyed
		for _, run := range s.Runs() {
			in = append(in, &keyedRun{run, layout, reflect.New(o.t).Elem()})
		}
		err = o.mergeSome(ctx, begin, o.n, key, in, func(row unsafe.Pointer) error {
			if !yield(row) {
				return extsort.ErrStop
			}
			return nil
		})
		if err == extsort.ErrStop {
			return nil
		}
		return err
	}
}

// mergeSome passes the rows of runs and of objects, up to the one before end, in order, to visit, until it returns an
// error.
func (o objects) mergeSome(ctx context.Context, begin, end int, key keyOf, in []keyed, visit func(row unsafe.Pointer) error) (err error) {
	readers, err := openAll(begin, end, o.open)
	defer func() {
		for _, r := range readers {
			if closed := r.Close(); closed != nil {
				err = errors.Join(err, closed)
			}
		}
	}()
	if err != nil {
		return err
	}
	for _, r := range readers {
		in = append(in, &keyedStream{rows: newBatches(o.t, mergeRows, r), key: key})
	}
	var failed error
	err = eachRow(ctx, newMerger(in), func(row unsafe.Pointer) bool {
		failed = visit(row)
		return failed == nil
	})
	return cmp.Or(err, failed)
}

// openers is the number of objects that openAll opens at a time. On S3, opening one takes two requests.
const openers = 8

// openAll opens the objects from begin to end (exclusive), and stops after an error. It returns the
// readers of the opened objects, and the error of the first object that could not be opened.
func openAll(begin, end int, open func(i int) (*reader, error)) ([]*reader, error) {
	n := end - begin
	readers, failed, panics := make([]*reader, n), make([]error, n), make([]any, n)
	var stop atomic.Bool
	var g errgroup.Group
	g.SetLimit(openers)
	for i := range n {
		if stop.Load() {
			break
		}
		g.Go(func() error {
			defer func() {
				if panics[i] = recover(); panics[i] != nil || failed[i] != nil {
					stop.Store(true)
				}
			}()
			readers[i], failed[i] = open(begin + i)
			return nil
		})
	}
	_ = g.Wait() // failed has the errors
	for _, p := range panics {
		if p != nil {
			panic(p) // the caller recovers only panics of its own goroutine
		}
	}
	return slices.DeleteFunc(readers, func(r *reader) bool { return r == nil }), cmp.Or(failed...)
}

// convertRows is the number of rows that Convert reads at a time.
const convertRows = 32

// Convert returns a stream of the results of convert for each row of the stream in. If convert
// returns false, the new stream omits the row. convert may keep its argument.
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
