package spool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// StoreRows stores rows by their cells.
func StoreRows[T any](ctx context.Context, d Depot, path, name string, codec *table.Codec[T], rows iter.Seq2[T, error], cellOf func(*T) int) (manifest.File, error) {
	return StoreFile(ctx, d, path, name, func(w *Writer) error {
		buf := bufio.NewWriterSize(w, 64<<10)
		out, at := codec.Writer(buf), 0
		for r, err := range rows {
			if err != nil {
				return err
			}
			if cell := cellOf(&r); cell != at {
				if err := errors.Join(buf.Flush(), w.To(cell)); err != nil {
					return err
				}
				at = cell
			}
			if _, err := out.Write(&r); err != nil {
				return err
			}
		}
		return buf.Flush()
	})
}

// StoreBytes stores a text.
func StoreBytes(ctx context.Context, d Depot, path, name string, text []byte) (manifest.File, error) {
	return StoreFile(ctx, d, path, name, func(w *Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// StoreFile stores what fill writes. The scratch file path holds it meanwhile.
func StoreFile(ctx context.Context, d Depot, path, name string, fill func(*Writer) error) (manifest.File, error) {
	w, err := Create(path)
	if err != nil {
		return manifest.File{}, err
	}
	err = fill(w)
	l, failed := w.Close()
	if err = errors.Join(err, failed); err != nil {
		return manifest.File{}, errors.Join(err, os.Remove(path))
	}
	return d.Commit(ctx, l, name)
}

// FetchBytes returns the text that StoreBytes stored.
func FetchBytes(ctx context.Context, b store.Bucket, f *manifest.File) ([]byte, error) {
	var out bytes.Buffer
	_, err := Fetch(ctx, b, f, 0, 1, &out)
	return out.Bytes(), err
}

// readAhead is the size of the buffer for one run.
const readAhead = 32 << 10

// Runs are sorted runs in one scratch file.
type Runs struct {
	file *os.File
	Ends []int64 // end of each run
}

// Close removes the scratch file.
func (r *Runs) Close() error { return errors.Join(r.file.Close(), os.Remove(r.file.Name())) }

// FetchRuns fetches some cells of each file.
func FetchRuns(ctx context.Context, b store.Bucket, path string, files []manifest.File, first, end int) (*Runs, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	r, at := &Runs{file: f}, int64(0)
	for i := range files {
		n, err := Fetch(ctx, b, &files[i], first, end, f)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		at += n
		r.Ends = append(r.Ends, at)
	}
	return r, nil
}

// rowsOfRun is a table.Stream of a run.
type rowsOfRun[T any] struct{ in *table.RowReader[T] }

// Read implements table.Stream.
func (r rowsOfRun[T]) Read(batch []T) (int, error) {
	for i := range batch {
		if err := r.in.Next(&batch[i]); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

func streamOf[T any](codec *table.Codec[T], r *Runs, i int) table.Stream[T] {
	begin := int64(0)
	if i > 0 {
		begin = r.Ends[i-1]
	}
	return rowsOfRun[T]{codec.Reader(bufio.NewReaderSize(io.NewSectionReader(r.file, begin, r.Ends[i]-begin), readAhead))}
}

// RowsOf yields the rows of one run.
func RowsOf[T any](ctx context.Context, codec *table.Codec[T], r *Runs, i int) iter.Seq2[T, error] {
	return table.All(ctx, streamOf(codec, r, i))
}

// MergeRuns merges runs, and the sorted rows more, if it is not nil.
func MergeRuns[T any](ctx context.Context, codec *table.Codec[T], compare func(a, b *T) int, r *Runs, more iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var streams []table.Stream[T]
		for i := range r.Ends {
			streams = append(streams, streamOf(codec, r, i))
		}
		if more != nil {
			further := table.Pull(more)
			defer further.Close() //nolint:errcheck // the loop has returned its error
			streams = append(streams, further)
		}
		table.Merge(ctx, compare, streams...)(yield)
	}
}

// Depot keeps the working files of a plan that tasks make. Several goroutines may use it.
type Depot interface {
	// Bucket returns the store with the files.
	Bucket() store.Bucket
	// Commit moves a local file to the store. Another file with the name must have the same bytes.
	Commit(ctx context.Context, l table.Local, name string) (manifest.File, error)
}
