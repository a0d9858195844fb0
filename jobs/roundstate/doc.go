// Package roundstate reads and creates the documents that hold a round's state in the
// store: crawl, plan, start, inputs, results, attempts, seal and politeness.
//
// In: a bucket and the name of a crawl, a round or a task. Out: documents whose identity
// matches their key. Every document but the politeness is created once and never changed,
// so all functions may be called at any time, by any number of processes, and repeated.
// It imports jobs/config, stages, stages/publish and formats.
package roundstate

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

var (
	// ErrNoCrawl: the store holds no crawl of that name.
	ErrNoCrawl = errors.New("no such crawl")
	// ErrNoPlan: the round has no plan.
	ErrNoPlan = errors.New("no plan")
	// ErrNotReady: a task of an earlier stage has no result yet.
	ErrNotReady = errors.New("the stage before is not done")
)

// misplaced is the error for a document whose content names another owner than its key.
func misplaced(key, owner, want string) error {
	return fmt.Errorf("%q belongs to %s, not to %s: restore the right document; a copy made by mistake can be removed: %w", key, owner, want, manifest.ErrCorrupt)
}

// createOnce creates d under key. A document that another process created first counts too.
func createOnce(ctx context.Context, b store.Bucket, key string, d manifest.Document) error {
	_, err := manifest.Create(ctx, b, key, d)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}
