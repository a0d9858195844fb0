package audit

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// Checkpoint is the committed state of a fetch task without a result. The files of a Checkpoint
// hold the rows of the recorded URLs, and checks read these files like the files of a finished
// task.
type Checkpoint struct {
	Result   manifest.Result // only the files and counts of the checkpoint
	Recorded *roaring.Bitmap // indexes of planned rows that have an outcome
}

// loadUnfinished reads the checkpoints of fetch tasks that have no result. loadUnfinished leaves
// out checkpoints that are unreadable or belong to another task, because the check of checkpoints
// reports them.
func (a *Audit) loadUnfinished(ctx context.Context, r *Round) error {
	if a.Reparse != nil {
		return nil
	}
	r.Unfinished = map[int]*Checkpoint{}
	for n := range r.Tasks(stages.Fetch) {
		key := layout.Checkpoint(r.Crawl, r.Number, n)
		if r.Has(stages.Fetch, n) || a.Broken(layout.Result(r.Crawl, r.Number, string(stages.Fetch), n)) {
			continue
		}
		var c manifest.Checkpoint
		if _, _, err := manifest.Load(ctx, a.Bucket, key, &c); err != nil {
			if !IsFault(err) {
				return err
			}
			continue
		}
		recorded, err := c.RecordedRows()
		if err != nil || c.Plan != r.Plan.ID || c.Partition != n {
			continue
		}
		r.Unfinished[n] = &Checkpoint{manifest.Result{Files: c.Files, Counts: c.Counts}, recorded}
		if err := a.list(r, fromCheckpoint, int32(n), "a checkpoint lists it, and fetched data cannot be recreated: restore it from a copy", c.Files...); err != nil {
			return err
		}
	}
	return nil
}
