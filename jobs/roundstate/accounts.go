package roundstate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// accountsOf describes the parts of stages and runs that exist for a round. They depend on times, so
// nothing else tells their digests until the round is sealed: whoever writes a part first decides.
func accountsOf(ctx context.Context, b store.Bucket, p *manifest.Plan) (files []manifest.File, err error) {
	if p.Format < AccountsSince {
		return nil, nil
	}
	for _, dataset := range publish.Accounts {
		f, err := describePart(ctx, b, dataset, publish.AccountKey(p, dataset))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// footer is a row type whose only column is in no file. To open a table with this type, only the
// footer of the file is read.
type footer struct {
	None string `parquet:"none,optional"`
}

// describePart reads a part and describes it as a writer of the part would.
func describePart(ctx context.Context, b store.Bucket, dataset, key string) (f manifest.File, err error) {
	o, err := b.Open(ctx, key)
	if err != nil {
		return f, err
	}
	sum := manifest.NewSum()
	_, err = io.Copy(sum, io.NewSectionReader(o, 0, o.Size()))
	if err = errors.Join(err, o.Close()); err != nil {
		return f, fmt.Errorf("read %q: %w", key, err)
	}
	t, err := table.Open[footer](ctx, b, key)
	if errors.Is(err, table.ErrCorrupt) {
		return f, fmt.Errorf("%w: no seal lists this part of %s: remove it, and run the command again: %w", err, dataset, stages.ErrPermanent)
	}
	if err != nil {
		return f, err
	}
	f = sum.File()
	f.Dataset, f.Key, f.Rows, f.Blocks = dataset, key, t.Rows(), ""
	return f, t.Close()
}
