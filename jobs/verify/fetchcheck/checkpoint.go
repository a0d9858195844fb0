package fetchcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// remedy is the advice for an unfinished task whose checkpoint is lost, damaged or old. With a wrong
// checkpoint, the task would request URLs a second time.
const remedy = "restore its last state: a version that the store keeps, or a copy made after the crawl stopped; until then `crawlbatch run` does not fetch the partition"

// restoreLast is the advice for a finished task whose checkpoint is lost or old. Such a task sends
// no more requests, because it has a result.
const restoreLast = "restore the task's last checkpoint from a copy"

// resultIsWhatItsCheckpointLists compares the result of a fetch task with the checkpoint from which
// the result was made. The checkpoint of an unfinished task must have a valid proof.
func resultIsWhatItsCheckpointLists(ctx context.Context, a *audit.Audit, r *audit.Round, n int) error {
	if a.Reparse != nil {
		return nil // a reparse has no checkpoints; verify recomputes the fetch tasks of a reparse
	}
	key := layout.Checkpoint(r.Crawl, r.Number, n)
	result, err := r.Result(ctx, stages.Fetch, n)
	if err != nil {
		return err
	}
	var c manifest.Checkpoint
	version, _, err := manifest.Load(ctx, a.Bucket, key, &c)
	switch {
	case result == nil && errors.Is(err, store.ErrNotFound):
		return notLost(ctx, a, r, n)
	case errors.Is(err, store.ErrNotFound):
		a.Wrong(checkpoints, r.Number, audit.At{Object: key}, "it is missing, though the task has a result: %s", restoreLast)
		return nil
	case result == nil && errors.Is(err, manifest.ErrCorrupt):
		a.Wrong(checkpoints, r.Number, audit.At{Object: key}, "%v: %s", err, remedy)
		return nil
	case err != nil:
		return a.Fault(err, checkpoints, r.Number, key)
	}
	a.Count(checkpoints, 1)
	rows, problem := recordedRows(&c, r.Plan, n)
	if problem != "" {
		a.Wrong(checkpoints, r.Number, audit.At{Object: key}, "%s", problem)
	}
	switch {
	case rows < 0:
		return nil
	case result == nil:
		if err := c.Check(); err != nil && problem == "" {
			a.Wrong(checkpoints, r.Number, audit.At{Object: key}, "%v: %s", err, remedy)
		}
		return isLast(ctx, a, r, n, &c, version)
	case !a.Broken(layout.Result(r.Crawl, r.Number, string(stages.Fetch), n)):
		compareCheckpoint(a, r, n, &c, rows, result)
	}
	return nil
}

// notLost reports a violation if the checkpoint of a partition is lost.
func notLost(ctx context.Context, a *audit.Audit, r *audit.Round, n int) error {
	key := layout.Checkpoint(r.Crawl, r.Number, n)
	witness, err := segments.Witness(ctx, a.Bucket, taskOf(r, n), r.Plan.ID)
	if err != nil || witness == "" {
		return err // the task has not begun
	}
	there, err := manifest.Exists(ctx, a.Bucket, key) // the task may have begun since the audit read the checkpoints
	if err == nil && !there {
		a.Wrong(checkpoints, r.Number, audit.At{Object: key}, "it is missing, though %q was written after it: %s", witness, remedy)
	}
	return err
}

// isLast reports a violation if an object of the partition proves that a checkpoint later than c
// existed.
func isLast(ctx context.Context, a *audit.Audit, r *audit.Round, n int, c *manifest.Checkpoint, version store.Version) error {
	key := layout.Checkpoint(r.Crawl, r.Number, n)
	evidence, err := segments.EvidenceOfPutBack(ctx, a.Bucket, taskOf(r, n), c)
	if err != nil || evidence == "" {
		return err
	}
	now, _, err := manifest.Load(ctx, a.Bucket, key, &manifest.Checkpoint{}) // an attempt may have swapped the checkpoint during the audit
	if err == nil && now == version {
		a.Wrong(checkpoints, r.Number, audit.At{Object: key}, "it is not the partition's last checkpoint: %s: an older one was put back: %s", evidence, remedy)
	}
	if err != nil && audit.IsFault(err) {
		return nil // another process is changing the checkpoint
	}
	return err
}

func taskOf(r *audit.Round, n int) stages.Task {
	return stages.Task{Stage: stages.Fetch, Crawl: r.Crawl, Round: r.Number, Partition: n}
}

// recordedRows counts the planned rows that a checkpoint records. If the checkpoint is wrong,
// recordedRows also returns a description of the problem. If the rows cannot be counted, for example
// because the checkpoint belongs to another partition, the count is negative.
func recordedRows(c *manifest.Checkpoint, p *manifest.Plan, n int) (rows int64, problem string) {
	if c.Plan != p.ID || c.Partition != n {
		return -1, fmt.Sprintf("it belongs to partition %d of plan %q, not to %d of %q: restore the one that belongs here", c.Partition, c.Plan, n, p.ID)
	}
	recorded, err := c.RecordedRows()
	if err != nil {
		return -1, fmt.Sprintf("its bitmap of recorded rows cannot be read: %v", err)
	}
	planned := p.Partitions[n].URLs
	rows = int64(recorded.GetCardinality())
	if rows > planned || rows > 0 && int64(recorded.Maximum()) >= planned {
		problem = fmt.Sprintf("it records %d rows up to row %d, but the partition has only %d rows", rows, recorded.Maximum(), planned)
	}
	return rows, problem
}

// compareCheckpoint compares the result of a task with its checkpoint. rows is the
// number of rows that the checkpoint records.
func compareCheckpoint(a *audit.Audit, r *audit.Round, n int, c *manifest.Checkpoint, rows int64, result *manifest.Result) {
	at := audit.At{Object: layout.Checkpoint(r.Crawl, r.Number, n)}
	planned := r.Plan.Partitions[n].URLs
	switch {
	case !c.Complete:
		a.Wrong(checkpoints, r.Number, at, "it is not complete, though the task has a result: an older one was put back: %s", restoreLast)
	case rows != planned:
		a.Wrong(checkpoints, r.Number, at, "it is complete, but records %d of %d planned URLs: %s", rows, planned, restoreLast)
	case !slices.Equal(c.Files, result.Files):
		for _, d := range audit.Differences(c.Files, result.Files, func(f manifest.File) string { return f.Key }) {
			a.Wrong(checkpoints, r.Number, audit.At{Object: layout.Result(r.Crawl, r.Number, string(stages.Fetch), n), Row: d.Name},
				"the result %s this file: the checkpoint lists %s, the result lists %s: restore the result from a copy", d.How, audit.FileText(d.Want), audit.FileText(d.Got))
		}
	case !slices.Equal(c.Counts, result.Counts):
		a.Wrong(checkpoints, r.Number, at, "its counts %v differ from the counts %v of the result: restore the result from a copy", c.Counts, result.Counts)
	}
}
