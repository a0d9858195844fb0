package source

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// readBytes is the number of bytes that one read of a column chunk takes from a file or bucket.
const readBytes = 1 << 20

// readParquet reads the rows of a Parquet file. It skips row groups and pages whose statistics show
// that no row meets the filter. It skips rows in which the URL is null or blank, and turns a panic
// of the library on a damaged file into ErrUnreadable.
func readParquet(ctx context.Context, in *file, how *reading, yield func(Entry) bool) (more bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			more, err = false, fmt.Errorf("%w (%v)", ErrUnreadable, p)
		}
	}()
	pq, err := openParquet(in)
	if err != nil {
		return false, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	t, err := bind(pq.Schema(), how)
	if err == nil {
		err = t.checkCodecs(pq.Metadata().RowGroups)
	}
	if err != nil {
		return false, err
	}
	first := int64(1) // number of the first row of the row group
	for _, g := range pq.RowGroups() {
		more, err := t.readGroup(ctx, g, func(e Entry, row int64) bool {
			e.File, e.Line = in.name, first+row
			return yield(e)
		})
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("in the %d rows from row %d on: %w (%w)", g.NumRows(), first, ErrUnreadable, err)
		}
		if err != nil || !more {
			return false, err
		}
		first += g.NumRows()
	}
	return true, nil
}

// openParquet opens a file. It checks the lengths of the footer and the page index, because the
// library allocates them before it reads them.
func openParquet(in *file) (*parquet.File, error) {
	var end [8]byte
	if in.size < 12 {
		return nil, fmt.Errorf("it has %d bytes", in.size)
	}
	if n, err := in.ReadAt(end[:], in.size-8); n < len(end) {
		return nil, err
	}
	if footer := int64(binary.LittleEndian.Uint32(end[:])); footer > in.size-12 {
		return nil, errors.New("its footer is longer than the file")
	}
	pq, err := parquet.OpenFile(in, in.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.OptimisticRead(true), parquet.ReadBufferSize(readBytes))
	if err != nil {
		return nil, err
	}
	for _, g := range pq.Metadata().RowGroups {
		for _, c := range g.Columns {
			if min(c.ColumnIndexLength, c.OffsetIndexLength) < 0 || int64(max(c.ColumnIndexLength, c.OffsetIndexLength)) > in.size {
				return nil, errors.New("its page index is longer than the file")
			}
		}
	}
	return pq, nil
}

// parquetColumns holds the columns of a Parquet file that entries need.
type parquetColumns struct {
	how     reading // with a filter whose literals have the columns' types
	leaves  []int   // index of each column of how.names among the file's leaves
	convert []func(parquet.Value) value
}

// bind finds the columns of a file.
func bind(schema *parquet.Schema, how *reading) (*parquetColumns, error) {
	t := &parquetColumns{how: *how}
	t.how.where = append(filter(nil), how.where...)
	for i, name := range how.names() {
		leaf, ok := schema.Lookup(name)
		if !ok || leaf.MaxRepetitionLevel > 0 {
			var have []string
			for _, f := range schema.Fields() {
				if f.Name() == name {
					return nil, fmt.Errorf("column %.60q is nested, and holds no single value: %w", name, ErrColumn)
				}
				have = append(have, f.Name())
			}
			return nil, lacks(name, have)
		}
		c := columnType(leaf.Node.Type())
		var err error
		switch {
		case i == 0 && (leaf.Node.Type().Kind() != parquet.ByteArray || c.kind != text):
			err = fmt.Errorf("column %.60q holds %s, not texts: %w", name, c.holds, ErrColumn)
		case i > len(how.where) && (c.kind != integer || c.times):
			err = fmt.Errorf("column %.60q holds %s, not whole numbers: %w", name, c.holds, ErrColumn)
		case i > 0 && i <= len(how.where) && c.kind == other:
			err = fmt.Errorf("where, character %d: column %.60q holds %s, which no condition can compare: %w", how.where[i-1].at, name, c.holds, ErrWhere)
		case i > 0 && i <= len(how.where):
			t.how.where[i-1], err = how.where[i-1].typed(c.kind, c.times, c.holds)
		}
		if err != nil {
			return nil, err
		}
		t.leaves, t.convert = append(t.leaves, leaf.ColumnIndex), append(t.convert, c.convert)
	}
	return t, nil
}

// checkCodecs returns an error if a column that is read has a compression that the library cannot undo. It
// reads LZ4_RAW, but not every block that other writers make, and fails in the middle of a file; damaged
// blocks let it allocate without bound. The older LZ4 and LZO it does not know.
func (t *parquetColumns) checkCodecs(groups []format.RowGroup) error {
	for _, g := range groups {
		for i, leaf := range t.leaves {
			if leaf >= len(g.Columns) {
				return fmt.Errorf("%w (a row group lacks column %.60q)", ErrUnreadable, t.how.names()[i])
			}
			switch codec := g.Columns[leaf].MetaData.Codec; codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
			default:
				return fmt.Errorf("%w (its column %.60q is compressed with %s, which crawlbatch cannot read: write the file with zstd or snappy)", ErrUnreadable, t.how.names()[i], codec)
			}
		}
	}
	return nil
}

// parquetType says how the values of a column are compared.
type parquetType struct {
	kind    kind
	times   bool
	holds   string // description of the values, for messages
	convert func(parquet.Value) value
}

// columnType returns the type of a column. A type that no condition can compare has the kind other.
func columnType(t parquet.Type) parquetType {
	var logical any
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	no := parquetType{other, false, "values of type " + t.String(), func(parquet.Value) value { return value{kind: other} }}
	times := func(convert func(v parquet.Value) int64) parquetType {
		return parquetType{integer, true, "times: write them as '2026-11-30' or '2026-11-30 12:00:00'", func(v parquet.Value) value {
			return value{kind: integer, n: convert(v)}
		}}
	}
	switch l := logical.(type) {
	case *format.DecimalType, *format.TimeType, *format.BsonType, *format.UUIDType:
		return no
	case *format.DateType:
		return times(func(v parquet.Value) int64 { return int64(v.Int32()) * 86_400_000_000 })
	case *format.TimestampType:
		switch l.Unit.Value.(type) {
		case *format.MilliSeconds:
			return times(func(v parquet.Value) int64 { return v.Int64() * 1000 })
		case *format.NanoSeconds:
			return times(func(v parquet.Value) int64 { return v.Int64() / 1000 })
		}
		return times(func(v parquet.Value) int64 { return v.Int64() })
	case *format.IntType:
		if !l.IsSigned {
			return parquetType{integer, false, "numbers", unsigned}
		}
	}
	switch t.Kind() {
	case parquet.ByteArray:
		return parquetType{text, false, "texts: write them in single quotes", func(v parquet.Value) value { return value{kind: text, text: v.ByteArray()} }}
	case parquet.Boolean:
		return parquetType{text, false, "true or false", func(v parquet.Value) value { return textOf(fmt.Sprint(v.Boolean())) }}
	case parquet.Int32, parquet.Int64:
		return parquetType{integer, false, "numbers", signed}
	case parquet.Float:
		return parquetType{real, false, "numbers", func(v parquet.Value) value { return value{kind: real, f: float64(v.Float())} }}
	case parquet.Double:
		return parquetType{real, false, "numbers", func(v parquet.Value) value { return value{kind: real, f: v.Double()} }}
	case parquet.Int96: // Spark's old timestamps: nanoseconds of the day, and the Julian day
		return times(func(v parquet.Value) int64 {
			at := v.Int96()
			return (int64(at[2])-2_440_588)*86_400_000_000 + (int64(at[1])<<32|int64(at[0]))/1000
		})
	}
	return no
}

func signed(v parquet.Value) value {
	if v.Kind() == parquet.Int32 {
		return value{kind: integer, n: int64(v.Int32())}
	}
	return value{kind: integer, n: v.Int64()}
}

func unsigned(v parquet.Value) value {
	if v.Kind() == parquet.Int32 {
		return value{kind: integer, n: int64(v.Uint32())}
	}
	if n := v.Uint64(); n > math.MaxInt64 {
		return value{kind: real, f: float64(n)}
	}
	return value{kind: integer, n: v.Int64()}
}

// valueOf converts a value of a column.
func (t *parquetColumns) valueOf(column int, v parquet.Value) value {
	if v.IsNull() {
		return value{}
	}
	return t.convert[column](v)
}

// readGroup reads the rows of a row group. It calls visit with each entry and the number of its row
// in the group, from 0. more is false if visit returned false or ctx ended.
func (t *parquetColumns) readGroup(ctx context.Context, g parquet.RowGroup, visit func(e Entry, row int64) bool) (more bool, err error) {
	chunks := g.ColumnChunks()
	for i := range t.how.where {
		if !t.mayHold(i, chunks[t.leaves[1+i]]) {
			return true, nil
		}
	}
	cursors := make([]*cursor, len(t.leaves)) // columns that are named twice share a cursor
	byLeaf := map[int]*cursor{}
	defer func() {
		for _, c := range byLeaf {
			parquet.Release(c.page)
			err = errors.Join(err, c.pages.Close())
		}
	}()
	for i, leaf := range t.leaves {
		if byLeaf[leaf] == nil {
			byLeaf[leaf] = &cursor{pages: chunks[leaf].Pages()}
		}
		cursors[i] = byLeaf[leaf]
		if err := t.index(i, cursors[i], chunks[leaf], g.NumRows()); err != nil {
			return false, err
		}
	}
	var row int64
	get := func(i int) (value, error) {
		v, err := cursors[i].read(row)
		return t.valueOf(i, v), err
	}
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if row = nextRow(cursors, row); row >= g.NumRows() {
			return true, nil
		}
		e, ok, err := t.how.entry(get)
		if err != nil {
			return false, err
		}
		if ok && !visit(e, row) {
			return false, nil
		}
		row++
	}
}

// nextRow returns the first row that lies in no skipped page. The search begins at the given row.
func nextRow(cursors []*cursor, row int64) int64 {
	for again := true; again; {
		again = false
		for _, c := range cursors {
			if next := c.wanted(row); next > row {
				row, again = next, true
			}
		}
	}
	return row
}

// mayHold reports whether a row group may have values that meet a condition. Statistics of an old
// kind, whose order is unknown, do not count.
func (t *parquetColumns) mayHold(condition int, chunk parquet.ColumnChunk) bool {
	c, ok := chunk.(*parquet.FileColumnChunk)
	if !ok {
		return true
	}
	least, most, ok := c.Bounds()
	return !ok || t.how.where[condition].mayHold(t.valueOf(1+condition, least), t.valueOf(1+condition, most))
}

// index reads the page index of a column, if the filter can use the index.
func (t *parquetColumns) index(column int, c *cursor, chunk parquet.ColumnChunk, rows int64) error {
	if len(t.how.where) == 0 {
		return nil
	}
	if c.starts == nil {
		offsets, err := chunk.OffsetIndex()
		if errors.Is(err, parquet.ErrMissingOffsetIndex) {
			return nil
		}
		if err != nil {
			return err
		}
		for page := range offsets.NumPages() {
			c.starts = append(c.starts, offsets.FirstRowIndex(page))
		}
		c.skip, c.rows = make([]bool, len(c.starts)), rows
		for page, start := range c.starts {
			if page == 0 && start != 0 || page > 0 && start <= c.starts[page-1] || start >= rows {
				return errors.New("the page index has wrong row numbers")
			}
		}
	}
	if column == 0 || column > len(t.how.where) {
		return nil
	}
	pages, err := chunk.ColumnIndex()
	if errors.Is(err, parquet.ErrMissingColumnIndex) {
		return nil
	}
	if err != nil {
		return err
	}
	if pages.NumPages() != len(c.starts) {
		return errors.New("the page index has a wrong number of pages")
	}
	condition := &t.how.where[column-1]
	for page := range c.starts {
		if pages.NullPage(page) || !condition.mayHold(t.valueOf(column, pages.MinValue(page)), t.valueOf(column, pages.MaxValue(page))) {
			c.skip[page] = true
		}
	}
	return nil
}

// cursor reads the values of one column chunk forwards, by row.
type cursor struct {
	pages parquet.Pages
	page  parquet.Page
	in    parquet.ValueReader // values of the page
	buf   [256]parquet.Value
	have  []parquet.Value // values that were read last
	row   int64           // row of have[0]
	end   int64           // row after the page

	starts []int64 // first row of each page, or nil if unknown
	skip   []bool  // pages that the filter does not need
	page0  int     // page that was looked up last
	rows   int64
}

// wanted returns the first row, from the given row on, that is in a page that the filter needs.
func (c *cursor) wanted(row int64) int64 {
	for len(c.starts) > 0 && row < c.rows {
		for c.page0+1 < len(c.starts) && c.starts[c.page0+1] <= row {
			c.page0++
		}
		if !c.skip[c.page0] {
			return row
		}
		if row = c.rows; c.page0+1 < len(c.starts) {
			row = c.starts[c.page0+1]
		}
	}
	return row
}

// read returns the value in a row, which must not lie before the row of the previous call. The value
// is valid until the next call.
func (c *cursor) read(row int64) (parquet.Value, error) {
	for row >= c.row+int64(len(c.have)) {
		c.row += int64(len(c.have))
		c.have = nil
		if c.row == c.end {
			if err := c.nextPage(row); err != nil {
				return parquet.Value{}, err
			}
			continue
		}
		n, err := c.in.ReadValues(c.buf[:])
		if c.have = c.buf[:n]; n == 0 {
			return parquet.Value{}, errors.Join(errors.New("a page has fewer values than rows"), err)
		}
	}
	return c.have[row-c.row], nil
}

// nextPage reads the next page, or, if the places of pages are known, the page with the given row.
func (c *cursor) nextPage(row int64) error {
	parquet.Release(c.page)
	c.page = nil
	if row > c.end && c.starts != nil {
		if err := c.pages.SeekToRow(row); err != nil {
			return err
		}
		c.row, c.end = row, row
	}
	page, err := c.pages.ReadPage()
	if err == io.EOF {
		return errors.New("a column has fewer values than rows")
	}
	if err != nil {
		return err
	}
	c.page, c.in = page, page.Values()
	if c.end += page.NumRows(); row >= c.end {
		c.row = c.end // none of the page's values is needed
	}
	return nil
}
