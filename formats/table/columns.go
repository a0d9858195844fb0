package table

import (
	"cmp"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// errShort means that a column has fewer values than its row group has rows.
var errShort = errors.New("a column ends early")

// errLong means that a column has more values than its row group has rows.
var errLong = errors.New("a column has more values than its row group has rows")

// columnReader decodes the columns of one row group straight into the fields of rows, by their
// offsets. The library's own reader wraps every value in a parquet.Value, which takes several times
// as long.
type columnReader struct {
	columns []*columnCursor
	rows    int64 // number of rows that are not read yet
	size    uintptr
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
		if f.column() < 0 || leaf == nil && f.shape == list || leaf != nil && (leaf.Type().Kind() != f.column() || leaf.MaxRepetitionLevel() != repeated || f.shape == list && leaf.Optional()) {
			return nil, false
		}
		leaves[i] = leaf
	}
	return leaves, true
}

// column returns the physical type of the column of a field, or -1 if columnReader cannot read it.
func (f *rowField) column() parquet.Kind {
	switch f.kind {
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

func newColumnReader(layout *rowLayout, leaves []*parquet.Column, g parquet.RowGroup, lent *[]parquet.Page) *columnReader {
	r := &columnReader{rows: g.NumRows(), size: uintptr(layout.size)}
	chunks := g.ColumnChunks()
	for i := range layout.fields {
		c := &columnCursor{field: &layout.fields[i], lent: lent}
		if leaf := leaves[i]; leaf != nil {
			c.pages, c.most = chunks[leaf.Index()].Pages(), byte(leaf.MaxDefinitionLevel())
		}
		r.columns = append(r.columns, c)
	}
	return r
}

// read fills up to n rows, which must be zero before the call, and returns their number. first is the
// address of the first row. The error is io.EOF after the last row of the row group.
func (r *columnReader) read(first unsafe.Pointer, n int) (int, error) {
	n = int(min(int64(n), r.rows))
	for _, c := range r.columns {
		if err := c.readRows(unsafe.Add(first, c.field.offset), n, r.size); err != nil {
			return 0, err
		}
	}
	if r.rows -= int64(n); r.rows > 0 {
		return n, nil
	}
	for _, c := range r.columns {
		if err := c.end(); err != nil {
			return 0, err
		}
	}
	return n, io.EOF
}

func (r *columnReader) close() error {
	var err error
	for _, c := range r.columns {
		c.release()
		if c.pages != nil {
			err = errors.Join(err, c.pages.Close())
		}
	}
	return err
}

// columnCursor reads one column value by value. It holds one page in memory.
type columnCursor struct {
	field *rowField
	pages parquet.Pages   // nil if the file lacks the column
	most  byte            // largest definition level: only this level stands for a value
	lent  *[]parquet.Page // receives the pages whose texts the rows share; nil if rows get copies

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

func (c *columnCursor) release() {
	switch {
	case c.page == nil:
	case c.lent != nil:
		*c.lent = append(*c.lent, c.page)
	default:
		parquet.Release(c.page)
	}
	c.page = nil
}

// nextPage moves on to the next page that has levels. The error is errShort if there is none.
func (c *columnCursor) nextPage() error {
	c.release()
	for {
		p, err := c.pages.ReadPage()
		if err == io.EOF {
			return errShort
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
		c.values, c.copy, c.copied = typedOf(c.field.column(), c.page), "", 0
		return nil
	}
	indexes := c.page.Data()
	c.indexes = indexes.Int32()
	if c.texts == nil || len(c.texts) != dictionary.Len() { // a column chunk has only one dictionary
		c.entries, c.texts = typedOf(c.field.column(), dictionary.Page()), make([]string, dictionary.Len())
	}
	return nil
}

// end returns errLong if the column has more values than its row group has rows. A damaged footer may
// count too few rows, and only the pages show the damage.
func (c *columnCursor) end() error {
	if c.pages == nil {
		return nil
	}
	err := errLong
	if c.page == nil || c.levels == c.count {
		err = cmp.Or(c.nextPage(), errLong)
	}
	if err == errShort {
		return nil
	}
	return err
}

// readRows reads the values or lists of the column for the next n rows. p is the address of the field
// in the first row, and step is the distance of rows in bytes.
func (c *columnCursor) readRows(p unsafe.Pointer, n int, step uintptr) error {
	for i, m := 0, 1; i < n && (c.pages != nil || c.field.shape == list); i += m {
		to := unsafe.Add(p, uintptr(i)*step)
		if c.field.shape == list {
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
		if m = 1; c.most == 0 && c.field.shape != pointer {
			m = min(n-i, c.count-c.levels)
		}
		if c.levels += m; c.most > 0 && c.definitions[c.levels-1] != c.most {
			continue
		}
		if c.field.shape == pointer {
			*(*unsafe.Pointer)(to) = reflect.New(c.field.elem).UnsafePointer()
			to = *(*unsafe.Pointer)(to)
		}
		c.assign(to, m, step)
	}
	return nil
}

// nextIsValue reads the next level, and reports whether it stands for a value.
func (c *columnCursor) nextIsValue() bool {
	c.levels++
	return c.most == 0 || c.definitions[c.levels-1] == c.most
}

// setList reads the list of one row. A list may continue in the next page. An empty list is read as an
// empty slice and not as nil.
func (c *columnCursor) setList(p unsafe.Pointer) error {
	c.words, c.numbers = c.words[:0], c.numbers[:0]
	for n := 0; ; n++ {
		if c.page == nil || c.levels == c.count {
			err := c.nextPage()
			if err == errShort && n > 0 {
				break
			}
			if err != nil {
				return err
			}
		}
		if n > 0 && c.repetitions[c.levels] == 0 {
			break
		}
		if !c.nextIsValue() {
			continue
		}
		if c.field.kind == reflect.String {
			c.words = append(c.words, "")
			c.assign(unsafe.Pointer(&c.words[len(c.words)-1]), 1, 0)
		} else {
			c.numbers = append(c.numbers, 0)
			c.assign(unsafe.Pointer(&c.numbers[len(c.numbers)-1]), 1, 0)
		}
	}
	if c.field.kind == reflect.String {
		*(*[]string)(p) = append(make([]string, 0, len(c.words)), c.words...)
	} else {
		*(*[]int32)(p) = append(make([]int32, 0, len(c.numbers)), c.numbers...)
	}
	return nil
}

// assign copies the next n values to the field at p and to the following fields, step bytes apart.
func (c *columnCursor) assign(p unsafe.Pointer, n int, step uintptr) {
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
		switch c.field.kind {
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
func (c *columnCursor) text(values *typed, i int) string {
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

// startGroup begins to read a row group.
func (r *reader) startGroup(g parquet.RowGroup) error {
	if r.leaves == nil && !r.boxed {
		leaves, ok := leavesOf(r.layout, columnNames(r.layout.row), r.file)
		r.leaves, r.boxed = leaves, !ok
	}
	if r.boxed {
		var err error
		r.cur, err = newBoxedReader(r.layout.row, g)
		return err
	}
	var lent *[]parquet.Page
	if r.lends {
		lent = &r.lent
	}
	r.columns = newColumnReader(r.layout, r.leaves, g, lent)
	return nil
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
