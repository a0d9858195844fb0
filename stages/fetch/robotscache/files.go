package robotscache

import (
	"context"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// Each calls yield for every row of a task's robots files, in the order of writing. The last row of
// an origin counts. Each also calls the function in the parameter before, at the start of each
// file. Only one row at a time is in memory.
func Each(ctx context.Context, b store.Bucket, files []manifest.File, before func() error, yield func(*schema.RobotsFile) error, opts ...table.ReaderOption) error {
	var written []string
	for _, f := range files {
		if f.Dataset == stages.FileRobots {
			written = append(written, f.Key)
		}
	}
	slices.SortFunc(written, segments.InOrderWritten)
	for _, key := range written {
		if err := before(); err != nil {
			return err
		}
		for row, err := range table.Concat[schema.RobotsFile](ctx, b, []string{key}, opts...) {
			if err == nil {
				err = yield(&row)
			}
			if err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
		}
	}
	return nil
}
