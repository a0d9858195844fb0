package table

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"slices"

	"github.com/klauspost/compress/s2"
)

const (
	// DefaultSortMemory is what a Sorter holds before it spills, bytes.
	DefaultSortMemory = 64 << 20
	maxRuns           = 128 // merged at a time: bounds open files and buffers
)

// Sorter sorts any number of rows in bounded memory: what exceeds it is spilled
// as sorted runs to local scratch files and merged. Rows that compare equal keep
// the order in which they were added. It is for one goroutine. Close it.
type Sorter[T any] struct {
	dir     string
	compare func(a, b *T) int
	memory  int64
	codec   *Codec[T]
	rows    []T
	held    int64 // estimated bytes of rows
	total   int64
	runs    []*os.File
}

// NewSorter makes a sorter that spills to dir once its rows take about memory
// bytes; zero means DefaultSortMemory.
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

// Add adds a row, which it copies.
func (s *Sorter[T]) Add(row *T) error {
	s.rows = append(s.rows, *row)
	s.total++
	// The 4 bytes are the row's place in the sort index.
	s.held += int64(s.codec.layout.size + 4 + s.codec.layout.textBytes(reflect.ValueOf(row).Elem()))
	if s.held < s.memory {
		return nil
	}
	return s.spill()
}

// Len is the number of rows added.
func (s *Sorter[T]) Len() int64 { return s.total }

// Sorted yields all rows in order; a pair with an error is the last. No row can
// be added after it was called; it may be called again.
func (s *Sorter[T]) Sorted(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		streams, err := s.openRuns()
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		Merge(ctx, s.compare, append(streams, s.inMemory())...)(yield)
	}
}

// Close removes the spilled runs.
func (s *Sorter[T]) Close() error {
	s.rows = nil
	return s.removeRuns()
}

// inMemory is the stream of the rows in memory, sorted. Rows are wide, so an index is
// sorted instead of them.
func (s *Sorter[T]) inMemory() Stream[T] {
	order := make([]int32, len(s.rows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := s.compare(&s.rows[a], &s.rows[b]); c != 0 {
			return c
		}
		return int(a - b)
	})
	return &memoryRun[T]{rows: s.rows, order: order}
}

// spill writes the rows in memory as a run.
func (s *Sorter[T]) spill() error {
	if len(s.runs) == maxRuns {
		if err := s.compact(); err != nil {
			return err
		}
	}
	f, err := s.write(All(context.Background(), s.inMemory()))
	if err != nil {
		return err
	}
	s.runs = append(s.runs, f)
	clear(s.rows)
	s.rows, s.held = s.rows[:0], 0
	return nil
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

// write makes a run: rows as a RowWriter writes them, S2-compressed.
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

// openRuns opens all runs.
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

// memoryRun is a sorted run in memory.
type memoryRun[T any] struct {
	rows  []T
	order []int32
}

// Read implements Stream.
func (m *memoryRun[T]) Read(batch []T) (int, error) {
	n := min(len(batch), len(m.order))
	for i := range n {
		batch[i] = m.rows[m.order[i]]
	}
	m.order = m.order[n:]
	if n < len(batch) {
		return n, io.EOF
	}
	return n, nil
}
