package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// readParquet reads the column url of a Parquet file. It skips nulls and blank values, and turns a
// panic of the library on a damaged file into ErrUnreadable.
func readParquet(ctx context.Context, file *os.File, name string, yield func(Entry) bool) (more bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			more, err = false, fmt.Errorf("%w (%v)", ErrUnreadable, p)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	pq, err := parquet.OpenFile(file, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return false, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	leaf, ok := pq.Schema().Lookup("url")
	if !ok || leaf.Node.Type().Kind() != parquet.ByteArray || leaf.MaxRepetitionLevel > 0 {
		return false, fmt.Errorf("%w (it has no such column)", ErrUnreadable)
	}
	row := int64(0)
	visit := func(v parquet.Value) bool {
		row++
		b := v.ByteArray()
		if v.IsNull() || blank(b) {
			return true
		}
		return yield(Entry{URL: string(b[:min(len(b), MaxURL)]), File: name, Line: row, Due: true, Listed: true, Priority: DefaultPriority})
	}
	for _, g := range pq.RowGroups() {
		more, err := readColumn(ctx, g.ColumnChunks()[leaf.ColumnIndex], visit)
		if err != nil {
			return false, fmt.Errorf("after row %d: %w (%w)", row, ErrUnreadable, err)
		}
		if !more {
			return false, ctx.Err()
		}
	}
	return true, nil
}

// readColumn calls the function visit with the values of a column chunk, until visit returns false
// or ctx ends.
func readColumn(ctx context.Context, chunk parquet.ColumnChunk, visit func(parquet.Value) bool) (more bool, err error) {
	pages := chunk.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	var values [256]parquet.Value
	for ctx.Err() == nil {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		more, err := readPage(page, values[:], visit)
		parquet.Release(page)
		if err != nil || !more {
			return false, err
		}
	}
	return false, nil
}

func readPage(page parquet.Page, values []parquet.Value, visit func(parquet.Value) bool) (more bool, err error) {
	for in := page.Values(); ; {
		n, err := in.ReadValues(values)
		for _, v := range values[:n] {
			if !visit(v) {
				return false, nil
			}
		}
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}
