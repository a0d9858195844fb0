// Package spool stores what the tasks of a plan pass to each other.
//
// The input is encoded rows in the order of their cells: equal ranges of the hashes of domains. The output is a
// working file in the store, with a compressed section for each cell. Fetch reads some cells of the file.
// What Fetch returns matches the digests of the file's manifest entry.
//
// Package spool imports formats packages only.
package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/s2"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

const blockBytes = 256 << 10

// Remedy is what errors about lost or damaged working files say. Nothing else can make such a file again.
const Remedy = "run `crawlbatch plan` again"

// Writer writes a file. Only one goroutine may use a Writer. The caller ends it with Close.
type Writer struct {
	path    string
	file    *os.File
	sum     *manifest.Sum
	section *s2.Writer
	cell    int
	bytes   int64 // content of the current section
}

// Create returns a Writer of the scratch file path.
func Create(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	w := &Writer{path: path, file: f, sum: manifest.NewSum()}
	w.section = s2.NewWriter(io.MultiWriter(f, w.sum), s2.WriterConcurrency(1), s2.WriterBlockSize(blockBytes))
	return w, nil
}

// To directs the following content to a cell, which must not lie before that of earlier content.
func (w *Writer) To(cell int) error {
	if cell == w.cell {
		return nil
	}
	err := w.end()
	w.cell = cell
	return err
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.section.Write(p)
	w.bytes += int64(n)
	if err != nil {
		return n, fmt.Errorf("write scratch file: %w", err)
	}
	return n, nil
}

func (w *Writer) end() error {
	if w.bytes == 0 {
		return nil
	}
	if err := w.section.Close(); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	w.sum.EndSection(w.cell, w.bytes)
	w.section.Reset(io.MultiWriter(w.file, w.sum))
	w.bytes = 0
	return nil
}

// Close completes the file, which Commit of package table can store.
func (w *Writer) Close() (table.Local, error) {
	err := errors.Join(w.end(), w.file.Close())
	return table.LocalOf(w.path, 0, w.sum), err
}

// Fetch appends the content of the cells from first to end (exclusive) to out, and returns its length.
func Fetch(ctx context.Context, b store.Bucket, f *manifest.File, first, end int, out io.Writer) (n int64, err error) {
	sections, err := f.Sections()
	if err != nil {
		return 0, err
	}
	checked := manifest.NewChecked(b)
	checked.Add(Remedy, *f)
	for _, s := range sections {
		if s.Bucket < first || s.Bucket >= end {
			continue
		}
		m, err := fetch(ctx, checked, s, out)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func fetch(ctx context.Context, b store.Bucket, s manifest.Section, out io.Writer) (n int64, err error) {
	o, err := manifest.OpenSection(ctx, b, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	n, err = io.Copy(out, s2.NewReader(io.NewSectionReader(o, 0, o.Size()), s2.ReaderMaxBlockSize(blockBytes)))
	if err == nil && n != s.Rows {
		err = fmt.Errorf("%q: cell %d has %d bytes instead of %d: %w", s.Key, s.Bucket, n, s.Rows, table.ErrScratch)
	}
	if err == nil {
		err = ctx.Err()
	}
	return n, err
}
