package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// copiers is how many files are copied at a time.
const copiers = 8

// Copy stores the plan of a round as that of the same round of another crawl: the
// same partitions with the same rows, under an ID that is the digest of all that it
// holds, as any plan's. Its source is the plan that it is a copy of. A Copy that was
// interrupted can be repeated.
func Copy(ctx context.Context, b store.Bucket, from *manifest.Plan, crawl, version string) (*manifest.Plan, error) {
	m := *from
	m.Header, m.ID, m.Crawl = manifest.Header{}, "", crawl
	m.Sources = []string{fmt.Sprintf("plan %s of %s.%d", from.ID, from.Crawl, from.Round)}
	m.Partitions = slices.Clone(from.Partitions)
	for i := range m.Partitions {
		m.Partitions[i].File.Key = ""
		if f := m.Partitions[i].Spellings; f != nil {
			spellings := *f
			spellings.Key = ""
			m.Partitions[i].Spellings = &spellings
		}
	}
	if from.RefusedFile != nil {
		refused := *from.RefusedFile
		refused.Key = ""
		m.RefusedFile = &refused
	}
	if err := identify(&m, version); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(copiers)
	for i := range m.Partitions {
		g.Go(func() error { return copyFile(gctx, b, &from.Partitions[i].File, m.Partitions[i].File.Key) })
		if f := from.Partitions[i].Spellings; f != nil {
			g.Go(func() error { return copyFile(gctx, b, f, m.Partitions[i].Spellings.Key) })
		}
	}
	if m.RefusedFile != nil {
		g.Go(func() error { return copyFile(gctx, b, from.RefusedFile, m.RefusedFile.Key) })
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("copy the plan of %s.%d: %w", from.Crawl, from.Round, err)
	}
	key := layout.PlanManifest(m.Crawl, m.Round, m.ID)
	_, err := manifest.Create(ctx, b, key, &m)
	if errors.Is(err, store.ErrExists) {
		// The ID is a digest: it is this plan, stored by another version of the program.
		var same manifest.Plan
		if _, _, lerr := manifest.Load(ctx, b, key, &same); lerr == nil {
			return &same, nil
		}
	}
	return &m, err
}

// copyFile stores a file under another key.
func copyFile(ctx context.Context, b store.Bucket, f *manifest.File, key string) error {
	obj, err := b.Open(ctx, f.Key)
	if err != nil {
		return err
	}
	if obj.Size() != f.Bytes {
		err = fmt.Errorf("%q has %d bytes, it was committed with %d: restore it: %w", f.Key, obj.Size(), f.Bytes, manifest.ErrCorrupt)
	} else {
		_, err = b.Create(ctx, key, obj, obj.Size())
	}
	return errors.Join(err, obj.Close())
}
