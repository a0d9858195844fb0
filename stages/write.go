package stages

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
)

// ByURL holds the columns by which most tables are sorted.
var ByURL = []string{"url_surtkey", "url"}

// NewWriter returns a writer of the table with the given key. The caller appends rows that are
// sorted by the columns of sortedBy, then calls table.Finish. If Env.Compare is set, the writer writes
// nothing and compares the rows with those of the stored table.
func NewWriter[T any](ctx context.Context, env *Env, dataset, key string, sortedBy []string, opts ...table.WriterOption) (*table.Writer[T], error) {
	opts = append(opts, table.SortedBy(sortedBy...))
	if env.Compare {
		return table.NewComparer[T](ctx, env.Bucket, key, env.Sound.FileOf(key), opts...)
	}
	return table.NewWriter[T](filepath.Join(env.Scratch, dataset+".parquet"), opts...)
}

// Write stores a table under the given key. fill appends the table's rows, sorted by the columns of
// sortedBy.
func Write[T any](ctx context.Context, env *Env, dataset, key string, sortedBy []string, fill func(*table.Writer[T]) error,
	opts ...table.WriterOption) (manifest.File, error) {
	w, err := NewWriter[T](ctx, env, dataset, key, sortedBy, opts...)
	if err != nil {
		return manifest.File{}, err
	}
	defer w.Abort()
	if err := fill(w); err != nil {
		return manifest.File{}, err
	}
	return table.Finish(ctx, w, env.Bucket, dataset, key)
}

// WriteRun stores a run under the given key. The rows come sorted by bucket, then by the columns of
// sortedBy. If Env.Compare is set, WriteRun stores nothing and returns the file that it would have
// stored. Equal rows give equal bytes, so its digest shows whether the stored run has the same rows.
func WriteRun[T any](ctx context.Context, env *Env, dataset, key string, sortedBy []string, rows iter.Seq2[T, error], bucketOf func(*T) int32) (manifest.File, error) {
	l, err := table.WriteRun(filepath.Join(env.Scratch, dataset+".run"), rows, bucketOf, table.SortedBy(sortedBy...))
	if err != nil {
		return manifest.File{}, fmt.Errorf("write %q: %w", key, err)
	}
	if env.Compare {
		return l.File(dataset, key), os.Remove(l.Path)
	}
	return table.Commit(ctx, env.Bucket, l, dataset, key)
}
