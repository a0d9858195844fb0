package table

import (
	"context"
	"iter"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/extsort"
)

// Key is bytes by which rows are sorted.
type Key = extsort.Key

// Sorter sorts any number of rows in bounded memory by keys that the caller makes of the rows (see extsort). Rows with
// equal keys keep the order in which they were added. The rows are encoded, so the garbage collector need not scan them.
// Only one goroutine may use a Sorter. The caller must close it.
type Sorter[T any] struct {
	*extsort.Sorter
	key    func(k Key, row *T) Key
	layout *rowLayout
	buf    Key
	row    []byte
}

// NewSorter returns a Sorter that holds up to about memory bytes of rows in memory, and writes runs to the directory
// dir. If memory is zero, extsort.DefaultMemory applies. The function key appends the key of a row.
func NewSorter[T any](dir string, key func(k Key, row *T) Key, memory int64) (*Sorter[T], error) {
	codec, err := NewCodec[T]()
	if err != nil {
		return nil, err
	}
	return &Sorter[T]{Sorter: extsort.New(dir, memory), key: key, layout: codec.layout}, nil
}

// Add adds a copy of a row.
func (s *Sorter[T]) Add(row *T) error {
	s.buf, s.row = s.key(s.buf[:0], row), s.layout.encode(s.row[:0], unsafe.Pointer(row))
	return s.Sorter.Add(s.buf, s.row)
}

// Sorted yields all rows in order. An error ends the sequence. The caller may call Sorted again.
func (s *Sorter[T]) Sorted(ctx context.Context) iter.Seq2[T, error] { return MergeSorted(ctx, s) }

// MergeSorted yields the rows of several sorters as one sorted sequence. All sorters must have the same key function.
// Rows with equal keys keep the order of their sorters. An error ends the sequence.
func MergeSorted[T any](ctx context.Context, sorters ...*Sorter[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []*extsort.Sorter
		for _, s := range sorters {
			all = append(all, s.Sorter)
		}
		err := extsort.Merge(ctx, all, func(_, encoded []byte) error {
			var row T
			err := sorters[0].layout.decode(string(encoded), unsafe.Pointer(&row)) // all texts of the row share this one string
			if err == nil && !yield(row, nil) {
				err = extsort.ErrStop
			}
			return err
		})
		if err != nil {
			var zero T
			yield(zero, err)
		}
	}
}
