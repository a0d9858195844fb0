package table

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/s2"
)

const (
	// DefaultSortMemory is the number of bytes of rows that a Sorter holds before it spills them to
	// a file.
	DefaultSortMemory = 64 << 20
	maxRuns           = 128 // number of runs merged at a time, which bounds open files and buffers
)

// Sorter sorts any number of rows in bounded memory. It spills sorted runs to local scratch files
// and merges the runs. Equal rows keep the order in which they were added. Only one goroutine may
// use a Sorter. The caller must close the Sorter.
type Sorter[T any] struct {
	dir     string
	compare func(a, b *T) int
	memory  int64
	codec   *Codec[T]
	rows    chunks[T]
	n       int   // number of rows in memory
	held    int64 // estimated memory of the rows, in bytes
	total   int64
	runs    []*os.File
	order   []int32 // indexes of the rows in sorted order, after Sort
}

// NewSorter returns a sorter that spills rows to the directory dir when its rows take about memory
// bytes. If memory is zero, DefaultSortMemory applies.
func NewSorter[T any](dir string, compare func(a, b *T) int, memory int64) (*Sorter[T], error) {
	codec, err := NewCodec[T]()
	if err != nil {
		return nil, err
	}
	if memory <= 0 {
		memory = DefaultSortMemory
	}
	return &Sorter[T]{dir: dir, compare: compare, memory: memory, codec: codec}, nil
}

// Add adds a copy of a row to the sorter.
func (s *Sorter[T]) Add(row *T) error {
	chunk := s.n / chunkRows
	if chunk == len(s.rows) {
		s.rows = append(s.rows, make([]T, 0, chunkRows))
	}
	s.rows[chunk] = append(s.rows[chunk], *row)
	s.n++
	s.total++
	// Sorting takes 8 bytes more for each row.
	s.held += int64(s.codec.layout.size + 8 + s.codec.layout.textBytes(unsafe.Pointer(row)))
	if s.held < s.memory {
		return nil
	}
	return s.spill()
}

// Len returns the number of added rows.
func (s *Sorter[T]) Len() int64 { return s.total }

// Sort sorts the rows in memory. After Sort or Sorted, the caller must not call Add. Sorted calls
// Sort if nobody has called it yet. Several goroutines can sort in parallel if each calls Sort on a
// sorter of its own.
func (s *Sorter[T]) Sort() {
	if s.order == nil {
		s.order = s.sorted()
	}
}

// Sorted yields all rows in order. An error ends the sequence. The caller may call Sorted again.
func (s *Sorter[T]) Sorted(ctx context.Context) iter.Seq2[T, error] { return MergeSorted(ctx, s) }

// MergeSorted yields the rows of several sorters as one sorted sequence. All sorters must have the
// same compare function. Equal rows keep the order of their sorters. An error ends the sequence.
func MergeSorted[T any](ctx context.Context, sorters ...*Sorter[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var streams []Stream[T]
		for _, s := range sorters {
			runs, err := s.openRuns()
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			s.Sort()
			streams = append(append(streams, runs...), &memoryRun[T]{rows: s.rows, order: s.order})
		}
		Merge(ctx, sorters[0].compare, streams...)(yield)
	}
}

// Close removes the spilled runs.
func (s *Sorter[T]) Close() error {
	s.rows = nil
	return s.removeRuns()
}

// sorted returns the order of the rows in memory, as a list of their indexes. Sorting indexes is
// faster than moving the wide rows.
func (s *Sorter[T]) sorted() []int32 {
	compare := func(a, b int32) int {
		if c := s.compare(s.rows.at(a), s.rows.at(b)); c != 0 {
			return c
		}
		return int(a - b)
	}
	order := make([]int32, s.n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, compare)
	return order
}

// spill writes the rows in memory to a scratch file as a run.
func (s *Sorter[T]) spill() error {
	if err := s.addRun(All(context.Background(), &memoryRun[T]{rows: s.rows, order: s.sorted()})); err != nil {
		return err
	}
	for i, chunk := range s.rows {
		clear(chunk)
		s.rows[i] = chunk[:0]
	}
	s.n, s.held = 0, 0
	return nil
}

// addRun writes rows, which are in order, to a new run.
func (s *Sorter[T]) addRun(rows iter.Seq2[T, error]) error {
	if len(s.runs) == maxRuns {
		if err := s.compact(); err != nil {
			return err
		}
	}
	f, err := s.write(rows)
	if err == nil {
		s.runs = append(s.runs, f)
	}
	return err
}

// compact merges all runs into one.
func (s *Sorter[T]) compact() error {
	streams, err := s.openRuns()
	if err != nil {
		return err
	}
	merged, err := s.write(Merge(context.Background(), s.compare, streams...))
	if err != nil {
		return err
	}
	err = s.removeRuns()
	s.runs = []*os.File{merged}
	return err
}

// write writes rows to a new run. A run has the format of RowWriter, compressed with S2.
func (s *Sorter[T]) write(rows iter.Seq2[T, error]) (_ *os.File, err error) {
	f, err := os.CreateTemp(s.dir, "run-*.s2")
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	z := s2.NewWriter(f, s2.WriterConcurrency(1), s2.WriterBlockSize(256<<10))
	w := s.codec.Writer(z)
	for row, err := range rows {
		if err == nil {
			_, err = w.Write(&row)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("write scratch file: %w", err)
	}
	return f, nil
}

func (s *Sorter[T]) open(f *os.File) (Stream[T], error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open scratch file: %w", err)
	}
	z := s2.NewReader(io.NewSectionReader(f, 0, info.Size()), s2.ReaderMaxBlockSize(256<<10))
	return s.codec.Reader(bufio.NewReaderSize(z, 32<<10)), nil
}

// openRuns opens all runs as streams.
func (s *Sorter[T]) openRuns() ([]Stream[T], error) {
	streams := make([]Stream[T], 0, len(s.runs)+1)
	for _, f := range s.runs {
		r, err := s.open(f)
		if err != nil {
			return nil, err
		}
		streams = append(streams, r)
	}
	return streams, nil
}

// removeRuns closes and removes all runs.
func (s *Sorter[T]) removeRuns() error {
	var err error
	for _, f := range s.runs {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	s.runs = nil
	return err
}

// chunks holds rows in slices of fixed size, so that growing neither copies rows nor leaves
// garbage.
type chunks[T any] [][]T

const chunkRows = 256

func (c chunks[T]) at(i int32) *T { return &c[i/chunkRows][i%chunkRows] }

// memoryRun is a sorted run in memory.
type memoryRun[T any] struct {
	rows  chunks[T]
	order []int32
}

// Read implements Stream.
func (m *memoryRun[T]) Read(batch []T) (int, error) {
	n := min(len(batch), len(m.order))
	for i := range n {
		batch[i] = *m.rows.at(m.order[i])
	}
	m.order = m.order[n:]
	if n < len(batch) {
		return n, io.EOF
	}
	return n, nil
}
