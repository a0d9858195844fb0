package table

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"reflect"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/window"
)

// runGroupBytes bounds the memory of a row group of a run in the writer. The row group then takes at
// most window.GroupBytes in the file, so a reader reads it with one request.
const runGroupBytes = window.GroupBytes * 3 / 4

// WriteRun writes a run to the scratch file path. The rows must be in the order of their buckets. Each
// bucket with rows gets a section (see manifest.Section). If there are no rows, the run has one
// section, of bucket 0, without rows. A run is a working file (see Fast).
func WriteRun[T any](path string, rows iter.Seq2[T, error], bucketOf func(*T) int32, opts ...WriterOption) (_ Local, err error) {
	w, err := newRunWriter(path, reflect.TypeFor[T](), newEncoder[T], opts)
	if err != nil {
		return Local{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.file.Close(), os.Remove(path))
		}
	}()
	for row, err := range rows {
		if err != nil {
			return Local{}, err
		}
		if b := bucketOf(&row); w.section == nil || b != w.bucket {
			if err := w.begin(b); err != nil {
				return Local{}, err
			}
		}
		slot := w.section.slot()
		*(*T)(slot) = row
		if err := w.section.appended(slot); err != nil {
			return Local{}, err
		}
	}
	if w.section == nil {
		if err := w.begin(0); err != nil {
			return Local{}, err
		}
	}
	if err := w.end(); err != nil {
		return Local{}, err
	}
	if err := w.file.Close(); err != nil {
		return Local{}, fmt.Errorf("close scratch file: %w", err)
	}
	l := LocalOf(path, w.rows, w.out.sum)
	l.Linkable = true
	return l, nil
}

// runWriter writes the sections of a run.
type runWriter struct {
	opt     writerOptions
	layout  *rowLayout
	encoder encoderFunc
	file    *os.File
	out     *summingWriter
	buf     *bufio.Writer
	section *writer // writer of the current section
	bucket  int32   // bucket of the current section
	rows    int64   // number of rows in ended sections
}

func newRunWriter(path string, t reflect.Type, encoder encoderFunc, opts []WriterOption) (*runWriter, error) {
	layout, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	w := &runWriter{opt: optionsOf(append(slices.Clip(opts), Fast())), layout: layout, encoder: encoder}
	w.opt.rowGroupBytes = runGroupBytes
	if w.file, err = store.CreateFile(path); err != nil {
		return nil, err
	}
	w.out = &summingWriter{w.file, manifest.NewSum()}
	w.buf = bufio.NewWriterSize(w.out, writeBuffer)
	return w, nil
}

// begin begins the section of a bucket.
func (w *runWriter) begin(bucket int32) error {
	if w.section != nil {
		if bucket < w.bucket {
			return fmt.Errorf("write run: a row of bucket %d comes after bucket %d", bucket, w.bucket)
		}
		if err := w.end(); err != nil {
			return err
		}
	}
	w.section, w.bucket = newSection(w.out, w.buf, w.layout, w.encoder, w.opt), bucket
	return nil
}

// end completes the current section.
func (w *runWriter) end() error {
	if err := w.section.complete(); err != nil {
		return err
	}
	w.out.sum.EndSection(int(w.bucket), w.section.rows)
	w.rows += w.section.rows
	return nil
}

// OpenSection is like Open for a section of a run. One request reads a section of up to 4 MiB.
func OpenSection[T any](ctx context.Context, b store.Bucket, s manifest.Section) (*Reader[T], error) {
	r, err := openSection(ctx, b, s, reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return &Reader[T]{r}, nil
}

func openSection(ctx context.Context, b store.Bucket, s manifest.Section, t reflect.Type) (*reader, error) {
	obj, err := manifest.OpenSection(ctx, b, s)
	if err != nil {
		return nil, err
	}
	return readerOf(obj, s.Key, t, window.GroupBytes, nil)
}

// MergeSections is like MergeFiles for sections of runs.
func MergeSections[T any](ctx context.Context, b store.Bucket, scratch string, sections []manifest.Section, key func(k Key, row *T) Key) iter.Seq2[T, error] {
	t := reflect.TypeFor[T]()
	o := objects{t, len(sections), func(i int) (*reader, error) { return openSection(ctx, b, sections[i], t) }}
	return rowsOf[T](o.merge(ctx, scratch, untyped(key)))
}
