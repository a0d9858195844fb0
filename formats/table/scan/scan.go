// Package scan decodes whole Parquet files in order to check them. It uses Arrow's reader, which
// shares no code with package table.
//
// Package scan imports formats/store and formats/table/window.
package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/window"
)

// levels is the largest number of values (nulls and empty lists included) that Table decodes at a
// time.
const levels = 1024

// Table decodes every column of an object and returns the number of its rows.
func Table(ctx context.Context, b store.Bucket, key string) (rows int64, err error) {
	obj, err := b.Open(ctx, key)
	if err != nil {
		return 0, err // the error already names the key
	}
	rows, err = scan(ctx, obj)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if cerr := obj.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("scan %q: %w", key, err)
	}
	return rows, nil
}

func scan(ctx context.Context, obj store.Object) (rows int64, err error) {
	win, err := window.Open(obj, window.WholeBytes, false)
	if err != nil {
		return 0, err
	}
	defer win.CatchDamage(&err)
	props := parquet.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled = true
	pf, err := file.NewParquetReader(io.NewSectionReader(win, 0, win.Size()), file.WithReadProps(props))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, pf.Close()) }()
	for g := range pf.NumRowGroups() {
		n, err := scanGroup(ctx, win, pf.RowGroup(g))
		if err != nil {
			return 0, err
		}
		rows += n
	}
	if rows != pf.NumRows() {
		return 0, fmt.Errorf("the row groups have %d rows, but the footer counts %d", rows, pf.NumRows())
	}
	return rows, nil
}

// scanGroup decodes one row group. Each column must have as many rows as the footer says.
func scanGroup(ctx context.Context, win *window.Window, group *file.RowGroupReader) (rows int64, err error) {
	var extents []window.Extent
	for i := range group.NumColumns() {
		c, err := group.MetaData().ColumnChunk(i)
		if err != nil {
			return 0, err
		}
		extents = append(extents, window.ExtentOf(c.DataPageOffset(), c.DictionaryPageOffset(), c.TotalCompressedSize()))
	}
	if err := win.Enter(extents); err != nil {
		return 0, err
	}
	for i := range group.NumColumns() {
		c, err := group.Column(i)
		if err == nil {
			rows, err = scanColumn(c)
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return 0, err
		}
		if rows != group.NumRows() {
			return 0, fmt.Errorf("column %d has %d rows, but the footer counts %d", i, rows, group.NumRows())
		}
	}
	return rows, nil
}

// scanColumn decodes one column of a row group and returns the number of the column's rows.
func scanColumn(c file.ColumnChunkReader) (rows int64, err error) {
	switch c := c.(type) {
	case *file.BooleanColumnChunkReader:
		return scanValues(c.ReadBatchInPage)
	case *file.Int32ColumnChunkReader:
		return scanValues(c.ReadBatchInPage)
	case *file.Int64ColumnChunkReader:
		return scanValues(c.ReadBatchInPage)
	case *file.Float64ColumnChunkReader:
		return scanValues(c.ReadBatchInPage)
	case *file.ByteArrayColumnChunkReader:
		return scanValues(c.ReadBatchInPage)
	}
	return 0, fmt.Errorf("a column has the type %v, which tables of crawlbatch do not use", c.Type())
}

func scanValues[V any](read func(batch int64, values []V, definitions, repetitions []int16) (n int64, read int, err error)) (rows int64, err error) {
	values, definitions, repetitions := make([]V, levels), make([]int16, levels), make([]int16, levels)
	for {
		n, _, err := read(levels, values, definitions, repetitions)
		if err != nil || n == 0 {
			return rows, err
		}
		for _, repetition := range repetitions[:n] { // repetition level 0 begins a row; without lists, all levels are 0
			if repetition == 0 {
				rows++
			}
		}
	}
}
