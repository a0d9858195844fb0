// Package roundstate reads and creates the documents with a round's state: crawl, plan, inputs,
// results, attempts, seal and politeness.
//
// The functions take a bucket and the name of a crawl, a round or a task. The functions check each
// document against its key and against the crawl's ledger. If a document in the ledger is gone or
// was changed, the error is a ledger.Lost error. Every document except the politeness is created
// once and never changed, and each decision is one swap of the ledger. Any number of processes may
// therefore call and repeat all functions at any time. The package imports jobs/ledger,
// jobs/config, stages, stages/publish and formats.
package roundstate

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

var (
	// ErrNoCrawl means that the store has no crawl of that name.
	ErrNoCrawl = ledger.ErrNoCrawl
	// ErrReplacing means that a `plan --replace` of the crawl was interrupted, or runs now.
	ErrReplacing = ledger.ErrReplacing
	// ErrNoPlan means that the round has no plan.
	ErrNoPlan = errors.New("no plan")
	// ErrNotReady means that a task of an earlier stage has no result yet.
	ErrNotReady = errors.New("the previous stage is not done")
)

// misplaced returns the error for a document that belongs under another key.
func misplaced(key, owner, want string) error {
	return fmt.Errorf("%q belongs to %s, not to %s: restore the right document; a copy made by mistake can be removed: %w", key, owner, want, manifest.ErrCorrupt)
}

// createOnce creates the document d under a key. It also succeeds if another process created the
// document first.
func createOnce(ctx context.Context, b store.Bucket, key string, d manifest.Document) error {
	_, err := manifest.Create(ctx, b, key, d)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}
