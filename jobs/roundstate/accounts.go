package roundstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// accountsOf describes the existing parts of a round in the datasets stages and runs. Their
// contents depend on times, so a second writer would make other bytes. The part that was written
// first counts.
func accountsOf(ctx context.Context, b store.Bucket, p *manifest.Plan) (files []manifest.File, err error) {
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

// FetchAttempts yields the attempts at the fetch tasks of a round whose accounts are written, in the order
// of tasks and beginnings. It yields nothing for rounds whose accounts are not written yet.
func FetchAttempts(ctx context.Context, b store.Bucket, p *manifest.Plan) iter.Seq2[schema.StageAttempt, error] {
	return func(yield func(schema.StageAttempt, error) bool) {
		key := publish.AccountKey(p, stages.FileStages)
		there, err := manifest.Exists(ctx, b, key)
		if err != nil {
			yield(schema.StageAttempt{}, err)
		}
		if err != nil || !there {
			return
		}
		for a, err := range table.Concat[schema.StageAttempt](ctx, b, []string{key}) {
			if (err != nil || a.Stage == string(stages.Fetch)) && !yield(a, err) {
				return
			}
		}
	}
}

// footer is a row type whose only column is in no file. A table that is opened with this type
// therefore reads only the footer of the file.
type footer struct {
	None string `parquet:"none,optional"`
}

// describePart reads a part, and returns the description that the part's writer would return.
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
