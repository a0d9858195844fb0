package table

import (
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Union handles files with the rows of many files of a dataset, and with further columns that say where
// each row comes from. The files may have different formats since 2. A column that the file of a row
// lacks is null in the union, also if the column of a single file cannot be null.
type Union struct {
	layout *rowLayout
	added  []int // indexes of the further columns among the fields of a row
	sorted []int // indexes of the fields that determine the order of rows
	names  []string
}

// Row is a row of a union. It is valid until the next row is read.
type Row struct{ at unsafe.Pointer }

// Placed is a file whose rows belong to a union, and the values of the further columns: a struct of the
// type that NewUnion got.
type Placed struct {
	Key   string
	Added any
}

// NewUnion returns the union of files with rows of type row. The fields of the struct type added are the
// further columns, and sorted names the columns by which the rows of each file are sorted: plain strings
// and integers.
func NewUnion(row, added reflect.Type, sorted ...string) (*Union, error) {
	var all []reflect.StructField
	for _, f := range slices.Concat(reflect.VisibleFields(row), reflect.VisibleFields(added)) {
		if f.Anonymous {
			continue // VisibleFields lists its fields too
		}
		f.Index, f.Offset = nil, 0
		if tag := f.Tag.Get("parquet"); schema.Since(f) > 2 && f.Type.Kind() != reflect.Pointer && !strings.Contains(tag, ",optional") {
			if k := f.Type.Kind(); k == reflect.Slice || k == reflect.String {
				return nil, fmt.Errorf("column %s of %v cannot be null, and files before format %d lack it", f.Name, row, schema.Since(f))
			}
			f.Type = reflect.PointerTo(f.Type)
			f.Tag = reflect.StructTag(fmt.Sprintf(`parquet:"%s,optional" since:"%d"`, tag, schema.Since(f)))
		}
		all = append(all, f)
	}
	layout, err := columnsOf(reflect.StructOf(all))
	if err != nil {
		return nil, err
	}
	u := &Union{layout: layout, names: sorted}
	for i := range reflect.VisibleFields(added) {
		u.added = append(u.added, len(all)-added.NumField()+i)
	}
	names := columnNames(layout.row)
	for _, name := range sorted {
		i := slices.Index(names, name)
		if i < 0 || layout.fields[i].shape != plain {
			return nil, fmt.Errorf("rows of %v cannot be sorted by %q", row, name)
		}
		u.sorted = append(u.sorted, i)
	}
	return u, nil
}

func (u *Union) compare(a, b unsafe.Pointer) int {
	for _, i := range u.sorted {
		if c := u.layout.fields[i].compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// compare compares the values of a field in two rows.
func (f *rowField) compare(a, b unsafe.Pointer) int {
	p, q := unsafe.Add(a, f.offset), unsafe.Add(b, f.offset)
	if f.kind == reflect.String {
		return strings.Compare(*(*string)(p), *(*string)(q))
	}
	x, y := reflect.NewAt(f.elem, p).Elem().Int(), reflect.NewAt(f.elem, q).Elem().Int()
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// Merge yields the rows of files as one sorted sequence. Equal rows keep the order of their files. See
// MergeFiles for its memory, open files and scratch.
func (u *Union) Merge(ctx context.Context, b store.Bucket, scratch string, files []Placed) iter.Seq2[Row, error] {
	m := merging{u.layout.row, scratch, u.compare, func(i int) (*reader, error) {
		r, err := openTable(ctx, b, files[i].Key, u.layout.row, nil)
		if err != nil {
			return nil, err
		}
		values := reflect.ValueOf(files[i].Added)
		r.fill = func(row unsafe.Pointer) {
			for i, index := range u.added {
				f := &u.layout.fields[index]
				reflect.NewAt(f.elem, unsafe.Add(row, f.offset)).Elem().Set(values.Field(i))
			}
		}
		return r, nil
	}}
	return untypedRows(func(yield func(row unsafe.Pointer) bool) error { return m.inPasses(ctx, len(files), yield) })
}

// Concat yields the rows of files of the union one after another.
func (u *Union) Concat(ctx context.Context, b store.Bucket, keys []string) iter.Seq2[Row, error] {
	return untypedRows(func(yield func(row unsafe.Pointer) bool) error {
		return concat(ctx, b, keys, u.layout.row, nil, yield)
	})
}

func untypedRows(each func(yield func(row unsafe.Pointer) bool) error) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		stopped := false
		err := each(func(row unsafe.Pointer) bool {
			stopped = !yield(Row{row}, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(Row{}, err)
		}
	}
}

// Encode appends the encoded row to buf, as a Codec does.
func (u *Union) Encode(buf []byte, row Row) []byte { return u.layout.encode(buf, row.at) }

// UnionWriter writes rows of a union as one file of the newest format.
type UnionWriter struct{ *writer }

// NewWriter creates the scratch file path and returns a writer to it (see Writer).
func (u *Union) NewWriter(path string, opts ...WriterOption) (*UnionWriter, error) {
	w, err := createFile(path, u.layout.row, u.encoder, optionsOf(append(opts, SortedBy(u.names...))))
	if err != nil {
		return nil, err
	}
	w.nullable = nil // the encoder does not have parquet-go's bug
	return &UnionWriter{w}, nil
}

// Append appends a copy of one row.
func (w *UnionWriter) Append(row Row) error {
	if w.err != nil {
		return w.err
	}
	slot := w.slot()
	reflect.NewAt(w.layout.row, slot).Elem().Set(reflect.NewAt(w.layout.row, row.at).Elem())
	return w.appended(slot)
}

// Finish is Finish for a UnionWriter.
func (w *UnionWriter) Finish(ctx context.Context, b store.Bucket, dataset, key string) (manifest.File, error) {
	return finish(ctx, w.writer, b, dataset, key)
}

// encoder is the encoderFunc for rows of a type that exists only at run time, for which parquet-go has no
// encoder. It passes the values of each column to the column's writer.
func (u *Union) encoder(dst io.Writer, opts []parquet.WriterOption) encoder {
	config := parquet.DefaultWriterConfig()
	config.Apply(opts...)
	var tags []parquet.SchemaOption
	for i := range config.SchemaConfig.StructTags {
		tags = append(tags, &config.SchemaConfig.StructTags[i])
	}
	s := schemaOf(u.layout.row, tags...)
	pq := parquet.NewWriter(dst, append(opts, s)...)
	most := make([]int, len(u.layout.fields)) // definition level of a value of each column
	for i, path := range s.Columns() {
		leaf, _ := s.Lookup(path...)
		most[i] = leaf.MaxDefinitionLevel
	}
	var values []parquet.Value
	return encoder{pq, func(first unsafe.Pointer, n int) error {
		for i, w := range pq.ColumnWriters() {
			values = values[:0]
			for row := range n {
				values = u.layout.fields[i].appendValues(values, unsafe.Add(first, row*u.layout.size), i, most[i])
			}
			if _, err := w.WriteRowValues(values); err != nil {
				return err
			}
		}
		return nil
	}}
}

// appendValues appends the values of the field of a row, which is in the given column. most is the
// definition level of a value.
func (f *rowField) appendValues(values []parquet.Value, row unsafe.Pointer, column, most int) []parquet.Value {
	p := unsafe.Add(row, f.offset)
	switch {
	case f.shape == pointer:
		if p = *(*unsafe.Pointer)(p); p == nil {
			return append(values, parquet.Value{}.Level(0, 0, column))
		}
	case f.shape == list && f.kind != reflect.Uint8:
		first, length := elements(p)
		if length == 0 {
			return append(values, parquet.Value{}.Level(0, max(most-1, 0), column))
		}
		for i := range length {
			values = append(values, f.value(f.elementAt(first, i)).Level(min(i, 1), most, column))
		}
		return values
	case most > 0 && reflect.NewAt(f.elem, p).Elem().IsZero(): // optional: the zero value is null
		return append(values, parquet.Value{}.Level(0, 0, column))
	}
	return append(values, f.value(p).Level(0, most, column))
}

// value returns the value at p, of the field's kind. It shares the memory of a text.
func (f *rowField) value(p unsafe.Pointer) parquet.Value {
	switch f.kind {
	case reflect.String:
		s := *(*string)(p)
		return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(s), len(s)))
	case reflect.Uint8:
		return parquet.ByteArrayValue(*(*[]byte)(p))
	case reflect.Bool:
		return parquet.BooleanValue(*(*bool)(p))
	case reflect.Float64:
		return parquet.DoubleValue(*(*float64)(p))
	case reflect.Int, reflect.Int64:
		return parquet.Int64Value(*(*int64)(p))
	case reflect.Int16:
		return parquet.Int32Value(int32(*(*int16)(p)))
	}
	return parquet.Int32Value(*(*int32)(p))
}
