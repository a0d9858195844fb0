package table

import (
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/column"
)

// Union handles files with the rows of many files of a dataset, and with further columns that say where
// each row comes from.
type Union struct {
	layout        *rowLayout
	added, sorted []rowField // further columns, and the columns that determine the order of rows
	names         []string   // of the columns in sorted
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
	t := schema.Union(row, added)
	layout, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	u := &Union{layout: layout, added: layout.fields[len(layout.fields)-added.NumField():], names: sorted}
	for _, name := range sorted {
		i := slices.Index(columnNames(t), name)
		if i < 0 || layout.fields[i].shape != plain {
			return nil, fmt.Errorf("rows of %v cannot be sorted by %q", row, name)
		}
		u.sorted = append(u.sorted, layout.fields[i])
	}
	return u, nil
}

// key appends the values of the columns that determine the order of rows.
func (u *Union) key(k Key, row unsafe.Pointer) Key {
	for i := range u.sorted {
		f := &u.sorted[i]
		if p := unsafe.Add(row, f.offset); f.kind == reflect.String {
			k = k.Text(*(*string)(p))
		} else {
			k = k.Int(reflect.NewAt(f.elem, p).Elem().Int())
		}
	}
	return k
}

// Merge yields the rows of files as one sorted sequence. Equal rows keep the order of their files. See
// MergeFiles for its memory, open files and scratch.
func (u *Union) Merge(ctx context.Context, b store.Bucket, scratch string, files []Placed) iter.Seq2[Row, error] {
	o := objects{u.layout.row, len(files), func(i int) (*reader, error) {
		values := reflect.ValueOf(files[i].Added)
		r, err := openTable(ctx, b, files[i].Key, u.layout.row, nil)
		if err == nil {
			r.fill = func(row unsafe.Pointer) {
				for i, f := range u.added {
					reflect.NewAt(f.elem, unsafe.Add(row, f.offset)).Elem().Set(values.Field(i))
				}
			}
		}
		return r, err
	}}
	return untypedRows(o.merge(ctx, scratch, u.key))
}

// Concat yields the rows of files of the union one after another.
func (u *Union) Concat(ctx context.Context, b store.Bucket, keys []string) iter.Seq2[Row, error] {
	return untypedRows(objectsOf(ctx, b, keys, u.layout.row, nil).concat(ctx))
}

func untypedRows(each eachOf) iter.Seq2[Row, error] {
	return rowsOf[Row](func(yield func(row unsafe.Pointer) bool) error {
		return each(func(row unsafe.Pointer) bool { return yield(unsafe.Pointer(&Row{row})) })
	})
}

// Encode appends the encoded row to buf, as a Codec does.
func (u *Union) Encode(buf []byte, row Row) []byte { return u.layout.encode(buf, row.at) }

// UnionWriter is a Writer of rows of a union.
type UnionWriter struct{ *writer }

// NewWriter creates the scratch file path and returns a writer to it.
func (u *Union) NewWriter(path string, opts ...WriterOption) (*UnionWriter, error) {
	w, err := createFile(path, u.layout.row, u.encoder, optionsOf(append(opts, SortedBy(u.names...))))
	if err == nil {
		w.nullable = nil // the encoder does not have parquet-go's bug
	}
	return &UnionWriter{w}, err
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
	columns := make([]column.Values, len(u.layout.fields))
	for i, path := range s.Columns() {
		leaf, _ := s.Lookup(path...)
		columns[i] = column.Values{Field: u.layout.fields[i].column(), Column: i, Most: leaf.MaxDefinitionLevel}
	}
	var values []parquet.Value
	return encoder{pq, func(first unsafe.Pointer, n int) error {
		for i, w := range pq.ColumnWriters() {
			values = values[:0]
			for row := range n {
				values = columns[i].Append(values, unsafe.Add(first, row*u.layout.size))
			}
			if _, err := w.WriteRowValues(values); err != nil {
				return err
			}
		}
		return nil
	}}
}
