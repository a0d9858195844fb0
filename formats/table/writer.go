package table

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"reflect"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// The defaults of a writer.
const (
	DefaultRowGroupRows  = 128 << 10 // DuckDB's and Athena's unit of parallel work
	DefaultRowGroupBytes = 32 << 20  // compressed pages and page buffers that are held in memory
	defaultPageBytes     = 128 << 10 // encoded values per page, before compression
	dictionaryBytes      = 1 << 20   // a column with a larger dictionary is written plain
	writeRows            = 64        // rows handed to the encoder at a time
	writeBytes           = 1 << 20   // limit for the text of these rows
)

// The codecs hold pools of encoders and have no other state.
var (
	zstdCodec   compress.Codec = &zstd.Codec{Level: zstd.SpeedDefault}
	snappyCodec compress.Codec = &snappy.Codec{}
)

type writerOptions struct {
	codec         compress.Codec
	rowGroupRows  int64
	rowGroupBytes int64
	sorted        []parquet.SortingColumn
	format        int  // schema.FormatVersion of the file
	working       bool // only this program reads it
}

// WriterOption changes how a Writer lays out its file.
type WriterOption func(*writerOptions)

// Fast is for working files, which only this program reads, once or twice. It compresses
// with Snappy instead of Zstandard and uses the encodings of format 1.
func Fast() WriterOption {
	return func(o *writerOptions) { o.codec, o.working = snappyCodec, true }
}

// SortedBy records in the file that its rows are in ascending order of these columns. The
// writer does not sort; see Sorter.
func SortedBy(columns ...string) WriterOption {
	return func(o *writerOptions) {
		o.sorted = o.sorted[:0]
		for _, c := range columns {
			o.sorted = append(o.sorted, parquet.Ascending(c))
		}
	}
}

// Local describes a finished file in local scratch space.
type Local struct {
	Path   string // empty if the writer did not create the file
	Rows   int64
	Bytes  int64
	SHA256 string // hex
}

// Writer writes rows of T as one Parquet file. Only one goroutine may use it. End it with
// Close or Abort. Nothing is in the store before Commit.
type Writer[T any] struct {
	pq     *parquet.GenericWriter[T]
	out    *countingWriter
	buf    *bufio.Writer
	file   *os.File // nil for NewWriterTo
	layout *rowLayout

	nullable nullable // nil if the library may write zeros for nulls
	zeroless zeroless // nil if the format is the newest
	opt      writerOptions
	pending  []T // rows not yet handed to the encoder
	text     int // bytes of text in pending
	group    int64
	rows     int64
	base     int64 // parquet size at the start of the row group
	err      error
}

// NewWriter creates the scratch file path and returns a writer to it.
func NewWriter[T any](path string, opts ...WriterOption) (*Writer[T], error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	w, err := NewWriterTo[T](f, opts...)
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	w.file = f
	return w, nil
}

// NewWriterTo is like NewWriter for any destination. Close does not close dst.
func NewWriterTo[T any](dst io.Writer, opts ...WriterOption) (*Writer[T], error) {
	o := writerOptions{codec: zstdCodec, rowGroupRows: DefaultRowGroupRows, rowGroupBytes: DefaultRowGroupBytes, format: schema.FormatVersion}
	for _, opt := range opts {
		opt(&o)
	}
	layout, err := columnsOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	out := &countingWriter{w: dst, hash: sha256.New()}
	buf := bufio.NewWriterSize(out, 256<<10)
	pqOptions := []parquet.WriterOption{
		// This value is the same for every build, so that the same rows give the same
		// bytes.
		parquet.CreatedBy("crawlbatch", "1", "1"),
		parquet.Compression(o.codec),
		parquet.PageBufferSize(defaultPageBytes),
		parquet.WriteBufferSize(0),
		parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.SortingWriterConfig(parquet.SortingColumns(o.sorted...)),
	}
	columns := fields[T](&o)
	for _, c := range columns {
		pqOptions = append(pqOptions, c.(parquet.WriterOption))
	}
	pqOptions = append(pqOptions, o.pages()...)
	pq := parquet.NewGenericWriter[T](buf, append(pqOptions, withoutBounds[T](columns)...)...)
	w := &Writer[T]{pq: pq, out: out, buf: buf, layout: layout, opt: o, pending: make([]T, 0, writeRows)}
	if o.portable() {
		w.nullable = nullableOf(reflect.TypeFor[T]())
	} else {
		w.zeroless = zerolessOf(reflect.TypeFor[T](), o.format)
	}
	return w, nil
}

// bulky lists the columns that hold whole documents. Their lowest and highest values help
// no query, and each row group would copy them in full into the footer.
var bulky = []string{"main", "full"}

// withoutBounds omits the lowest and highest values from page headers, where no program
// reads them and each page would hold a long value twice, uncompressed. For bulky columns
// it also omits them from the footer.
func withoutBounds[T any](columns []parquet.SchemaOption) (opts []parquet.WriterOption) {
	for _, path := range parquet.SchemaOf(new(T), columns...).Columns() {
		opts = append(opts, parquet.SkipPageStatistics(path...))
		if slices.Contains(bulky, path[0]) {
			opts = append(opts, parquet.SkipPageBounds(path...))
		}
	}
	return opts
}

// Note adds a key and a value to the file's footer. Call it before Close.
func (w *Writer[T]) Note(key, value string) { w.pq.SetKeyValueMetadata(key, value) }

// Write appends rows. It keeps no reference to the slice. After an error the caller can
// only call Abort.
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
	w.pending = append(w.pending, *row)
	w.text += w.layout.textBytes(unsafe.Pointer(row))
	w.group++
	w.rows++
	if len(w.pending) >= writeRows || w.text >= writeBytes {
		w.encode()
	}
	if w.err == nil && (w.group >= w.opt.rowGroupRows || (len(w.pending) == 0 && w.pq.Size()-w.base >= w.opt.rowGroupBytes)) {
		return w.EndRowGroup()
	}
	return w.err
}

// EndRowGroup ends the row group, so that a reader can read later rows without the earlier
// ones. It does nothing if the row group has no rows yet.
func (w *Writer[T]) EndRowGroup() error {
	w.encode()
	if w.err != nil || w.group == 0 {
		return w.err
	}
	if err := w.pq.Flush(); err != nil {
		w.err = fmt.Errorf("write row group: %w", err)
		return w.err
	}
	w.group, w.base = 0, w.pq.Size()
	return nil
}

func (w *Writer[T]) encode() {
	if w.err != nil || len(w.pending) == 0 {
		return
	}
	w.zeroless.write(reflect.ValueOf(w.pending))
	if err := w.hand(w.pending); err != nil {
		w.err = fmt.Errorf("write rows: %w", err)
	}
	clear(w.pending)
	w.pending, w.text = w.pending[:0], 0
}

// hand passes rows to the library in parts, so that the library writes their nulls
// correctly.
func (w *Writer[T]) hand(rows []T) error {
	if cut := w.nullable.misread(reflect.ValueOf(rows)); cut > 0 {
		if err := w.hand(rows[:cut]); err != nil {
			return err
		}
		return w.hand(rows[cut:])
	}
	_, err := w.pq.Write(rows)
	return err
}

// Close ends the file. A file without rows is valid and has its columns.
func (w *Writer[T]) Close() (Local, error) {
	w.encode()
	if w.err == nil {
		if err := w.pq.Close(); err != nil {
			w.err = fmt.Errorf("write footer: %w", err)
		} else if err := w.buf.Flush(); err != nil {
			w.err = fmt.Errorf("write footer: %w", err)
		}
	}
	if w.err != nil {
		err := w.err
		w.Abort()
		return Local{}, err
	}
	l := Local{Rows: w.rows, Bytes: w.out.n, SHA256: hex.EncodeToString(w.out.hash.Sum(nil))}
	if w.file != nil {
		l.Path = w.file.Name()
		if err := w.file.Close(); err != nil {
			return Local{}, errors.Join(fmt.Errorf("close scratch file: %w", err), os.Remove(l.Path))
		}
		w.file = nil
	}
	w.err = errClosed
	return l, nil
}

var errClosed = errors.New("table writer is closed")

// Abort removes the file. After Close it does nothing, so it can be deferred.
func (w *Writer[T]) Abort() {
	if w.file != nil {
		// If this fails, the file goes away with the scratch directory.
		_ = w.file.Close()
		_ = os.Remove(w.file.Name())
		w.file = nil
	}
	w.err = errClosed
}

// countingWriter counts and hashes the bytes that reach the destination.
type countingWriter struct {
	w    io.Writer
	hash hash.Hash
	n    int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.hash.Write(p[:n])
	c.n += int64(n)
	return n, err
}
