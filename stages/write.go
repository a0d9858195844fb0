package stages

import (
	"context"
	"path/filepath"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
)

// ByURL holds the columns by which most tables are sorted.
var ByURL = []string{"url_surtkey", "url"}

// NewWriter returns a table writer. The table has the task's format (Env.Format) and becomes the
// object with the given key. The caller writes rows that are sorted by the columns of sortedBy,
// then calls table.Finish. If Env.Compare is set, the writer writes nothing and compares the rows
// with the rows of the stored object.
func NewWriter[T any](ctx context.Context, env *Env, dataset, key string, sortedBy []string, opts ...table.WriterOption) (*table.Writer[T], error) {
	opts = append(opts, table.Format(env.Format), table.SortedBy(sortedBy...))
	if env.Compare {
		return table.NewComparer[T](ctx, env.Bucket, key, opts...)
	}
	return table.NewWriter[T](filepath.Join(env.Scratch, dataset+".parquet"), opts...)
}

// Write stores a table under the given key. fill appends the table's rows, sorted by
// the columns of sortedBy.
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
