package stages

import (
	"context"
	"path/filepath"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
)

// ByURL is the order of most tables.
var ByURL = []string{"url_surtkey", "url"}

// Write stores a table as the object key. Fill appends its rows, sorted by the columns.
func Write[T any](ctx context.Context, env *Env, dataset, key string, sortedBy []string, fill func(*table.Writer[T]) error,
	opts ...table.WriterOption) (manifest.File, error) {
	opts = append(opts, table.Format(env.Format), table.SortedBy(sortedBy...))
	w, err := table.NewWriter[T](filepath.Join(env.Scratch, dataset+".parquet"), opts...)
	if err != nil {
		return manifest.File{}, err
	}
	defer w.Abort()
	if err := fill(w); err != nil {
		return manifest.File{}, err
	}
	return table.Finish(ctx, w, env.Bucket, dataset, key)
}
