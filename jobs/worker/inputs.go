package worker

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// inputs is a bucket that compares the sizes of the files that a task reads with the committed
// sizes. Opening an object reports its size, so the comparison needs no extra request. The
// comparison does not notice damage that keeps the size. `crawlbatch verify` also finds damage that
// keeps the size.
type inputs struct {
	store.Bucket
	sizes map[string]int64 // sizes of files in bytes, by key
}

// expect wraps b for a task with the given input.
func expect(b store.Bucket, in *stages.Input) store.Bucket {
	sizes := map[string]int64{}
	add := func(files []manifest.File) {
		for _, f := range files {
			sizes[f.Key] = f.Bytes
		}
	}
	for _, p := range in.Plan.Partitions {
		add([]manifest.File{p.File})
		if p.Spellings != nil {
			add([]manifest.File{*p.Spellings})
		}
	}
	if in.Plan.RefusedFile != nil {
		add([]manifest.File{*in.Plan.RefusedFile})
	}
	for _, results := range in.Results {
		for _, r := range results {
			if r != nil {
				add(r.Files)
			}
		}
	}
	for _, s := range in.Earlier {
		add(s.Files)
	}
	return &inputs{b, sizes}
}

// Unwrap returns the wrapped bucket.
func (b *inputs) Unwrap() store.Bucket { return b.Bucket }

// Open implements store.Bucket.
func (b *inputs) Open(ctx context.Context, key string) (store.Object, error) {
	o, err := b.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	if want, ok := b.sizes[key]; ok && o.Size() != want {
		return nil, errors.Join(fmt.Errorf("open %q: it has %d bytes, it was committed with %d: %w",
			key, o.Size(), want, table.ErrCorrupt), o.Close())
	}
	return o, nil
}
