package table

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// The default settings of a Writer.
const (
	DefaultRowGroupRows  = 128 << 10 // most rows of a row group, the unit of parallel work in DuckDB and Athena
	DefaultRowGroupBytes = 32 << 20  // memory of a row group at which it ends, in bytes: compressed pages and page buffers
	defaultPageBytes     = 128 << 10 // size of a page's encoded values before compression, in bytes
	packedPageBytes      = 1 << 20   // the same in a file with the option Packed
	writeRows            = 64        // largest number of rows that are passed to the encoder at a time
	writeBytes           = 1 << 20   // size of the texts of pending rows at which they are passed to the encoder, in bytes
	writeBuffer          = 256 << 10 // size of a write to the file, in bytes
)

// The compression codecs. A codec has no state except its pool of encoders.
var (
	zstdCodec   compress.Codec = &zstd.Codec{Level: zstd.SpeedDefault}
	packedCodec compress.Codec = &zstd.Codec{Level: zstd.SpeedFastest}
	snappyCodec compress.Codec = &snappy.Codec{}
)

func optionsOf(opts []WriterOption) writerOptions {
	o := writerOptions{codec: zstdCodec, rowGroupRows: DefaultRowGroupRows, rowGroupBytes: DefaultRowGroupBytes,
		pageBytes: defaultPageBytes, boundBytes: parquet.DefaultColumnIndexSizeLimit}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

type writerOptions struct {
	codec         compress.Codec
	rowGroupRows  int64
	rowGroupBytes int64
	pageBytes     int
	boundBytes    int // length of the lowest and highest values in the page index
	sorted        []parquet.SortingColumn
	bloom         []string // columns with a Bloom filter in each row group
	working       bool     // the file is a working file, which only crawlbatch reads
}

// WriterOption changes how a Writer lays out its file.
type WriterOption func(*writerOptions)

// Fast is the option for working files. They are read only once or twice, and only by crawlbatch, so
// they are compressed with Snappy instead of Zstandard and have smaller encodings.
func Fast() WriterOption {
	return func(o *writerOptions) { o.codec, o.working = snappyCodec, true }
}

// Packed is the option for working files whose rows hold encoded rows that repeat much of earlier ones
// (schema.LinkSet): pages are large enough to find it again, and fast Zstandard compresses them.
func Packed() WriterOption {
	return func(o *writerOptions) { o.codec, o.working, o.pageBytes = packedCodec, true, packedPageBytes }
}

// SortedBy is the option that records in the file that its rows are in ascending order of the given
// columns. The Writer does not sort the rows (see Sorter).
func SortedBy(columns ...string) WriterOption {
	return func(o *writerOptions) {
		o.sorted = o.sorted[:0]
		for _, c := range columns {
			o.sorted = append(o.sorted, parquet.Ascending(c))
		}
	}
}

// The settings of files for lookups. DuckDB reads whole row groups, so a query for one value reads this
// much of the selected columns. Trino and Spark read only the pages that the page index leaves.
const (
	lookupRowGroupBytes = 4 << 20
	lookupPageBytes     = 32 << 10
	lookupBoundBytes    = 256 // length of the lowest and highest values in the page index; URLs differ late
)

// Lookup is the option for files that are queried for single values of the given columns. Each row
// group has a Bloom filter of these columns, by which DuckDB, Trino and Spark skip row groups without a
// wanted value, and row groups and pages are smaller than in other files. The filters take 10 bits for
// each value; about 1 % of the answers are false positives (a split-block filter, Parquet's
// BloomFilter.md).
func Lookup(columns ...string) WriterOption {
	return func(o *writerOptions) {
		o.bloom, o.rowGroupBytes, o.pageBytes, o.boundBytes = columns, lookupRowGroupBytes, lookupPageBytes, lookupBoundBytes
	}
}

// Local describes a finished file in local scratch space.
type Local struct {
	Path         string // path of the file, empty if the writer did not create the file
	Rows         int64
	Bytes        int64
	SHA256       string // hex
	Blocks       string // digests of the file's blocks, as in manifest.File
	SectionIndex string // as in manifest.File
	Linkable     bool   // whether store.CreateFile made the file, so a store may link to it
}

// LocalOf returns the description of the finished file at path, whose size and digests are in s.
func LocalOf(path string, rows int64, s *manifest.Sum) Local {
	f := s.File()
	return Local{Path: path, Rows: rows, Bytes: f.Bytes, SHA256: f.SHA256, Blocks: f.Blocks, SectionIndex: f.SectionIndex}
}

// File returns the entry of a manifest for the file when it is stored under the given key.
func (l *Local) File(dataset, key string) manifest.File {
	return manifest.File{Dataset: dataset, Key: key, Bytes: l.Bytes, Rows: l.Rows, SHA256: l.SHA256, Blocks: l.Blocks, SectionIndex: l.SectionIndex}
}

// Writer writes rows of T as one Parquet file. Only one goroutine may use a Writer. The caller ends
// a Writer with Close or Abort. Only Commit puts the file into the store.
type Writer[T any] struct{ *writer }

// writer is a Writer of rows of any type.
type writer struct {
	encoder
	out    *summingWriter
	buf    *bufio.Writer
	file   *os.File // file to write, nil for NewWriterTo
	layout *rowLayout
	stored *storedObject // set if the writer compares (NewComparer); encoder, out and buf are then unset

	nullable nullable // fields whose nulls need rows to be written in parts
	opt      writerOptions
	pending  unsafe.Pointer // address of the rows not yet passed to the encoder, with room for writeRows
	n        int            // number of pending rows
	text     int            // size of the texts of pending rows, in bytes
	group    int64          // number of rows in the current row group
	rows     int64          // number of rows in the file
	base     int64          // size of the file at the start of the row group, in bytes
	err      error
}

// encoder is a parquet.GenericWriter of rows of any type.
type encoder struct {
	encodedFile
	encode func(first unsafe.Pointer, n int) error // encodes n rows
}

// encodedFile has the methods of a parquet.GenericWriter that do not depend on the type of rows.
type encodedFile interface {
	SetKeyValueMetadata(key, value string)
	Size() int64
	Flush() error
	Close() error
}

type encoderFunc func(dst io.Writer, opts []parquet.WriterOption) encoder

// newEncoder is the encoderFunc for rows of T.
func newEncoder[T any](dst io.Writer, opts []parquet.WriterOption) encoder {
	pq := parquet.NewGenericWriter[T](dst, opts...)
	return encoder{pq, func(first unsafe.Pointer, n int) error {
		_, err := pq.Write(unsafe.Slice((*T)(first), n))
		return err
	}}
}

// NewWriter creates the scratch file path and returns a writer to it.
func NewWriter[T any](path string, opts ...WriterOption) (*Writer[T], error) {
	w, err := createFile(path, reflect.TypeFor[T](), newEncoder[T], optionsOf(opts))
	if err != nil {
		return nil, err
	}
	return &Writer[T]{w}, nil
}

func createFile(path string, t reflect.Type, encoder encoderFunc, o writerOptions) (*writer, error) {
	layout, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	f, err := store.CreateFile(path)
	if err != nil {
		return nil, err
	}
	w := newWriter(f, layout, encoder, o)
	w.file = f
	return w, nil
}

// NewWriterTo is like NewWriter but writes to dst. Close does not close dst.
func NewWriterTo[T any](dst io.Writer, opts ...WriterOption) (*Writer[T], error) {
	layout, err := columnsOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return &Writer[T]{newWriter(dst, layout, newEncoder[T], optionsOf(opts))}, nil
}

// Write appends copies of rows. After an error, the caller can only call Abort.
func (w *Writer[T]) Write(rows []T) error {
	for i := range rows {
		if err := w.Append(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// Append appends a copy of one row.
func (w *Writer[T]) Append(row *T) error {
	if w.err != nil {
		return w.err
	}
	slot := w.slot()
	*(*T)(slot) = *row
	return w.appended(slot)
}

func newWriter(dst io.Writer, layout *rowLayout, encoder encoderFunc, o writerOptions) *writer {
	out := &summingWriter{dst, manifest.NewSum()}
	return newSection(out, bufio.NewWriterSize(out, writeBuffer), layout, encoder, o)
}

// newSection returns a writer that writes to out through the buffer buf.
func newSection(out *summingWriter, buf *bufio.Writer, layout *rowLayout, encoder encoderFunc, o writerOptions) *writer {
	pqOptions := []parquet.WriterOption{
		// CreatedBy is the same for every build, so that the same rows give the same bytes.
		parquet.CreatedBy("crawlbatch", "1", "1"),
		parquet.Compression(o.codec),
		parquet.PageBufferSize(o.pageBytes),
		parquet.ColumnIndexSizeLimit(func([]string) int { return o.boundBytes }),
		parquet.WriteBufferSize(0),
		parquet.DictionaryMaxBytes(o.dictionaryBytes()),
		parquet.SortingWriterConfig(parquet.SortingColumns(o.sorted...)),
	}
	var filters []parquet.BloomFilterColumn
	for _, c := range o.bloom {
		filters = append(filters, parquet.SplitBlockFilter(10, c))
	}
	pqOptions = append(pqOptions, parquet.BloomFilters(filters...))
	columns := o.fields(layout.row)
	for _, c := range columns {
		pqOptions = append(pqOptions, c.(parquet.WriterOption))
	}
	pqOptions = append(pqOptions, o.pages()...)
	w := &writer{out: out, buf: buf, layout: layout, opt: o, pending: newRows(layout.row, writeRows)}
	w.encoder = encoder(buf, append(pqOptions, withoutBounds(schemaOf(layout.row, columns...))...))
	if !o.working { // in working files, null and zero are the same
		w.nullable = nullableOf(layout)
	}
	return w
}

// bulky lists the columns whose values are texts of whole documents. The footer omits the lowest and
// highest values of these columns, because they are long and do not help queries.
var bulky = []string{"main", "full"}

// withoutBounds returns options that omit the lowest and highest values from page headers, where no
// program reads them and long values would be uncompressed. For bulky columns, the options also omit
// these values from the footer.
func withoutBounds(s *parquet.Schema) (opts []parquet.WriterOption) {
	for _, path := range s.Columns() {
		opts = append(opts, parquet.SkipPageStatistics(path...))
		if slices.Contains(bulky, path[0]) {
			opts = append(opts, parquet.SkipPageBounds(path...))
		}
	}
	return opts
}

// Note adds a key and a value to the file's footer. The caller must call Note before Close.
func (w *writer) Note(key, value string) { w.encoder.SetKeyValueMetadata(key, value) }

// slot returns the place for the next row.
func (w *writer) slot() unsafe.Pointer { return unsafe.Add(w.pending, w.n*w.layout.size) }

// appended counts the row that the caller has stored in the slot.
func (w *writer) appended(row unsafe.Pointer) error {
	w.n++
	w.text += w.layout.textBytes(row)
	w.group++
	w.rows++
	if w.n >= writeRows || w.text >= writeBytes {
		w.encode()
	}
	if w.stored != nil {
		return w.err // the stored object decides where row groups end
	}
	if w.err == nil && (w.group >= w.opt.rowGroupRows || (w.n == 0 && w.Size()-w.base >= w.opt.rowGroupBytes)) {
		return w.EndRowGroup()
	}
	return w.err
}

// EndRowGroup ends the current row group, so that a reader can skip it. If the row group has no rows,
// EndRowGroup does nothing.
func (w *writer) EndRowGroup() error {
	w.encode()
	if w.err != nil || w.group == 0 {
		return w.err
	}
	if w.stored != nil {
		if !w.stored.ends[w.rows] {
			w.err = fmt.Errorf("%q: no row group ends after %d rows: %w", w.stored.key, w.rows, ErrDiffers)
		}
		w.group = 0
		return w.err
	}
	if err := w.Flush(); err != nil {
		w.err = fmt.Errorf("write row group: %w", err)
		return w.err
	}
	w.group, w.base = 0, w.Size()
	return nil
}

func (w *writer) encode() {
	if w.err != nil || w.n == 0 {
		return
	}
	if err := w.writeParts(w.pending, w.n); err != nil {
		w.err = fmt.Errorf("write rows: %w", err)
	}
	reflect.SliceAt(w.layout.row, w.pending, w.n).Clear()
	w.n, w.text = 0, 0
}

// writeParts passes rows to parquet-go in parts, so that parquet-go writes nulls correctly (see
// nullable).
func (w *writer) writeParts(first unsafe.Pointer, n int) error {
	if w.stored != nil {
		return w.stored.compareRows(first, n)
	}
	if cut := w.nullable.cut(w.layout, first, n); cut > 0 {
		if err := w.writeParts(first, cut); err != nil {
			return err
		}
		return w.writeParts(unsafe.Add(first, cut*w.layout.size), n-cut)
	}
	return w.encoder.encode(first, n)
}

// Close completes the file. A file without rows is valid and has all columns.
func (w *writer) Close() (Local, error) {
	if w.stored != nil {
		w.encode()
		if w.err == nil {
			l, err := w.stored.finish(w.rows)
			w.err = errClosed
			return l, err
		}
	}
	if err := w.complete(); err != nil {
		w.Abort()
		return Local{}, err
	}
	l := LocalOf("", w.rows, w.out.sum)
	if w.file != nil {
		l.Path, l.Linkable = w.file.Name(), true
		if err := w.file.Close(); err != nil {
			return Local{}, errors.Join(fmt.Errorf("close scratch file: %w", err), os.Remove(l.Path))
		}
		w.file = nil
	}
	w.err = errClosed
	return l, nil
}

// complete writes all rows and the footer.
func (w *writer) complete() error {
	w.encode()
	if w.err != nil {
		return w.err
	}
	if err := errors.Join(w.encoder.Close(), w.buf.Flush()); err != nil {
		w.err = fmt.Errorf("write footer: %w", err)
	}
	return w.err
}

var errClosed = errors.New("table writer is closed")

// Abort removes the file. Abort after Close does nothing, so callers can defer Abort.
func (w *writer) Abort() {
	if w.stored != nil && w.err != errClosed {
		_ = w.stored.Close() // the file was only read
	}
	if w.file != nil {
		// Errors do not matter, because a remaining file is removed with the scratch directory.
		_ = w.file.Close()
		_ = os.Remove(w.file.Name())
		w.file = nil
	}
	w.err = errClosed
}

// summingWriter is a writer that also computes the size and digests of the written bytes.
type summingWriter struct {
	w   io.Writer
	sum *manifest.Sum
}

func (c *summingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.sum.Write(p[:n]) //nolint:errcheck // never fails
	return n, err
}
