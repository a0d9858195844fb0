package table

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"crawlbatch.io/crawlbatch/formats/store"
)

// scanRows is the largest number of rows that Scan decodes at a time.
const scanRows = 4096

// Scan decodes every column of an object and returns the number of its rows. Scan uses Arrow's
// reader, which shares no code with Reader.
func Scan(ctx context.Context, b store.Bucket, key string) (rows int64, err error) {
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
	win, err := openWindow(obj)
	if err != nil {
		return 0, err
	}
	defer win.damage(&err)
	props := parquet.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled = true
	pf, err := file.NewParquetReader(io.NewSectionReader(win, 0, win.size), file.WithReadProps(props))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, pf.Close()) }()
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: scanRows}, memory.DefaultAllocator)
	if err != nil {
		return 0, err
	}
	for g := range pf.NumRowGroups() {
		n, err := scanGroup(ctx, win, fr, g)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

// scanGroup decodes one row group.
func scanGroup(ctx context.Context, win *window, fr *pqarrow.FileReader, group int) (rows int64, err error) {
	meta := fr.ParquetReader().MetaData().RowGroup(group)
	var leaves []int
	var extents []extent
	for i := range meta.NumColumns() {
		c, err := meta.ColumnChunk(i)
		if err != nil {
			return 0, err
		}
		leaves = append(leaves, i)
		extents = append(extents, extentOf(c.DataPageOffset(), c.DictionaryPageOffset(), c.TotalCompressedSize()))
	}
	if err := win.enter(extents); err != nil {
		return 0, err
	}
	rr, err := fr.GetRecordReader(ctx, leaves, []int{group})
	if err != nil {
		return 0, err
	}
	defer rr.Release()
	for {
		batch, err := rr.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		rows += batch.NumRows()
	}
}
