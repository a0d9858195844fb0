package rewrite

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/stages"
)

// filter makes the URL filter of a bucket again, from what stays of the bucket's parts of urls and skips.
func (r *Rewriter) filter(ctx context.Context, f *manifest.File) (*Rewritten, error) {
	crawl, round, part := roundOf(f.Key)
	w, err := urlfilter.NewWriter(filepath.Join(r.Scratch, "known"))
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	out := &Rewritten{}
	add := func(text string) error {
		if url.names(r.Matcher, text) {
			out.Dropped++
			return nil
		}
		return w.Add(text)
	}
	for row, err := range table.Concat[schema.URLRecord](ctx, r.Bucket, []string{layout.Table(stages.FileURLs, crawl, round, part)}) {
		if err == nil {
			err = add(row.URL)
		}
		if err != nil {
			return nil, err
		}
	}
	for row, err := range table.Concat[schema.Skip](ctx, r.Bucket, []string{layout.Table(stages.FileSkips, crawl, round, part)}) {
		if err == nil {
			err = add(row.URL)
		}
		if err != nil {
			return nil, err
		}
	}
	if out.Dropped == 0 {
		return nil, nil
	}
	n, err := w.Finish(ctx, localBucket{r.Bucket, r.path()}, f.Dataset, f.Key)
	if err != nil {
		return nil, err
	}
	out.File, out.Path = n, r.path()
	out.File.Subset = f.Subset
	return out, nil
}

// localBucket writes what is created into a local file.
type localBucket struct {
	store.Bucket
	path string
}

func (b localBucket) Create(_ context.Context, _ string, body io.ReaderAt, size int64) (store.Version, error) {
	file, err := os.Create(b.path)
	if err != nil {
		return "", fmt.Errorf("create scratch file: %w", err)
	}
	_, err = io.Copy(file, io.NewSectionReader(body, 0, size))
	if closed := file.Close(); err == nil {
		err = closed
	}
	return "", err
}
