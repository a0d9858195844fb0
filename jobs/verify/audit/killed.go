package audit

import (
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// noteKilled notes the sealed rounds in which processes were killed while they fetched. This is no
// violation, but no check covers the requests that these processes did not record. It also notes the command
// that holds the store, which may have been killed too.
func (a *Audit) noteKilled(ctx context.Context, rounds []*Round) error {
	for _, r := range rounds {
		if r.Sealed == nil {
			continue
		}
		killed := 0
		for attempt, err := range roundstate.FetchAttempts(ctx, a.Bucket, r.Plan) {
			if errors.Is(err, table.ErrCorrupt) || errors.Is(err, store.ErrNotFound) {
				break // another check reports it
			}
			if err != nil {
				return err
			}
			if attempt.Outcome == manifest.ClassKilled {
				killed++
			}
		}
		if killed > 0 {
			a.Note("round %d: attempts at fetch tasks that were killed: %d. The requests that they sent after their last checkpoints are in no table, so no check covers them", r.Number, killed)
		}
	}
	held, err := roundstate.Held(ctx, a.Bucket)
	if held != "" {
		a.Note("%s", held)
	}
	return err
}
