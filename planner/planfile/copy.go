package planfile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// copiers is the number of files that Copy copies at a time.
const copiers = 8

// Copy stores the plan of a round as the plan of the same round of another crawl. The copy has the
// same partitions and rows, its own ID, and the copied plan as its source. The caller can repeat an
// interrupted Copy. Copy does not verify the contents of the plan's files, so b must verify all
// bytes that Copy reads.
func Copy(ctx context.Context, b store.Bucket, from *manifest.Plan, crawl, version string) (*manifest.Plan, error) {
	m := *from
	m.Header, m.ID, m.Crawl = manifest.Header{}, "", crawl
	m.Sources = []string{fmt.Sprintf("plan %s of %s.%d", from.ID, from.Crawl, from.Round)}
	m.Partitions = slices.Clone(from.Partitions)
	m.RefusedFile, m.OptOutFile = clone(from.RefusedFile), clone(from.OptOutFile)
	sources, copies := Of(from), Of(&m)
	for _, f := range copies {
		f.Key = ""
	}
	if err := Identify(&m, version); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(copiers)
	for i, f := range copies {
		g.Go(func() error { return copyFile(gctx, b, sources[i], f.Key) })
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("copy the plan of %s.%d: %w", from.Crawl, from.Round, err)
	}
	return Create(ctx, b, &m)
}

func clone(f *manifest.File) *manifest.File {
	if f == nil {
		return nil
	}
	return new(*f)
}

// copyFile stores the file f under another key.
func copyFile(ctx context.Context, b store.Bucket, f *manifest.File, key string) error {
	obj, err := b.Open(ctx, f.Key)
	if err != nil {
		return err
	}
	_, err = b.Create(ctx, key, obj, obj.Size())
	return errors.Join(err, obj.Close())
}
