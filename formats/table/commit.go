package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Commit stores the finished file l as the object with the given key, and then removes the file. The
// object is durable when Commit returns; no manifest may name it before. If the object already exists
// with the same bytes, Commit succeeds. If it has other bytes, Commit returns ErrDiffers. If storing
// fails, the file stays.
func Commit(ctx context.Context, b store.Bucket, l Local, dataset, key string) (manifest.File, error) {
	f, err := os.Open(l.Path)
	if err != nil {
		return manifest.File{}, fmt.Errorf("commit %q: %w", key, err)
	}
	body := io.ReaderAt(f)
	if l.Linkable {
		body = store.File{File: f, SHA256: l.SHA256}
	}
	_, err = b.Create(ctx, key, body, l.Bytes)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if errors.Is(err, store.ErrExists) {
		err = fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	if err != nil {
		return manifest.File{}, fmt.Errorf("commit %q: %w", key, err)
	}
	if err := os.Remove(l.Path); err != nil {
		return manifest.File{}, fmt.Errorf("commit %q: remove scratch file: %w", key, err)
	}
	return l.File(dataset, key), nil
}

// WriteFile writes rows to the scratch file path.
func WriteFile[T any](path string, rows iter.Seq2[T, error], opts ...WriterOption) (Local, error) {
	w, err := NewWriter[T](path, opts...)
	if err != nil {
		return Local{}, err
	}
	defer w.Abort()
	for row, err := range rows {
		if err == nil {
			err = w.Append(&row)
		}
		if err != nil {
			return Local{}, err
		}
	}
	return w.Close()
}

// Finish closes w and commits its file as the object with the given key. If w is a comparer (see
// NewComparer), Finish returns the description of the stored object.
func Finish[T any](ctx context.Context, w *Writer[T], b store.Bucket, dataset, key string) (manifest.File, error) {
	return finish(ctx, w.writer, b, dataset, key)
}

func finish(ctx context.Context, w *writer, b store.Bucket, dataset, key string) (manifest.File, error) {
	l, err := w.Close()
	if err != nil {
		return manifest.File{}, fmt.Errorf("write %q: %w", key, err)
	}
	if w.stored != nil {
		return l.File(dataset, key), nil
	}
	return Commit(ctx, b, l, dataset, key)
}
