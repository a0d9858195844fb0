package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/pageindex"
	"crawlbatch.io/crawlbatch/formats/table/window"
)

// readRows is the number of rows that All and Concat read at a time.
const readRows = 64

type readerOptions struct {
	where []pageindex.Condition // conditions on row groups
	pages []pageindex.Condition // those of them that also select pages
	keep  func(text string) bool
}

// ReaderOption limits the rows that a Reader reads.
type ReaderOption func(*readerOptions)

// IntRange limits a Reader to the row groups in which an integer column may have values from lo to
// hi. The Reader returns all rows of such a row group, even rows outside the range. It also returns
// the rows of row groups without statistics, and of older files without the column.
func IntRange(column string, lo, hi int64) ReaderOption {
	return func(o *readerOptions) {
		o.where = append(o.where, pageindex.Condition{Column: column, Meets: func(least, most parquet.Value) bool {
			return intOf(most) >= lo && intOf(least) <= hi
		}})
	}
}

// StringRange is like IntRange for a string column, whose values are compared by bytes. The Reader also
// leaves out pages without such values, if it gets their bounds without a further request.
func StringRange(column, lo, hi string) ReaderOption {
	return onPages(column, func(least, most parquet.Value) bool {
		return string(most.ByteArray()) >= lo && string(least.ByteArray()) <= hi
	})
}

// StringsIn limits a Reader to the row groups and pages in which a string column may have one of the
// given values, which must be sorted. It is otherwise like StringRange.
func StringsIn(column string, sorted []string) ReaderOption {
	return onPages(column, func(least, most parquet.Value) bool {
		at, _ := slices.BinarySearch(sorted, string(least.ByteArray()))
		return at < len(sorted) && sorted[at] <= string(most.ByteArray())
	})
}

// FirstIs limits a Reader to the rows for which keep returns true. The argument of keep is the value of the
// row type's first field, a plain string. The Reader decodes the other columns only for these rows.
func FirstIs(keep func(text string) bool) ReaderOption {
	return func(o *readerOptions) { o.keep = keep }
}

func onPages(column string, meets func(least, most parquet.Value) bool) ReaderOption {
	return func(o *readerOptions) {
		c := pageindex.Condition{Column: column, Meets: meets}
		o.where, o.pages = append(o.where, c), append(o.pages, c)
	}
}

func intOf(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// Reader streams the rows of one object as values of T, in file order. It does not decode columns
// that T lacks. Columns that the file lacks are null. A Reader holds up to 4 MiB of a row group, or
// 1 MiB for each column, and a decoded page of each column. Only one goroutine may use a Reader. The
// caller must close the Reader.
type Reader[T any] struct{ *reader }

// Open opens the object with the given key. If ctx ends before Close, reads of the object may fail.
func Open[T any](ctx context.Context, b store.Bucket, key string, opts ...ReaderOption) (*Reader[T], error) {
	r, err := openTable(ctx, b, key, reflect.TypeFor[T](), opts)
	if err != nil {
		return nil, err
	}
	return &Reader[T]{r}, nil
}

// Read implements Stream. The rows share no memory with the Reader.
func (r *Reader[T]) Read(batch []T) (int, error) {
	return r.readRows(unsafe.Pointer(unsafe.SliceData(batch)), len(batch))
}

// All yields the remaining rows. An error ends the sequence.
func (r *Reader[T]) All(ctx context.Context) iter.Seq2[T, error] { return All(ctx, r) }

// reader is a Reader of rows of any type.
type reader struct {
	key    string
	obj    store.Object
	win    *window.Window
	file   *parquet.File
	layout *rowLayout
	wanted map[string]bool          // names of the columns of the row type
	groups []int                    // row groups to read
	next   int                      // index into groups
	pages  []pageindex.Condition    // conditions on the pages to read
	keep   func(string) bool        // selects rows (see FirstIs); nil: all rows
	fill   func(row unsafe.Pointer) // sets columns that the file lacks; nil: they are null

	leaves  []*parquet.Column // columns of the file for the fields of the row type (see leavesOf)
	columns *columnReader     // reader of the current row group, unless boxed
	lends   bool              // the texts of rows lie in pages, and are valid only until the next readRows
	lent    []parquet.Page    // pages whose texts are in use: those of the last rows, or those that keep sees
	boxed   bool              // only the library can convert the file's columns
	cur     *boxedReader      // reader of the current row group, if boxed
}

func openTable(ctx context.Context, b store.Bucket, key string, t reflect.Type, opts []ReaderOption) (*reader, error) {
	obj, err := b.Open(ctx, key)
	if err != nil {
		return nil, err // the error already names the key
	}
	return readerOf(obj, key, t, window.WholeBytes, opts)
}

// readerOf returns a reader of an open object. If the object has at most whole bytes, one request
// reads it. If readerOf fails, it closes the object.
func readerOf(obj store.Object, key string, t reflect.Type, whole int64, opts []ReaderOption) (*reader, error) {
	r, err := newReader(obj, key, t, whole, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", key, err), obj.Close())
	}
	return r, nil
}

func newReader(obj store.Object, key string, t reflect.Type, whole int64, opts []ReaderOption) (r *reader, err error) {
	layout, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	var o readerOptions
	for _, opt := range opts {
		opt(&o)
	}
	r = &reader{key: key, obj: obj, layout: layout, pages: o.pages, keep: o.keep}
	if f := layout.fields[0]; r.keep != nil && (f.kind != reflect.String || f.shape != plain) {
		return nil, fmt.Errorf("field %s of %v is not a string, but FirstIs selects by it", f.name, t)
	}
	if r.win, err = window.Open(obj, whole, len(o.pages) > 0 || o.keep != nil); err != nil {
		return nil, err
	}
	defer r.win.CatchDamage(&err)
	// Reading the page index and the Bloom filters here would cost requests (see startGroup).
	r.file, err = parquet.OpenFile(r.win, r.win.Size(), parquet.SkipMagicBytes(true),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(16<<10))
	if err != nil {
		return nil, err
	}
	r.wanted = map[string]bool{}
	for _, path := range schemaOf(t).Columns() {
		r.wanted[path[0]] = true
	}
	for i, g := range r.file.RowGroups() {
		read := true
		for _, c := range o.where {
			read = read && c.InBounds(g)
		}
		if read {
			r.groups = append(r.groups, i)
		}
	}
	return r, nil
}

// extents returns the extents of the wanted columns of a row group.
func (r *reader) extents(group int) []window.Extent {
	var out []window.Extent
	columns := r.file.Metadata().RowGroups[group].Columns
	for i := range columns {
		if m := &columns[i].MetaData; len(m.PathInSchema) > 0 && r.wanted[m.PathInSchema[0]] {
			out = append(out, window.ExtentOf(m.DataPageOffset, m.DictionaryPageOffset, m.TotalCompressedSize))
		}
	}
	return out
}

// Noted returns the value that Writer.Note stored under a key, and whether there is one.
func (r *reader) Noted(key string) (string, bool) { return r.file.Lookup(key) }

// Rows returns the number of rows in the object, including those that options leave out.
func (r *reader) Rows() int64 { return r.file.NumRows() }

// readRows implements rowSource.
func (r *reader) readRows(first unsafe.Pointer, n int) (done int, err error) {
	r.releaseLent()
	defer func() {
		for i := 0; i < done && r.fill != nil; i++ {
			r.fill(unsafe.Add(first, i*r.layout.size))
		}
	}()
	for done < n {
		m, err := r.read(unsafe.Add(first, done*r.layout.size), n-done)
		done += m
		if err == io.EOF {
			return done, io.EOF
		}
		if err != nil {
			return done, fmt.Errorf("read %q: %w", r.key, err)
		}
	}
	return done, nil
}

func (r *reader) releaseLent() {
	for _, p := range r.lent {
		parquet.Release(p)
	}
	r.lent = r.lent[:0]
}

// read stores up to most rows from the address first on.
func (r *reader) read(first unsafe.Pointer, most int) (n int, err error) {
	defer r.win.CatchDamage(&err)
	for r.cur == nil && r.columns == nil {
		if r.next == len(r.groups) {
			return 0, io.EOF
		}
		i := r.groups[r.next]
		r.next++
		if err := r.win.Enter(r.extents(i)); err != nil {
			return 0, err
		}
		if err := r.startGroup(i); err != nil {
			return 0, err
		}
	}
	batch := reflect.SliceAt(r.layout.row, first, most)
	batch.Clear()
	if r.columns != nil {
		if r.keep != nil { // the rows that were read have copies of their texts
			r.releaseLent()
		}
		if n, err = r.columns.read(first, most); err == io.EOF {
			err = r.columns.close()
			r.columns = nil
		}
		return n, err
	}
	n, err = r.cur.read(batch)
	if err == io.EOF || (n == 0 && err == nil) {
		err = r.cur.rows.Close()
		r.cur = nil
	}
	if r.keep == nil {
		return n, err
	}
	kept := 0
	for i := range n {
		if row := batch.Index(i); r.keep(*(*string)(unsafe.Add(row.Addr().UnsafePointer(), r.layout.fields[0].offset))) {
			batch.Index(kept).Set(row)
			kept++
		}
	}
	batch.Slice(kept, n).Clear()
	return kept, err
}

// Close closes the object.
func (r *reader) Close() error {
	var err error
	if r.cur != nil {
		err = r.cur.rows.Close()
		r.cur = nil
	}
	if r.columns != nil {
		err = errors.Join(err, r.columns.close())
		r.columns = nil
	}
	r.groups = nil
	if err = errors.Join(err, r.obj.Close()); err != nil {
		return fmt.Errorf("close %q: %w", r.key, err)
	}
	return nil
}
