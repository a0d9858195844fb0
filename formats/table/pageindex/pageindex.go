// Package pageindex finds the rows of a Parquet row group that may meet conditions, by the lowest and
// highest values of each page.
//
// It reads the page index of a file (ColumnIndex and OffsetIndex of the Parquet format), which lies before
// the footer. A reader can then skip pages without decoding them. Package pageindex imports
// formats/table/window.
package pageindex

import (
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/table/window"
)

// Range is a range of rows of a row group, from First to End (exclusive).
type Range struct{ First, End int64 }

// Condition is a condition on the values of a column.
type Condition struct {
	Column string
	Meets  func(least, most parquet.Value) bool // reports whether a value from least to most may meet the condition
}

// InBounds reports whether a column chunk may hold a value that meets the condition, by the bounds in the
// footer. It is true if the file lacks the column or its bounds.
func (c *Condition) InBounds(g parquet.RowGroup) bool {
	chunk := c.chunk(g)
	if chunk == nil {
		return true
	}
	least, most, ok := chunk.Bounds()
	return !ok || c.Meets(least, most)
}

// chunk returns the column chunk of the condition, or nil if the row group lacks it.
func (c *Condition) chunk(g parquet.RowGroup) *parquet.FileColumnChunk {
	leaf, ok := g.Schema().Lookup(c.Column)
	if !ok {
		return nil
	}
	chunk, _ := g.ColumnChunks()[leaf.ColumnIndex].(*parquet.FileColumnChunk)
	return chunk
}

// Load loads the OffsetIndex of some columns of row group i, and the ColumnIndex of the conditions'
// columns. It reads only bytes that the window holds. It returns false if some of the indexes are missing,
// not in the window or contradict themselves.
func Load(w *window.Window, file *parquet.File, i int, columns []int, all []Condition) bool {
	g, meta := file.RowGroups()[i], file.Metadata().RowGroups[i].Columns
	load := func(column int, values bool) bool {
		chunk, ok := g.ColumnChunks()[column].(*parquet.FileColumnChunk)
		m := &meta[column]
		if !ok || m.OffsetIndexOffset == 0 || !w.Holds(m.OffsetIndexOffset, int64(m.OffsetIndexLength)) {
			return false
		}
		offsets, err := chunk.OffsetIndex()
		if err != nil || !ascends(offsets, g.NumRows()) {
			return false
		}
		if !values {
			return true
		}
		if m.ColumnIndexOffset == 0 || !w.Holds(m.ColumnIndexOffset, int64(m.ColumnIndexLength)) {
			return false
		}
		index, err := chunk.ColumnIndex()
		return err == nil && index.NumPages() == offsets.NumPages()
	}
	for _, c := range columns {
		if !load(c, false) {
			return false
		}
	}
	for _, c := range all {
		if chunk := c.chunk(g); chunk != nil && !load(chunk.Column(), true) {
			return false
		}
	}
	return true
}

// ascends reports whether the first rows of pages begin at 0, ascend, and lie within the row group.
func ascends(index parquet.OffsetIndex, rows int64) bool {
	last := int64(-1)
	for i := range index.NumPages() {
		first := index.FirstRowIndex(i)
		if first <= last || i == 0 && first != 0 {
			return false
		}
		last = first
	}
	return last >= 0 && last < rows
}

// Rows returns the rows of a row group whose pages may meet all conditions, after Load. The ranges are
// in ascending order. A page of nulls may meet each condition, because older files store 0 as null.
func Rows(g parquet.RowGroup, all []Condition) []Range {
	ranges := []Range{{0, g.NumRows()}}
	for _, c := range all {
		if chunk := c.chunk(g); chunk != nil {
			ranges = intersect(ranges, c.rows(chunk, g.NumRows()))
		}
	}
	return ranges
}

// Count returns the number of rows in ranges.
func Count(ranges []Range) (n int64) {
	for _, r := range ranges {
		n += r.End - r.First
	}
	return n
}

// rows returns the rows of the pages that may meet the condition.
func (c *Condition) rows(chunk *parquet.FileColumnChunk, rows int64) (out []Range) {
	values, err := chunk.ColumnIndex()
	if err != nil {
		return []Range{{0, rows}}
	}
	offsets, err := chunk.OffsetIndex()
	if err != nil {
		return []Range{{0, rows}}
	}
	for i := range values.NumPages() {
		if !values.NullPage(i) && !c.Meets(values.MinValue(i), values.MaxValue(i)) {
			continue
		}
		page := Range{offsets.FirstRowIndex(i), rows}
		if i+1 < values.NumPages() {
			page.End = offsets.FirstRowIndex(i + 1)
		}
		if n := len(out); n > 0 && out[n-1].End == page.First {
			out[n-1].End = page.End
		} else {
			out = append(out, page)
		}
	}
	return out
}

// intersect returns the rows that are in ranges of both lists.
func intersect(a, b []Range) (out []Range) {
	for len(a) > 0 && len(b) > 0 {
		if both := (Range{max(a[0].First, b[0].First), min(a[0].End, b[0].End)}); both.First < both.End {
			out = append(out, both)
		}
		if a[0].End < b[0].End {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// PageOf returns the first row of the page that holds a row, after Load.
func PageOf(index parquet.OffsetIndex, row int64) int64 {
	lo, hi := 0, index.NumPages()
	for lo+1 < hi { // the page of the row is in [lo, hi)
		if middle := (lo + hi) / 2; index.FirstRowIndex(middle) <= row {
			lo = middle
		} else {
			hi = middle
		}
	}
	return index.FirstRowIndex(lo)
}
