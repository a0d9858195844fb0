package table

import (
	"context"
	"io"
	"iter"
	"reflect"
	"unsafe"
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

// untyped converts a compare function to one that takes the addresses of rows. This is possible
// because all pointers are passed in the same way.
func untyped[T any](compare func(a, b *T) int) func(a, b unsafe.Pointer) int {
	return *(*func(a, b unsafe.Pointer) int)(unsafe.Pointer(&compare))
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
func rowsOf[T any](each func(yield func(row unsafe.Pointer) bool) error) iter.Seq2[T, error] {
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

// Merge yields the rows of several streams as one sorted sequence. Each stream must be sorted by
// compare. Equal rows keep the order of their streams. Merge holds a batch of rows per stream and
// does not close the streams. An error ends the sequence.
func Merge[T any](ctx context.Context, compare func(a, b *T) int, streams ...Stream[T]) iter.Seq2[T, error] {
	return rowsOf[T](func(yield func(row unsafe.Pointer) bool) error {
		in := make([]rowStream, len(streams))
		for i, s := range streams {
			in[i] = newBatches(reflect.TypeFor[T](), mergeRows, sourceOf[T]{s})
		}
		return eachRow(ctx, newMerger(untyped(compare), in), yield)
	})
}

// merger is a rowStream that merges several sorted streams. It is a binary heap of inputs: the input
// with the lowest row is on top. A loser tree would save one comparison per level, but comparisons
// take much less time than decoding the rows.
type merger struct {
	compare func(a, b unsafe.Pointer) int
	heap    []mergeInput
	streams []rowStream // streams that are not read yet
	taken   bool        // nextRow has already returned the row of heap[0]
}

// mergeInput is a stream with its lowest remaining row.
type mergeInput struct {
	stream rowStream
	row    unsafe.Pointer
	order  int // index of the stream; of equal rows, the one with the lower index comes first
}

func newMerger(compare func(a, b unsafe.Pointer) int, streams []rowStream) *merger {
	return &merger{compare: compare, streams: streams}
}

// start reads the first row of each stream.
func (m *merger) start() error {
	for i, s := range m.streams {
		row, err := s.nextRow()
		if err == io.EOF {
			continue
		}
		if err != nil {
			return err
		}
		m.heap = append(m.heap, mergeInput{s, row, i})
	}
	m.streams = nil
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return nil
}

// nextRow implements rowStream.
func (m *merger) nextRow() (unsafe.Pointer, error) {
	if m.streams != nil {
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	if m.taken {
		row, err := m.heap[0].stream.nextRow()
		if err != nil && err != io.EOF {
			return nil, err
		}
		if m.heap[0].row = row; err == io.EOF {
			last := len(m.heap) - 1
			m.heap[0], m.heap[last] = m.heap[last], mergeInput{}
			m.heap = m.heap[:last]
		}
		m.down(0)
	}
	if m.taken = len(m.heap) > 0; !m.taken {
		return nil, io.EOF
	}
	return m.heap[0].row, nil
}

func (m *merger) less(a, b *mergeInput) bool {
	if c := m.compare(a.row, b.row); c != 0 {
		return c < 0
	}
	return a.order < b.order
}

func (m *merger) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heap); child++ {
			if m.less(&m.heap[child], &m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}
