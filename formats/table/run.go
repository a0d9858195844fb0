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

// runGroupBytes bounds a row group of a run, in the writer's memory. A reader then reads the row
// group with one request.
const runGroupBytes = window.GroupBytes * 3 / 4

// WriteRun writes a run to the scratch file path. The rows come in the order of buckets. Each bucket
// with rows gets a section of its own (see manifest.Section). A run without rows has an empty
// section of bucket 0. A run is a working file (see Fast).
func WriteRun[T any](path string, rows iter.Seq2[T, error], bucketOf func(*T) int32, opts ...WriterOption) (_ Local, err error) {
	w, err := newRunWriter[T](path, opts)
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
		if err := w.section.Append(&row); err != nil {
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
	return LocalOf(path, w.rows, w.out.sum), nil
}

// runWriter writes the sections of a run.
type runWriter[T any] struct {
	opt     writerOptions
	layout  *rowLayout
	file    *os.File
	out     *summingWriter
	buf     *bufio.Writer
	section *Writer[T] // writer of the current section
	bucket  int32      // bucket of the current section
	rows    int64      // number of rows in ended sections
}

func newRunWriter[T any](path string, opts []WriterOption) (*runWriter[T], error) {
	layout, err := columnsOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	w := &runWriter[T]{opt: optionsOf(append(slices.Clip(opts), Fast())), layout: layout}
	w.opt.rowGroupBytes = runGroupBytes
	if w.file, err = os.Create(path); err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	w.out = &summingWriter{w.file, manifest.NewSum()}
	w.buf = bufio.NewWriterSize(w.out, writeBuffer)
	return w, nil
}

// begin begins the section of a bucket.
func (w *runWriter[T]) begin(bucket int32) error {
	if w.section != nil {
		if bucket < w.bucket {
			return fmt.Errorf("write run: a row of bucket %d comes after bucket %d", bucket, w.bucket)
		}
		if err := w.end(); err != nil {
			return err
		}
	}
	w.section, w.bucket = newWriter[T](w.out, w.buf, w.layout, w.opt), bucket
	return nil
}

// end completes the current section.
func (w *runWriter[T]) end() error {
	if err := w.section.complete(); err != nil {
		return err
	}
	w.out.sum.EndSection(int(w.bucket), w.section.rows)
	w.rows += w.section.rows
	return nil
}

// OpenSection opens a section of a run like Open. One request reads a section of up to 4 MiB.
func OpenSection[T any](ctx context.Context, b store.Bucket, s manifest.Section) (*Reader[T], error) {
	obj, err := manifest.OpenSection(ctx, b, s)
	if err != nil {
		return nil, err
	}
	return readerOf[T](obj, s.Key, window.GroupBytes, nil)
}

// MergeSections is like MergeFiles for sections of runs.
func MergeSections[T any](ctx context.Context, b store.Bucket, scratch string, sections []manifest.Section, compare func(a, b *T) int) iter.Seq2[T, error] {
	return mergeInPasses(ctx, scratch, sections, compare, func(s manifest.Section) (*Reader[T], error) { return OpenSection[T](ctx, b, s) })
}
