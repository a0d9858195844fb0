package table

import (
	"context"
	"io"
	"iter"
	"reflect"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/extsort"
)

// Rows of all types share the code that reads, sorts, merges and writes them. This code gets a row as
// an address, and its type as a reflect.Type or a rowLayout. Generic code would be in the binary once
// for each of some eighty row types, so the generic functions only convert pointers.

// rowStream is a stream of rows of one type. nextRow returns the address of the next row, which is
// valid until the next call. It returns io.EOF at the end.
type rowStream interface {
	nextRow() (unsafe.Pointer, error)
}

// rowSource is a Stream of rows of any type. readRows stores up to n rows, as Stream.Read does. first
// is the address of the first.
type rowSource interface {
	readRows(first unsafe.Pointer, n int) (int, error)
}

// sourceOf is the rowSource of a Stream.
type sourceOf[T any] struct{ stream Stream[T] }

func (s sourceOf[T]) readRows(first unsafe.Pointer, n int) (int, error) {
	return s.stream.Read(unsafe.Slice((*T)(first), n))
}

// newRows returns the address of n new zero rows of type t.
func newRows(t reflect.Type, n int) unsafe.Pointer {
	return reflect.MakeSlice(reflect.SliceOf(t), n, n).UnsafePointer()
}

// batches is a rowStream that reads batches of rows from a rowSource.
type batches struct {
	source rowSource
	batch  unsafe.Pointer
	size   uintptr // size of a row, in bytes
	most   int     // number of rows of a full batch
	at, n  int     // number of the next row in the batch, and of the rows in the batch
	err    error
}

func newBatches(t reflect.Type, rows int, source rowSource) *batches {
	return &batches{source: source, batch: newRows(t, rows), size: t.Size(), most: rows}
}

// nextRow implements rowStream.
func (b *batches) nextRow() (unsafe.Pointer, error) {
	for b.at == b.n {
		if b.err != nil {
			return nil, b.err
		}
		b.at = 0
		b.n, b.err = b.source.readRows(b.batch, b.most)
	}
	row := unsafe.Add(b.batch, uintptr(b.at)*b.size)
	b.at++
	return row, nil
}

// eachRow calls yield with each row of a stream, until yield returns false.
func eachRow(ctx context.Context, s rowStream, yield func(row unsafe.Pointer) bool) error {
	for n := 0; ; n++ {
		if n%readRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := s.nextRow()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !yield(row) {
			return nil
		}
	}
}

// rowsOf returns the sequence of the rows that each passes to its argument. If each returns an error,
// the error ends the sequence.
func rowsOf[T any](each eachOf) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := false
		err := each(func(row unsafe.Pointer) bool {
			stopped = !yield(*(*T)(row), nil)
			return !stopped
		})
		if err != nil && !stopped {
			var zero T
			yield(zero, err)
		}
	}
}

// mergeRows is the number of rows of each stream that Merge holds.
const mergeRows = 32

// Merge yields the rows of several streams as one sorted sequence. Each stream must be sorted by the keys that key
// appends. Rows with equal keys keep the order of their streams. Merge holds a batch of rows per stream and
// does not close the streams. An error ends the sequence.
func Merge[T any](ctx context.Context, key func(k Key, row *T) Key, streams ...Stream[T]) iter.Seq2[T, error] {
	return rowsOf[T](func(yield func(row unsafe.Pointer) bool) error {
		in := make([]keyed, len(streams))
		for i, s := range streams {
			in[i] = &keyedStream{rows: newBatches(reflect.TypeFor[T](), mergeRows, sourceOf[T]{s}), key: untyped(key)}
		}
		return eachRow(ctx, newMerger(in), yield)
	})
}

// keyOf appends the key of the row at an address.
type keyOf = func(k Key, row unsafe.Pointer) Key

// untyped converts a key function to one that takes the address of a row. This is possible because all pointers are
// passed in the same way.
func untyped[T any](key func(k Key, row *T) Key) keyOf {
	return *(*keyOf)(unsafe.Pointer(&key))
}

// keyed is an input of a merger with the address of its current row.
type keyed interface {
	extsort.Input
	current() unsafe.Pointer
}

// merger is a rowStream that merges inputs.
type merger struct {
	*extsort.Merger
	inputs []keyed
}

func newMerger(inputs []keyed) *merger {
	in := make([]extsort.Input, len(inputs))
	for i := range inputs {
		in[i] = inputs[i]
	}
	return &merger{extsort.NewMerger(in), inputs}
}

// nextRow implements rowStream.
func (m *merger) nextRow() (unsafe.Pointer, error) {
	i, err := m.Next()
	if err != nil {
		return nil, err
	}
	return m.inputs[i].current(), nil
}

// keyedStream makes the keys of the rows of a stream.
type keyedStream struct {
	rows rowStream
	key  keyOf
	buf  Key
	row  unsafe.Pointer
}

// Next implements extsort.Input.
func (s *keyedStream) Next() (key []byte, err error) {
	if s.row, err = s.rows.nextRow(); err != nil {
		return nil, err
	}
	s.buf = s.key(s.buf[:0], s.row)
	return s.buf, nil
}

func (s *keyedStream) current() unsafe.Pointer { return s.row }

// keyedRun decodes the rows of a run.
type keyedRun struct {
	*extsort.Run
	layout *rowLayout
	row    reflect.Value
}

// Next implements extsort.Input.
func (r *keyedRun) Next() (key []byte, err error) {
	if key, err = r.Run.Next(); err != nil {
		return nil, err
	}
	r.row.SetZero()
	return key, r.layout.decode(string(r.Rest), r.current())
}

func (r *keyedRun) current() unsafe.Pointer { return r.row.Addr().UnsafePointer() }
