package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// NewComparer returns a writer that writes nothing. Instead, the writer compares its rows, in
// order, with the rows of the object with the given key. Comparing is much cheaper than encoding
// the rows. The writer's methods return ErrDiffers at the first difference in rows, schema, codec,
// sort order or row groups. The options determine the expected codec, sort order and row groups. The
// writer does not compare the encoding and the boundaries of pages.
//
// Close returns the description of the stored object. A caller that has this description passes it as
// known. If known is nil, Close reads the object once more to compute its digests.
func NewComparer[T any](ctx context.Context, b store.Bucket, key string, known *manifest.File, opts ...WriterOption) (*Writer[T], error) {
	w, err := newComparer(ctx, b, key, known, reflect.TypeFor[T](), newEncoder[T], optionsOf(opts))
	if err != nil {
		return nil, err
	}
	return &Writer[T]{w}, nil
}

func newComparer(ctx context.Context, b store.Bucket, key string, known *manifest.File, t reflect.Type, encoder encoderFunc, o writerOptions) (*writer, error) {
	layout, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	want, err := specimen(layout, encoder, o)
	if err != nil {
		return nil, err
	}
	r, err := openTable(ctx, b, key, t, nil)
	if err != nil {
		return nil, err
	}
	r.lends = true // the comparer keeps no rows
	s := &storedObject{reader: r, known: known, batch: newRows(t, writeRows), ends: map[int64]bool{}}
	if err := s.compareFooter(want); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &writer{stored: s, layout: layout, opt: o, pending: newRows(t, writeRows)}, nil
}

// specimen returns the footer of a file with one row of zero values.
func specimen(layout *rowLayout, encoder encoderFunc, o writerOptions) (*format.FileMetaData, error) {
	var file bytes.Buffer
	w := newWriter(&file, layout, encoder, o)
	if err := w.appended(w.slot()); err != nil {
		return nil, err
	}
	if _, err := w.Close(); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		return nil, err
	}
	return f.Metadata(), nil
}

// storedObject is the existing object that a comparer reads.
type storedObject struct {
	*reader
	known *manifest.File // the object's description, or nil
	batch unsafe.Pointer // address of a buffer of writeRows rows, into which the object's rows are read
	ends  map[int64]bool // numbers of rows after which a row group ends
}

// compareFooter compares the object's footer with want, the footer of a file with the same options,
// and sets ends.
func (s *storedObject) compareFooter(want *format.FileMetaData) error {
	m := s.file.Metadata()
	same := m.Version == want.Version && m.CreatedBy == want.CreatedBy && reflect.DeepEqual(m.Schema, want.Schema) &&
		reflect.DeepEqual(m.KeyValueMetadata, want.KeyValueMetadata) && reflect.DeepEqual(m.ColumnOrders, want.ColumnOrders)
	row, end := want.RowGroups[0], int64(0)
	for _, g := range m.RowGroups {
		same = same && reflect.DeepEqual(g.SortingColumns, row.SortingColumns) && len(g.Columns) == len(row.Columns)
		for i := 0; same && i < len(row.Columns); i++ {
			same = g.Columns[i].MetaData.Codec == row.Columns[i].MetaData.Codec
		}
		end += g.NumRows
		s.ends[end] = true
	}
	if !same {
		return fmt.Errorf("%q: its footer differs from the footer that this program writes: %w", s.key, ErrDiffers)
	}
	return nil
}

// compareRows compares n rows with the next n rows of the object. rows is the address of the first.
func (s *storedObject) compareRows(rows unsafe.Pointer, n int) error {
	m, err := s.readRows(s.batch, n)
	if err != nil && err != io.EOF {
		return err
	}
	same := m == n
	for i := 0; same && i < n; i++ {
		at := i * s.layout.size
		for f := range s.layout.fields {
			same = same && s.layout.fields[f].equal(unsafe.Add(s.batch, at), unsafe.Add(rows, at))
		}
	}
	if !same {
		return fmt.Errorf("%q has different rows: %w", s.key, ErrDiffers)
	}
	return nil
}

// finish checks that the object has no more rows, and returns the object's description.
func (s *storedObject) finish(rows int64) (l Local, err error) {
	defer func() { err = errors.Join(err, s.Close()) }()
	if rows != s.Rows() {
		return Local{}, fmt.Errorf("%q has %d rows, not %d: %w", s.key, s.Rows(), rows, ErrDiffers)
	}
	if f := s.known; f != nil {
		return Local{Rows: rows, Bytes: f.Bytes, SHA256: f.SHA256, Blocks: f.Blocks, SectionIndex: f.SectionIndex}, nil
	}
	sum := manifest.NewSum()
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(s.obj, 0, s.obj.Size()), make([]byte, 256<<10)); err != nil {
		return Local{}, fmt.Errorf("read %q: %w", s.key, err)
	}
	return LocalOf("", rows, sum), nil
}

// equal compares a field of the rows at a and b. An empty list equals nil, because files store both in
// the same way.
func (f *rowField) equal(a, b unsafe.Pointer) bool {
	a, b = unsafe.Add(a, f.offset), unsafe.Add(b, f.offset)
	switch f.shape {
	case pointer:
		a, b = *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
		return a == b || a != nil && b != nil && f.equalValue(a, b)
	case list:
		first, n := elements(a)
		second, m := elements(b)
		same := n == m
		for i := 0; same && i < n; i++ {
			same = f.equalValue(f.elementAt(first, i), f.elementAt(second, i))
		}
		return same
	}
	return f.equalValue(a, b)
}

// equalValue compares two values by their bits.
func (f *rowField) equalValue(a, b unsafe.Pointer) bool {
	switch f.size {
	case 1:
		return *(*uint8)(a) == *(*uint8)(b)
	case 2:
		return *(*uint16)(a) == *(*uint16)(b)
	case 4:
		return *(*uint32)(a) == *(*uint32)(b)
	case 8:
		return *(*uint64)(a) == *(*uint64)(b)
	}
	return *(*string)(a) == *(*string)(b)
}
