package table

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/table/column"
	"crawlbatch.io/crawlbatch/formats/table/pageindex"
)

// columnReader decodes the columns of one row group.
type columnReader struct {
	columns []*column.Cursor
	rows    int64 // number of rows that are not read yet, of the row group or of the current range
	size    uintptr

	next   int64             // number of the next row
	ranges []pageindex.Range // ranges after the current one
	part   bool              // only ranges are read, not the whole row group

	keep func(text string) bool // selects rows by the text of the first column; nil: all rows
}

// leavesOf returns the column of a file for each field of a row type, or nil for a column that the
// file lacks. It returns false if only the library can read the rows: if a column has an unusual
// shape, or if a list is missing. (The library reads a missing list as a list of one empty text.)
func leavesOf(layout *rowLayout, names []string, file *parquet.File) ([]*parquet.Column, bool) {
	leaves := make([]*parquet.Column, len(names))
	for i := range layout.fields {
		f, leaf := &layout.fields[i], file.Root().Column(names[i])
		for leaf != nil && !leaf.Leaf() {
			if len(leaf.Columns()) != 1 {
				return nil, false
			}
			leaf = leaf.Columns()[0]
		}
		repeated := 0
		if f.shape == list {
			repeated = 1
		}
		if column.KindOf(f.kind) < 0 || leaf == nil && f.shape == list || leaf != nil && (leaf.Type().Kind() != column.KindOf(f.kind) || leaf.MaxRepetitionLevel() != repeated || f.shape == list && leaf.Optional()) {
			return nil, false
		}
		leaves[i] = leaf
	}
	return leaves, true
}

// columnNames returns the names of the columns for a row type's fields.
func columnNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			names = append(names, columnNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if name == "" {
			name = f.Name
		}
		names = append(names, name)
	}
	return names
}

// read fills up to n rows, which must be zero before the call, and returns their number. first is the
// address of the first row. The error is io.EOF after the last row of the row group.
func (r *columnReader) read(first unsafe.Pointer, n int) (int, error) {
	n = int(min(int64(n), r.rows))
	kept := n
	for i, c := range r.columns {
		if i > 0 && r.keep != nil {
			break
		}
		if err := c.ReadRows(first, n, r.size); err != nil {
			return 0, err
		}
	}
	if r.keep != nil {
		var err error
		if kept, err = r.readKept(first, n); err != nil {
			return 0, err
		}
	}
	r.next += int64(n)
	if r.rows -= int64(n); r.rows > 0 {
		return kept, nil
	}
	if r.part {
		return kept, r.nextRange()
	}
	for i, c := range r.columns {
		if i > 0 && r.keep != nil {
			break // the other columns were not read to their ends
		}
		if err := c.End(); err != nil {
			return 0, err
		}
	}
	return kept, io.EOF
}

// readKept removes the rows that keep refuses from n rows, of which the first column is read, and reads
// the other columns of the rows that remain. It returns their number.
func (r *columnReader) readKept(first unsafe.Pointer, n int) (kept int, err error) {
	text := func(i int) *string {
		return (*string)(unsafe.Add(first, uintptr(i)*r.size+r.columns[0].Offset))
	}
	for i := 0; i < n; i++ {
		begin := i
		for i < n && r.keep(*text(i)) {
			*text(kept + i - begin) = strings.Clone(*text(i)) // it lies in a page
			i++
		}
		if i == begin {
			continue
		}
		for _, c := range r.columns[1:] {
			err := c.MoveTo(r.next + int64(begin))
			if err == nil {
				err = c.ReadRows(unsafe.Add(first, uintptr(kept)*r.size), i-begin, r.size)
			}
			if err != nil {
				return 0, err
			}
		}
		kept += i - begin
	}
	return kept, nil
}

// nextRange moves on to the next range. The error is io.EOF after the last range.
func (r *columnReader) nextRange() error {
	if len(r.ranges) == 0 {
		return io.EOF
	}
	next := r.ranges[0]
	for i, c := range r.columns {
		if i > 0 && r.keep != nil {
			break // readKept moves the other columns
		}
		if err := c.MoveTo(next.First); err != nil {
			return err
		}
	}
	r.ranges, r.next, r.rows = r.ranges[1:], next.First, next.End-next.First
	return nil
}

func (r *columnReader) close() error {
	var err error
	for _, c := range r.columns {
		err = errors.Join(err, c.Close())
	}
	return err
}

// startGroup begins to read row group i.
func (r *reader) startGroup(i int) error {
	g := r.file.RowGroups()[i]
	if r.leaves == nil && !r.boxed {
		leaves, ok := leavesOf(r.layout, columnNames(r.layout.row), r.file)
		r.leaves, r.boxed = leaves, !ok
	}
	if r.boxed {
		var err error
		r.cur, err = newBoxedReader(r.layout.row, g)
		return err
	}
	indexed := (len(r.pages) > 0 || r.keep != nil) && pageindex.Load(r.win, r.file, i, columnsIn(r.leaves), r.pages)
	if err := r.openColumns(g, indexed); err != nil || !indexed {
		return err
	}
	ranges := pageindex.Rows(g, r.pages)
	if pageindex.Count(ranges) > g.NumRows()/2 { // to skip few pages costs more than it saves
		return nil
	}
	r.columns.part, r.columns.rows, r.columns.ranges = true, 0, ranges
	err := r.columns.nextRange()
	if err == io.EOF { // no page has such values
		err = r.columns.close()
		r.columns = nil
	}
	return err
}

func (r *reader) openColumns(g parquet.RowGroup, indexed bool) error {
	r.columns = &columnReader{rows: g.NumRows(), size: uintptr(r.layout.size), keep: r.keep}
	for i := range r.layout.fields {
		f := &r.layout.fields[i]
		var lent *[]parquet.Page
		if r.lends || i == 0 && r.keep != nil {
			lent = &r.lent // with keep, most rows are not kept, so copies of their texts would be in vain
		}
		c, err := column.New(f.column(), g, r.leaves[i], indexed, lent)
		if err != nil {
			return err
		}
		r.columns.columns = append(r.columns.columns, c)
	}
	return nil
}

func (f *rowField) column() column.Field {
	return column.Field{Offset: f.offset, Kind: f.kind, Pointer: f.shape == pointer, List: f.shape == list, Elem: f.elem}
}

// columnsIn returns the indexes of the columns that a file has.
func columnsIn(leaves []*parquet.Column) (indexes []int) {
	for _, leaf := range leaves {
		if leaf != nil {
			indexes = append(indexes, leaf.Index())
		}
	}
	return indexes
}

func schemaOf(t reflect.Type, opts ...parquet.SchemaOption) *parquet.Schema {
	return parquet.SchemaOf(reflect.New(t).Interface(), opts...)
}

// boxedReader reads the rows of a row group with the library's own reader, which can convert columns.
type boxedReader struct {
	schema *parquet.Schema
	rows   parquet.Rows
	buf    []parquet.Row
}

func newBoxedReader(t reflect.Type, g parquet.RowGroup) (*boxedReader, error) {
	s := schemaOf(t)
	if !parquet.EqualNodes(s, g.Schema()) {
		conversion, err := parquet.Convert(s, g.Schema())
		if err != nil {
			return nil, err
		}
		g = parquet.ConvertRowGroup(g, conversion)
	}
	return &boxedReader{schema: s, rows: g.Rows()}, nil
}

// read fills batch, a slice of zero rows, and returns the number of rows that it has read.
func (b *boxedReader) read(batch reflect.Value) (n int, err error) {
	b.buf = slices.Grow(b.buf[:0], batch.Len())[:batch.Len()]
	for n < batch.Len() {
		m, err := b.rows.ReadRows(b.buf[:batch.Len()-n])
		for i := range m {
			if err := b.schema.Reconstruct(batch.Index(n+i).Addr().Interface(), b.buf[i]); err != nil {
				return n + i, err
			}
		}
		if n += m; m == 0 || err != nil {
			return n, err
		}
	}
	return n, nil
}
