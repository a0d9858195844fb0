// Package tabletest writes and reads tables in tests. If a function fails, the test ends.
package tabletest

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// Write stores rows in the given order as the object with the given key.
func Write[T any](t testing.TB, b store.Bucket, dataset, key string, rows []T, opts ...table.WriterOption) manifest.File {
	t.Helper()
	w, err := table.NewWriter[T](filepath.Join(t.TempDir(), "rows.parquet"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	f, err := table.Finish(t.Context(), w, b, dataset, key)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// WriteRun stores rows as the run with the given key. The rows must be in the order of their
// buckets.
func WriteRun[T any](t testing.TB, b store.Bucket, dataset, key string, rows []T, bucketOf func(*T) int32, opts ...table.WriterOption) manifest.File {
	t.Helper()
	var f manifest.File
	l, err := table.WriteRun(filepath.Join(t.TempDir(), "rows.run"), func(yield func(T, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}, bucketOf, opts...)
	if err == nil {
		f, err = table.Commit(t.Context(), b, l, dataset, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ReadRun returns the rows of all sections of a run.
func ReadRun[T any](t testing.TB, b store.Bucket, run manifest.File) (rows []T) {
	t.Helper()
	sections, err := run.Sections()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		r, err := table.OpenSection[T](t.Context(), b, s)
		if err != nil {
			t.Fatal(err)
		}
		of, err := Collect(r.All(t.Context()))
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, of...)
	}
	return rows
}

// Read returns the rows of the object with the given key.
func Read[T any](t testing.TB, b store.Bucket, key string, opts ...table.ReaderOption) []T {
	t.Helper()
	rows, err := Collect(table.Concat[T](t.Context(), b, []string{key}, opts...))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// ReadFiles returns the rows of several objects, one object after another.
func ReadFiles[T any](t testing.TB, b store.Bucket, files []manifest.File) []T {
	t.Helper()
	var rows []T
	for _, f := range files {
		rows = append(rows, Read[T](t, b, f.Key)...)
	}
	return rows
}

// Collect returns the rows of a sequence, or its error.
func Collect[T any](rows iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for row, err := range rows {
		if err != nil {
			return nil, fmt.Errorf("after %d rows: %w", len(out), err)
		}
		out = append(out, row)
	}
	return out, nil
}

// ByKey returns a function that compares rows by their keys.
func ByKey[T any](key func(table.Key, *T) table.Key) func(a, b T) int {
	return func(a, b T) int { return bytes.Compare(key(nil, &a), key(nil, &b)) }
}
