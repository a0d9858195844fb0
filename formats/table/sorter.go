package table

import (
	"bufio"
	"context"
	"encoding/binary"
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
	maxRuns           = 128     // merged at a time: bounds open files and buffers
	maxSpillRow       = 1 << 30 // a longer row in a spill file is damage
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
		streams, err := s.streams()
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		for row, err := range Merge(ctx, s.compare, streams...) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// Close removes the spilled runs.
func (s *Sorter[T]) Close() error {
	var err error
	for _, f := range s.runs {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	s.runs, s.rows = nil, nil
	return err
}

// streams are the runs and what is in memory, in the order in which rows came.
func (s *Sorter[T]) streams() ([]Stream[T], error) {
	out := make([]Stream[T], 0, len(s.runs)+1)
	for _, f := range s.runs {
		r, err := s.open(f)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return append(out, &memoryRun[T]{rows: s.rows, order: s.sorted()}), nil
}

// sorted is the order of the rows in memory. Rows are wide: an index is sorted
// instead of them.
func (s *Sorter[T]) sorted() []int32 {
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
	return order
}

// spill writes the rows in memory as a run.
func (s *Sorter[T]) spill() error {
	if len(s.runs) == maxRuns {
		if err := s.compact(); err != nil {
			return err
		}
	}
	mem := &memoryRun[T]{rows: s.rows, order: s.sorted()}
	f, err := s.write(All(context.Background(), mem))
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
	var streams []Stream[T]
	for _, f := range s.runs {
		r, err := s.open(f)
		if err != nil {
			return err
		}
		streams = append(streams, r)
	}
	merged, err := s.write(Merge(context.Background(), s.compare, streams...))
	if err != nil {
		return err
	}
	for _, f := range s.runs {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	s.runs = []*os.File{merged}
	return err
}

// write makes a run: each row's length, then the row, S2-compressed.
func (s *Sorter[T]) write(rows iter.Seq2[T, error]) (_ *os.File, err error) {
	f, err := os.CreateTemp(s.dir, "run-*.s2")
	if err != nil {
		return nil, fmt.Errorf("create spill file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write spill file: %w", err), f.Close(), os.Remove(f.Name()))
		}
	}()
	z := s2.NewWriter(f, s2.WriterConcurrency(1), s2.WriterBlockSize(256<<10))
	var buf, head []byte
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		buf = s.codec.Append(buf[:0], &row)
		head = binary.AppendUvarint(head[:0], uint64(len(buf)))
		if _, err := z.Write(head); err != nil {
			return nil, err
		}
		if _, err := z.Write(buf); err != nil {
			return nil, err
		}
	}
	return f, z.Close()
}

func (s *Sorter[T]) open(f *os.File) (Stream[T], error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open spill file: %w", err)
	}
	z := s2.NewReader(io.NewSectionReader(f, 0, info.Size()), s2.ReaderMaxBlockSize(256<<10))
	return &spilledRun[T]{in: bufio.NewReaderSize(z, 32<<10), codec: s.codec}, nil
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

// spilledRun is a sorted run in a file.
type spilledRun[T any] struct {
	in    *bufio.Reader
	codec *Codec[T]
	buf   []byte
}

// Read implements Stream.
func (r *spilledRun[T]) Read(batch []T) (int, error) {
	for i := range batch {
		n, err := binary.ReadUvarint(r.in)
		if err == io.EOF {
			return i, io.EOF
		}
		if err == nil && n > maxSpillRow {
			err = ErrScratch
		}
		if err == nil {
			r.buf = slices.Grow(r.buf[:0], int(n))[:n]
			_, err = io.ReadFull(r.in, r.buf)
		}
		if err == nil {
			err = r.codec.Decode(string(r.buf), &batch[i]) // one string holds all text of the row
		}
		if err != nil {
			return i, fmt.Errorf("read spill file: %w", err)
		}
	}
	return len(batch), nil
}
