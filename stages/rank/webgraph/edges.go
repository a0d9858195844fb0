package webgraph

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// batchEdges is the number of edges after which a record batch ends. A batch holds all edges of its
// last target, so it may have more edges than that.
const batchEdges = 1 << 16

// edgeSchema is the schema of a file of edges. It has a row for each target, with the numbers of the
// sources that link to the target, in ascending order.
var edgeSchema = arrow.NewSchema([]arrow.Field{
	{Name: "target", Type: arrow.PrimitiveTypes.Int32},
	{Name: "sources", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
}, nil)

// edgeWriter writes a file of edges as an Arrow IPC stream.
type edgeWriter struct {
	file    *os.File
	buf     *bufio.Writer
	ipc     *ipc.Writer
	batch   *array.RecordBuilder
	targets *array.Int32Builder
	lists   *array.ListBuilder
	sources *array.Int32Builder // elements of the lists
}

func newEdgeWriter(path string) (*edgeWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	w := &edgeWriter{file: f, buf: bufio.NewWriterSize(f, 256<<10), batch: array.NewRecordBuilder(memory.DefaultAllocator, edgeSchema)}
	w.ipc = ipc.NewWriter(w.buf, ipc.WithSchema(edgeSchema))
	w.targets, w.lists = w.batch.Field(0).(*array.Int32Builder), w.batch.Field(1).(*array.ListBuilder)
	w.sources = w.lists.ValueBuilder().(*array.Int32Builder)
	return w, nil
}

// add appends a row. The writer copies the sources.
func (w *edgeWriter) add(target int32, sources []int32) error {
	w.targets.Append(target)
	w.lists.Append(true)
	w.sources.AppendValues(sources, nil)
	if w.sources.Len() < batchEdges {
		return nil
	}
	return w.flush()
}

// flush writes the pending rows as a record batch.
func (w *edgeWriter) flush() error {
	if w.targets.Len() == 0 {
		return nil
	}
	if err := w.ipc.Write(w.batch.NewRecordBatch()); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	return nil
}

// close ends the file.
func (w *edgeWriter) close() error {
	err := w.flush()
	if err == nil {
		err = w.ipc.Close()
	}
	if err == nil {
		err = w.buf.Flush()
	}
	return errors.Join(err, w.file.Close())
}

// edgeBatch holds the rows of a record batch.
type edgeBatch struct{ targets, offsets, sources []int32 }

// sourcesOf returns the sources of row i.
func (b *edgeBatch) sourcesOf(i int) []int32 { return b.sources[b.offsets[i]:b.offsets[i+1]] }

// readEdges yields the batches of a file of edges. A batch is valid until the next iteration.
func readEdges(ctx context.Context, path string) iter.Seq2[edgeBatch, error] {
	return func(yield func(edgeBatch, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(edgeBatch{}, fmt.Errorf("open scratch file: %w", err))
			return
		}
		defer f.Close()
		r, err := ipc.NewReader(bufio.NewReaderSize(f, 256<<10), ipc.WithAllocator(&recycler{}))
		if err != nil {
			yield(edgeBatch{}, fmt.Errorf("read scratch file: %w", err))
			return
		}
		defer r.Release()
		for {
			record, err := r.Read()
			if err == nil {
				err = ctx.Err()
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(edgeBatch{}, fmt.Errorf("read scratch file: %w", err))
				return
			}
			list := record.Column(1).(*array.List)
			b := edgeBatch{record.Column(0).(*array.Int32).Int32Values(), list.Offsets(), list.ListValues().(*array.Int32).Int32Values()}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// recycler is an allocator that keeps one released block of memory, because batches have nearly
// equal sizes.
type recycler struct{ free []byte }

// Allocate implements memory.Allocator.
func (r *recycler) Allocate(size int) []byte {
	if size <= cap(r.free) && size > 4<<10 {
		b := r.free[:size]
		r.free = nil
		return b
	}
	return make([]byte, size, size+size/4)
}

// Reallocate implements memory.Allocator.
func (r *recycler) Reallocate(size int, b []byte) []byte {
	return slices.Grow(b, max(size-len(b), 0))[:size]
}

// Free implements memory.Allocator.
func (r *recycler) Free(b []byte) {
	if cap(b) > cap(r.free) {
		r.free = b
	}
}
