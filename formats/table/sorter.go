package table

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/s2"

	"crawlbatch.io/crawlbatch/formats/extsort/runfiles"
)

// DefaultSortMemory is the number of bytes of rows that a Sorter holds in memory before it writes
// them to a file.
const DefaultSortMemory = 64 << 20

// Sorter sorts any number of rows in bounded memory. It writes sorted parts of the rows, called runs,
// to local scratch files and merges the runs. Equal rows keep the order in which they were added.
// Only one goroutine may use a Sorter. The caller must close the Sorter.
type Sorter[T any] struct{ sorter }

// NewSorter returns a sorter that holds up to about memory bytes of rows in memory, and writes runs to
// the directory dir. If memory is zero, DefaultSortMemory applies.
func NewSorter[T any](dir string, compare func(a, b *T) int, memory int64) (*Sorter[T], error) {
	s, err := newSorter(dir, reflect.TypeFor[T](), untyped(compare), memory)
	if err != nil {
		return nil, err
	}
	return &Sorter[T]{*s}, nil
}

// Add adds a copy of a row to the sorter.
func (s *Sorter[T]) Add(row *T) error {
	slot := s.slot()
	*(*T)(slot) = *row
	return s.added(slot)
}

// Sorted yields all rows in order. An error ends the sequence. The caller may call Sorted again.
func (s *Sorter[T]) Sorted(ctx context.Context) iter.Seq2[T, error] { return MergeSorted(ctx, s) }

// MergeSorted yields the rows of several sorters as one sorted sequence. All sorters must have the
// same compare function. Equal rows keep the order of their sorters. An error ends the sequence.
func MergeSorted[T any](ctx context.Context, sorters ...*Sorter[T]) iter.Seq2[T, error] {
	return rowsOf[T](func(yield func(row unsafe.Pointer) bool) error {
		var streams []rowStream
		for _, s := range sorters {
			var err error
			if streams, err = s.addStreams(streams); err != nil {
				return err
			}
		}
		return eachRow(ctx, newMerger(sorters[0].compare, streams), yield)
	})
}

// sorter is a Sorter of rows of any type.
type sorter struct {
	dir     string
	compare func(a, b unsafe.Pointer) int
	memory  int64
	layout  *rowLayout
	rows    chunks
	n       int   // number of rows in memory
	held    int64 // estimated memory of the rows, in bytes
	total   int64 // number of added rows
	runs    runfiles.Files
	order   []int32 // indexes of the rows in memory, in sorted order; nil before Sort
}

func newSorter(dir string, t reflect.Type, compare func(a, b unsafe.Pointer) int, memory int64) (*sorter, error) {
	layout, err := layoutOf(t)
	if err != nil {
		return nil, err
	}
	if memory <= 0 {
		memory = DefaultSortMemory
	}
	return &sorter{dir: dir, compare: compare, memory: memory, layout: layout, rows: chunks{size: uintptr(layout.size)}}, nil
}

// slot returns the place for the next row.
func (s *sorter) slot() unsafe.Pointer {
	if s.n/chunkRows == len(s.rows.first) {
		s.rows.first = append(s.rows.first, newRows(s.layout.row, chunkRows))
	}
	return s.rows.at(int32(s.n))
}

// added counts the row that the caller has stored in the slot.
func (s *sorter) added(row unsafe.Pointer) error {
	s.n++
	s.total++
	// Sorting takes 8 bytes more for each row.
	s.held += int64(s.layout.size + 8 + s.layout.textBytes(row))
	if s.held < s.memory {
		return nil
	}
	return s.spill()
}

// Len returns the number of added rows.
func (s *sorter) Len() int64 { return s.total }

// Sort sorts the rows in memory. After Sort or Sorted, the caller must not call Add. Sorted calls
// Sort if the caller has not. A caller with several sorters can call Sort of each in a goroutine, to
// sort in parallel.
func (s *sorter) Sort() {
	if s.order == nil {
		s.order = s.sorted()
	}
}

// Close removes the runs.
func (s *sorter) Close() error {
	s.rows.first = nil
	return s.runs.Close()
}

// sorted returns the indexes of the rows in memory, in sorted order. Sorting indexes is faster than
// moving wide rows.
func (s *sorter) sorted() []int32 {
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

// spill writes the rows in memory to a run.
func (s *sorter) spill() error {
	if err := s.addRun(context.Background(), &memoryRun{rows: s.rows, order: s.sorted()}); err != nil {
		return err
	}
	for _, first := range s.rows.first {
		reflect.SliceAt(s.layout.row, first, chunkRows).Clear()
	}
	s.n, s.held = 0, 0
	return nil
}

// addRun writes sorted rows to a new run.
func (s *sorter) addRun(ctx context.Context, rows rowStream) error {
	if err := s.runs.Compact(s.compact); err != nil {
		return err
	}
	f, err := s.write(ctx, rows)
	if err == nil {
		s.runs.Add(f)
	}
	return err
}

// compact merges some runs into one.
func (s *sorter) compact(runs []*os.File) (*os.File, error) {
	streams, err := s.openRuns(runs, nil)
	if err != nil {
		return nil, err
	}
	return s.write(context.Background(), newMerger(s.compare, streams))
}

// write writes rows to a new run. A run has the format of RowWriter, compressed with S2.
func (s *sorter) write(ctx context.Context, rows rowStream) (_ *os.File, err error) {
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
	w := s.layout.writer(z)
	var failed error
	err = eachRow(ctx, rows, func(row unsafe.Pointer) bool {
		_, failed = w.write(row)
		return failed == nil
	})
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("write scratch file: %w", err)
	}
	return f, nil
}

func (s *sorter) open(f *os.File) (rowStream, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open scratch file: %w", err)
	}
	z := s2.NewReader(io.NewSectionReader(f, 0, info.Size()), s2.ReaderMaxBlockSize(256<<10))
	return &rowReader{layout: s.layout, in: bufio.NewReaderSize(z, 32<<10)}, nil
}

// openRuns opens some runs and appends them to streams.
func (s *sorter) openRuns(runs []*os.File, streams []rowStream) ([]rowStream, error) {
	for _, f := range runs {
		r, err := s.open(f)
		if err != nil {
			return nil, err
		}
		streams = append(streams, r)
	}
	return streams, nil
}

// addStreams appends all runs, and the rows in memory, to streams.
func (s *sorter) addStreams(streams []rowStream) ([]rowStream, error) {
	streams, err := s.openRuns(s.runs.All, streams)
	if err != nil {
		return nil, err
	}
	s.Sort()
	return append(streams, &memoryRun{rows: s.rows, order: s.order}), nil
}

// chunks holds rows in arrays of chunkRows rows. Adding a row thus copies no other rows and leaves no
// garbage.
type chunks struct {
	first []unsafe.Pointer // address of the first row of each array
	size  uintptr          // size of a row, in bytes
}

const chunkRows = 256

func (c *chunks) at(i int32) unsafe.Pointer {
	return unsafe.Add(c.first[i/chunkRows], uintptr(i%chunkRows)*c.size)
}

// memoryRun is a sorted run in memory.
type memoryRun struct {
	rows  chunks
	order []int32
}

// nextRow implements rowStream.
func (m *memoryRun) nextRow() (unsafe.Pointer, error) {
	if len(m.order) == 0 {
		return nil, io.EOF
	}
	row := m.rows.at(m.order[0])
	m.order = m.order[1:]
	return row, nil
}
