package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"crawlbatch.io/crawlbatch/formats/store"
)

// scanRows bounds the number of rows in a batch of Scan.
const scanRows = 4096

// Scan yields the named top-level columns of an object, in the given order, as batches of
// Arrow arrays in file order. It is several times faster than Open when it reads few
// columns of a wide table. A column that the file lacks is an *array.Null. A batch is
// valid until the next iteration; clone strings to keep them longer. A pair with an error
// is the last.
func Scan(ctx context.Context, b store.Bucket, key string, columns ...string) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		obj, err := b.Open(ctx, key)
		if err != nil {
			yield(nil, err) // the error names the key
			return
		}
		stopped := false
		err = scan(ctx, obj, columns, func(r arrow.RecordBatch) bool {
			stopped = !yield(r, nil)
			return !stopped
		})
		if cerr := obj.Close(); err == nil {
			err = cerr
		}
		if err != nil && !stopped {
			yield(nil, fmt.Errorf("scan %q: %w", key, err))
		}
	}
}

func scan(ctx context.Context, obj store.Object, columns []string, yield func(arrow.RecordBatch) bool) (err error) {
	win, err := openWindow(obj)
	if err != nil {
		return err
	}
	inYield := false // a panic in the caller's loop body must pass through
	defer func() {
		if inYield {
			return
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("%w (%v)", ErrCorrupt, p)
		} else if win.err != nil {
			err = win.err
		}
	}()
	props := parquet.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled = true
	pf, err := file.NewParquetReader(io.NewSectionReader(win, 0, win.size), file.WithReadProps(props))
	if err != nil {
		return fmt.Errorf("%w (%v)", ErrCorrupt, err)
	}
	defer func() { err = errors.Join(err, pf.Close()) }()
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: scanRows}, memory.DefaultAllocator)
	if err != nil {
		return fmt.Errorf("%w (%v)", ErrCorrupt, err)
	}
	leaves := leavesOf(pf, columns)
	for g := range pf.NumRowGroups() {
		extents, rows, err := groupExtents(pf, g, leaves)
		if err == nil {
			err = win.enter(extents)
		}
		if err != nil {
			return err
		}
		more, err := scanGroup(ctx, fr, g, leaves, rows, columns, func(r arrow.RecordBatch) bool {
			inYield = true
			more := yield(r)
			inYield = false
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// leavesOf lists the leaf columns under the named top-level ones, in file order.
func leavesOf(pf *file.Reader, columns []string) []int {
	asked := map[string]bool{}
	for _, c := range columns {
		asked[c] = true
	}
	var leaves []int
	schema := pf.MetaData().Schema
	for i := range schema.NumColumns() {
		if asked[schema.ColumnRoot(i).Name()] {
			leaves = append(leaves, i)
		}
	}
	return leaves
}

func groupExtents(pf *file.Reader, group int, leaves []int) ([]extent, int64, error) {
	meta := pf.MetaData().RowGroup(group)
	out := make([]extent, 0, len(leaves))
	for _, i := range leaves {
		c, err := meta.ColumnChunk(i)
		if err != nil {
			return nil, 0, fmt.Errorf("%w (%v)", ErrCorrupt, err)
		}
		out = append(out, extentOf(c.DataPageOffset(), c.DictionaryPageOffset(), c.TotalCompressedSize()))
	}
	return out, meta.NumRows(), nil
}

// scanGroup yields the batches of one row group. It returns false to stop.
func scanGroup(ctx context.Context, fr *pqarrow.FileReader, group int, leaves []int, rows int64, columns []string,
	yield func(arrow.RecordBatch) bool) (bool, error) {
	if len(leaves) == 0 { // the file has none of the columns: rows of nulls
		for ; rows > 0; rows -= min(rows, scanRows) {
			r := reorder(nil, min(rows, scanRows), columns)
			more := yield(r)
			r.Release()
			if !more {
				return false, nil
			}
		}
		return true, nil
	}
	rr, err := fr.GetRecordReader(ctx, leaves, []int{group})
	if err != nil {
		return false, fmt.Errorf("%w (%v)", ErrCorrupt, err)
	}
	defer rr.Release()
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		batch, err := rr.Read()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("%w (%v)", ErrCorrupt, err)
		}
		r := reorder(batch, batch.NumRows(), columns)
		more := yield(r)
		r.Release()
		if !more {
			return false, nil
		}
	}
}

// reorder returns a batch with the named columns. Columns that batch lacks are null.
func reorder(batch arrow.RecordBatch, rows int64, columns []string) arrow.RecordBatch {
	fields := make([]arrow.Field, len(columns))
	arrays := make([]arrow.Array, len(columns))
	for i, name := range columns {
		at := -1
		if batch != nil {
			if found := batch.Schema().FieldIndices(name); len(found) > 0 {
				at = found[0]
			}
		}
		if at < 0 {
			fields[i] = arrow.Field{Name: name, Type: arrow.Null, Nullable: true}
			null := array.NewNull(int(rows))
			defer null.Release()
			arrays[i] = null
			continue
		}
		fields[i], arrays[i] = batch.Schema().Field(at), batch.Column(at)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, rows)
}
