package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// checkpoints holds the checkpoints of those fetch tasks of a round that have no result. The audit
// reads each checkpoint once, because all checks must see the same one. The checkpoints are on local
// disk, because a round may have thousands. A nil value holds no checkpoints.
type checkpoints struct {
	file *os.File
	size int64
	at   map[int]extent // by partition
}

// extent is the place of a checkpoint in the file.
type extent struct{ offset, length int64 }

// startCheckpoints makes an empty checkpoints. The caller closes its file.
func startCheckpoints(scratch string) (*checkpoints, error) {
	f, err := os.CreateTemp(scratch, "checkpoints-")
	if err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	return &checkpoints{file: f, at: map[int]extent{}}, nil
}

func (u *checkpoints) count() int {
	if u == nil {
		return 0
	}
	return len(u.at)
}

func (u *checkpoints) add(n int, c *manifest.Checkpoint) error {
	body, err := json.Marshal(manifest.Checkpoint{Files: c.Files, Counts: c.Counts, Recorded: c.Recorded})
	if err == nil {
		_, err = u.file.WriteAt(body, u.size)
	}
	if err != nil {
		return fmt.Errorf("scratch file: %w", err)
	}
	u.at[n] = extent{u.size, int64(len(body))}
	u.size += int64(len(body))
	return nil
}

// of returns the checkpoint of a partition, or nil if the partition has none.
func (u *checkpoints) of(n int) (*manifest.Checkpoint, error) {
	if u == nil || u.at[n].length == 0 {
		return nil, nil
	}
	body := make([]byte, u.at[n].length)
	if _, err := u.file.ReadAt(body, u.at[n].offset); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	var c manifest.Checkpoint
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	return &c, nil
}

// loadUnfinished reads the checkpoints of fetch tasks that have no result. It leaves out
// checkpoints that are unreadable or belong to another task, because the check of checkpoints
// reports them.
func (a *Audit) loadUnfinished(ctx context.Context, r *Round) error {
	if a.Reparse != nil {
		return nil
	}
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
		if _, err := c.RecordedRows(); err != nil || c.Plan != r.Plan.ID || c.Partition != n {
			continue
		}
		if r.checkpoints == nil {
			u, err := startCheckpoints(a.Scratch)
			if err != nil {
				return err
			}
			r.checkpoints, a.opened = u, append(a.opened, u.file)
		}
		if err := r.checkpoints.add(n, &c); err != nil {
			return err
		}
		if err := a.list(r, fromCheckpoint, int32(n), "a checkpoint lists it, and fetched data cannot be recreated: restore it from a copy", c.Files...); err != nil {
			return err
		}
	}
	return nil
}
