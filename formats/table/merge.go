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

// merger is a rowStream that merges several sorted streams with a tree of losers (Knuth, The Art of Computer
// Programming, volume 3, 5.4.1). Input i is leaf len(inputs) + i of a binary tree whose root is node 1 and in which the
// children of node n are 2n and 2n+1. At each inner node, the least inputs of its two children have met, and losers
// holds the one that was greater. So a row costs one comparison for each level of the tree. A heap needs two.
type merger struct {
	compare func(a, b unsafe.Pointer) int
	inputs  []mergeInput // of equal rows, the one of the first input comes first
	losers  []int        // for each inner node, the number of an input; nil before the first row was read
	least   int          // input with the least row
	taken   bool         // nextRow has already returned this row
}

// mergeInput is a stream with its lowest remaining row, which is nil at its end.
type mergeInput struct {
	stream rowStream
	row    unsafe.Pointer
}

func newMerger(compare func(a, b unsafe.Pointer) int, streams []rowStream) *merger {
	m := &merger{compare: compare, inputs: make([]mergeInput, len(streams))}
	for i, s := range streams {
		m.inputs[i].stream = s
	}
	return m
}

// next moves an input to its next row.
func (i *mergeInput) next() (err error) {
	if i.row, err = i.stream.nextRow(); err == io.EOF {
		*i, err = mergeInput{}, nil
	}
	return err
}

// start reads the first row of each stream.
func (m *merger) start() error {
	n := len(m.inputs)
	winners := make([]int, 2*n)
	for i := range m.inputs {
		if err := m.inputs[i].next(); err != nil {
			return err
		}
		winners[n+i] = i
	}
	m.losers = make([]int, n)
	for node := n - 1; node > 0; node-- {
		a, b := winners[2*node], winners[2*node+1]
		if m.less(b, a) {
			a, b = b, a
		}
		winners[node], m.losers[node] = a, b
	}
	m.least = winners[1]
	return nil
}

// nextRow implements rowStream.
func (m *merger) nextRow() (unsafe.Pointer, error) {
	switch {
	case len(m.inputs) == 0:
		return nil, io.EOF
	case m.losers == nil:
		if err := m.start(); err != nil {
			return nil, err
		}
	case m.taken:
		if err := m.inputs[m.least].next(); err != nil {
			return nil, err
		}
		for node := (len(m.inputs) + m.least) / 2; node > 0; node /= 2 {
			if m.less(m.losers[node], m.least) {
				m.losers[node], m.least = m.least, m.losers[node]
			}
		}
	}
	row := m.inputs[m.least].row
	if m.taken = row != nil; !m.taken {
		return nil, io.EOF
	}
	return row, nil
}

// less reports whether the row of input a comes before that of input b. Ended inputs come last.
func (m *merger) less(a, b int) bool {
	p, q := m.inputs[a].row, m.inputs[b].row
	if p == nil || q == nil {
		return q == nil && p != nil
	}
	c := m.compare(p, q)
	return c < 0 || c == 0 && a < b
}
