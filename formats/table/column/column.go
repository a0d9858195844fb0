// Package column decodes a column of a Parquet row group straight into the fields of rows, by their
// offsets, and encodes fields of rows whose type is made at run time. The library's own reader wraps every value in a parquet.Value, which takes several times as
// long.
//
// Package column imports formats/table/pageindex.
package column

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"reflect"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/table/pageindex"
)

// ErrShort means that a column has fewer values than its row group has rows.
var ErrShort = errors.New("a column ends early")

// ErrLong means that a column has more values than its row group has rows.
var ErrLong = errors.New("a column has more values than its row group has rows")

// KindOf returns the physical type of the column of a field whose values have a kind of Go, or -1 if a
// Cursor cannot read it.
func KindOf(kind reflect.Kind) parquet.Kind {
	switch kind {
	case reflect.String:
		return parquet.ByteArray
	case reflect.Int16, reflect.Int32:
		return parquet.Int32
	case reflect.Int64, reflect.Int:
		return parquet.Int64
	case reflect.Bool:
		return parquet.Boolean
	case reflect.Float64:
		return parquet.Double
	}
	return -1
}

// Field says which field of a row holds the values of a column.
type Field struct {
	Offset  uintptr      // offset of the field in the row, in bytes
	Kind    reflect.Kind // kind of the value, or of each element of a list
	Pointer bool         // the field is a pointer to a value; nil is null
	List    bool         // the field is a slice of values
	Elem    reflect.Type // type of the value, or of each element of a list
}

// Cursor reads a column of one row group value by value. It holds one page in memory. Only one
// goroutine may use a Cursor.
type Cursor struct {
	Field
	pages parquet.Pages       // nil if the file lacks the column
	index parquet.OffsetIndex // first rows of the pages; nil if unknown
	most  byte                // largest definition level: only this level stands for a value
	lent  *[]parquet.Page     // receives the pages whose texts the rows share; nil if rows get copies
	row   int64               // number of the next row

	page        parquet.Page
	levels      int // number of levels of the page that were read so far; a null has a level too
	count       int // number of levels of the page
	value       int // number of values of the page that were read so far
	repetitions []byte
	definitions []byte
	values      typed
	indexes     []int32  // indexes into the dictionary; nil if the page has the values themselves
	entries     typed    // entries of the dictionary
	texts       []string // texts of the dictionary, which rows share
	copy        string   // copy of a part of the page's texts
	copied      uint32   // offset of this part in the bytes of the values
	words       []string // texts of the current list
	numbers     []int32  // numbers of the current list
}

// New returns a cursor before the first row of a column chunk, for a field of a row. leaf is the chunk's
// column, or nil if the file lacks the column: its rows are then null. If indexed is true, the chunk's
// OffsetIndex is loaded (see package pageindex). If lent is not nil, the texts of rows lie in pages, and
// the cursor appends each page to *lent when it needs no more of it. The caller releases these pages.
func New(f Field, g parquet.RowGroup, leaf *parquet.Column, indexed bool, lent *[]parquet.Page) (*Cursor, error) {
	c := &Cursor{Field: f, lent: lent}
	if leaf == nil {
		return c, nil
	}
	chunk := g.ColumnChunks()[leaf.Index()]
	if indexed {
		index, err := chunk.OffsetIndex()
		if err != nil {
			return nil, err
		}
		c.index = index
	}
	c.pages, c.most = chunk.Pages(), byte(leaf.MaxDefinitionLevel())
	return c, nil
}

// Close ends the use of the cursor.
func (c *Cursor) Close() error {
	c.release()
	if c.pages == nil {
		return nil
	}
	return c.pages.Close()
}

// typed holds values of one physical type.
type typed struct {
	bits    []byte
	int32s  []int32
	int64s  []int64
	doubles []float64
	bytes   []byte
	offsets []uint32
}

func typedOf(kind parquet.Kind, p parquet.Page) (t typed) {
	values := p.Data()
	switch kind {
	case parquet.Boolean:
		t.bits = values.Boolean()
	case parquet.Int32:
		t.int32s = values.Int32()
	case parquet.Int64:
		t.int64s = values.Int64()
	case parquet.Double:
		t.doubles = values.Double()
	case parquet.ByteArray:
		t.bytes, t.offsets = values.ByteArray()
	}
	return t
}

func (c *Cursor) release() {
	switch {
	case c.page == nil:
	case c.lent != nil:
		*c.lent = append(*c.lent, c.page)
	default:
		parquet.Release(c.page)
	}
	c.page = nil
}

// nextPage moves on to the next page that has levels. The error is ErrShort if there is none.
func (c *Cursor) nextPage() error {
	c.release()
	for {
		p, err := c.pages.ReadPage()
		if err == io.EOF {
			return ErrShort
		}
		if err != nil {
			return err
		}
		if c.page = p; p.NumValues() > 0 {
			break
		}
		c.release()
	}
	c.levels, c.value, c.count = 0, 0, int(c.page.NumValues())
	c.repetitions, c.definitions = c.page.RepetitionLevels(), c.page.DefinitionLevels()
	c.indexes = nil
	dictionary := c.page.Dictionary()
	if dictionary == nil {
		c.values, c.copy, c.copied = typedOf(KindOf(c.Kind), c.page), "", 0
		return nil
	}
	indexes := c.page.Data()
	c.indexes = indexes.Int32()
	if c.texts == nil || len(c.texts) != dictionary.Len() { // a column chunk has only one dictionary
		c.entries, c.texts = typedOf(KindOf(c.Kind), dictionary.Page()), make([]string, dictionary.Len())
	}
	return nil
}

// End returns ErrLong if the column has more values than its row group has rows. A damaged footer may
// count too few rows, and only the pages show the damage.
func (c *Cursor) End() error {
	if c.pages == nil {
		return nil
	}
	err := ErrLong
	if c.page == nil || c.levels == c.count {
		err = cmp.Or(c.nextPage(), ErrLong)
	}
	if err == ErrShort {
		return nil
	}
	return err
}

// MoveTo moves to a row, which must not be before the next row. It decodes no page that ends before the
// row, if the cursor has an index.
func (c *Cursor) MoveTo(row int64) error {
	if c.pages == nil || row == c.row {
		return nil
	}
	if c.index != nil {
		if page := pageindex.PageOf(c.index, row); page > c.row {
			c.release()
			if err := c.pages.SeekToRow(page); err != nil {
				return err
			}
			c.row = page
		}
	}
	return c.skip(row - c.row)
}

// skip passes over the values or lists of n rows.
func (c *Cursor) skip(n int64) error {
	c.row += n
	for n > 0 {
		if c.List {
			if err := c.eachInList(func() { c.value++ }); err != nil {
				return err
			}
			n--
			continue
		}
		if c.page == nil || c.levels == c.count {
			if err := c.nextPage(); err != nil {
				return err
			}
		}
		m := int(min(n, int64(c.count-c.levels)))
		if c.most == 0 {
			c.value += m
		} else {
			c.value += bytes.Count(c.definitions[c.levels:c.levels+m], []byte{c.most})
		}
		c.levels += m
		n -= int64(m)
	}
	return nil
}

// ReadRows reads the values or lists of the column for the next n rows, whose fields must be zero. first
// is the address of the first row, and step is the distance of rows in bytes.
func (c *Cursor) ReadRows(first unsafe.Pointer, n int, step uintptr) error {
	p := unsafe.Add(first, c.Offset)
	c.row += int64(n)
	for i, m := 0, 1; i < n && (c.pages != nil || c.List); i += m {
		to := unsafe.Add(p, uintptr(i)*step)
		if c.List {
			if err := c.setList(to); err != nil {
				return err
			}
			continue
		}
		if c.page == nil || c.levels == c.count {
			if err := c.nextPage(); err != nil {
				return err
			}
		}
		if m = 1; c.most == 0 && !c.Pointer {
			m = min(n-i, c.count-c.levels)
		}
		if c.levels += m; c.most > 0 && c.definitions[c.levels-1] != c.most {
			continue
		}
		if c.Pointer {
			*(*unsafe.Pointer)(to) = reflect.New(c.Elem).UnsafePointer()
			to = *(*unsafe.Pointer)(to)
		}
		c.assign(to, m, step)
	}
	return nil
}

// nextIsValue reads the next level, and reports whether it stands for a value.
func (c *Cursor) nextIsValue() bool {
	c.levels++
	return c.most == 0 || c.definitions[c.levels-1] == c.most
}

// eachInList calls value for each value of the next list. A list may continue in the next page.
func (c *Cursor) eachInList(value func()) error {
	for n := 0; ; n++ {
		if c.page == nil || c.levels == c.count {
			err := c.nextPage()
			if err == ErrShort && n > 0 {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if n > 0 && c.repetitions[c.levels] == 0 {
			return nil
		}
		if c.nextIsValue() {
			value()
		}
	}
}

// setList reads the list of one row. An empty list is read as an empty slice and not as nil.
func (c *Cursor) setList(p unsafe.Pointer) error {
	c.words, c.numbers = c.words[:0], c.numbers[:0]
	if c.Kind == reflect.String {
		err := c.eachInList(func() {
			c.words = append(c.words, "")
			c.assign(unsafe.Pointer(&c.words[len(c.words)-1]), 1, 0)
		})
		*(*[]string)(p) = append(make([]string, 0, len(c.words)), c.words...)
		return err
	}
	err := c.eachInList(func() {
		c.numbers = append(c.numbers, 0)
		c.assign(unsafe.Pointer(&c.numbers[len(c.numbers)-1]), 1, 0)
	})
	*(*[]int32)(p) = append(make([]int32, 0, len(c.numbers)), c.numbers...)
	return err
}

// assign copies the next n values to the field at p and to the following fields, step bytes apart.
func (c *Cursor) assign(p unsafe.Pointer, n int, step uintptr) {
	values, first := &c.values, c.value
	c.value += n
	if c.indexes != nil {
		values = &c.entries
	}
	for row := range n {
		to, i := unsafe.Add(p, uintptr(row)*step), first+row
		if c.indexes != nil {
			i = int(c.indexes[i])
		}
		switch c.Kind {
		case reflect.String:
			*(*string)(to) = c.text(values, i)
		case reflect.Int16:
			*(*int16)(to) = int16(values.int32s[i])
		case reflect.Int32:
			*(*int32)(to) = values.int32s[i]
		case reflect.Int64, reflect.Int:
			*(*int64)(to) = values.int64s[i]
		case reflect.Float64:
			*(*float64)(to) = values.doubles[i]
		case reflect.Bool:
			*(*bool)(to) = values.bits[i/8]>>(i%8)&1 == 1
		}
	}
}

// copyBytes bounds the number of bytes of short texts that are copied together. A caller that keeps
// one of these texts keeps the memory of all of them.
const copyBytes = 512

// text returns the text with index i. Rows share the texts of a dictionary. If pages are lent, the
// other texts lie in the page. If not, they are copies. Short texts are copied together, because an
// allocation for each would cost more than the copy.
func (c *Cursor) text(values *typed, i int) string {
	begin, end := values.offsets[i], values.offsets[i+1]
	if c.indexes != nil {
		if c.texts[i] == "" && begin < end {
			c.texts[i] = string(values.bytes[begin:end])
		}
		return c.texts[i]
	}
	if c.lent != nil {
		return unsafe.String(unsafe.SliceData(values.bytes[begin:end]), end-begin)
	}
	if end > c.copied+uint32(len(c.copy)) {
		to := i + 1
		for to+1 < len(values.offsets) && values.offsets[to+1] <= begin+copyBytes {
			to++
		}
		c.copied, c.copy = begin, string(values.bytes[begin:values.offsets[to]])
	}
	return c.copy[begin-c.copied : end-c.copied]
}
