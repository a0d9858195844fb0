package stages

import (
	"context"
	"path/filepath"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
)

// ByURL holds the columns by which most tables are sorted.
var ByURL = []string{"url_surtkey", "url"}

// NewWriter returns the writer of a table in the scratch directory, in the task's format
// (Env.Format). The caller writes rows that are sorted by the columns of sortedBy.
func NewWriter[T any](env *Env, dataset string, sortedBy []string, opts ...table.WriterOption) (*table.Writer[T], error) {
	opts = append(opts, table.Format(env.Format), table.SortedBy(sortedBy...))
	return table.NewWriter[T](filepath.Join(env.Scratch, dataset+".parquet"), opts...)
}

// Write stores a table under the given key. fill appends the table's rows, sorted by the columns of
// sortedBy.
func Write[T any](ctx context.Context, env *Env, dataset, key string, sortedBy []string, fill func(*table.Writer[T]) error,
	opts ...table.WriterOption) (manifest.File, error) {
	w, err := NewWriter[T](env, dataset, sortedBy, opts...)
	if err != nil {
		return manifest.File{}, err
	}
	defer w.Abort()
	if err := fill(w); err != nil {
		return manifest.File{}, err
	}
	return table.Finish(ctx, w, env.Bucket, dataset, key)
}
