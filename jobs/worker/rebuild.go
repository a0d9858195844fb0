package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/overlay"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Rebuild recreates the lost parts that a task's result lists, and returns their keys. It
// recomputes the task from its frozen inputs. All inputs must exist, so tasks are rebuilt in the
// order of their stages. It writes nothing unless every part has the digest in the result. These
// are errors that wrap stages.ErrPermanent and name the object: a part with another digest, a
// damaged part, and lost data of a fetch task, which cannot be computed. A task without a result
// has nothing to rebuild.
func (r Runner) Rebuild(ctx context.Context, t stages.Task) (rebuilt []string, err error) {
	committed, _, err := roundstate.LoadResult(ctx, r.Bucket, t)
	if err != nil || committed == nil {
		return nil, err
	}
	missing, err := r.missing(ctx, committed)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, err)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if lost := fetchedBy(t, missing); len(lost) > 0 {
		return nil, fmt.Errorf("rebuild %s: %s was fetched and cannot be made again: restore it: %w", t, someKeys(lost), stages.ErrPermanent)
	}
	again, made, release, err := r.Recompute(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, err)
	}
	defer release()
	if err := sameFiles(committed, again); err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, err)
	}
	for _, f := range missing {
		if err := r.restore(ctx, made, f); err != nil {
			return rebuilt, fmt.Errorf("rebuild %s: %w", t, err)
		}
		rebuilt = append(rebuilt, f.Key)
	}
	return rebuilt, nil
}

// fetchedBy returns the files of a task that were fetched over the network. For a fetch task these
// are all files; for a reparse, only the files of the crawl that fetched.
func fetchedBy(t stages.Task, files []manifest.File) []manifest.File {
	if t.Stage != stages.Fetch {
		return nil
	}
	if !layout.IsReparse(t.Crawl) {
		return files
	}
	own := layout.FetchDir(t.Crawl, t.Round, t.Partition)
	return slices.DeleteFunc(slices.Clone(files), func(f manifest.File) bool { return strings.HasPrefix(f.Key, own) })
}

// missing returns the files of a result that the store does not have. It opens each file, because a
// file that a listing omits may still exist.
func (r Runner) missing(ctx context.Context, committed *manifest.Result) ([]manifest.File, error) {
	var missing []manifest.File
	for _, f := range committed.Files {
		o, err := r.Bucket.Open(ctx, f.Key)
		if errors.Is(err, store.ErrNotFound) {
			missing = append(missing, f)
			continue
		}
		if err != nil {
			return nil, err
		}
		size := o.Size()
		if err := o.Close(); err != nil {
			return nil, err
		}
		if size != f.Bytes {
			return nil, fmt.Errorf("%q has %d bytes, its result says %d: it is damaged: remove it, and rebuild again: %w", f.Key, size, f.Bytes, stages.ErrPermanent)
		}
	}
	return missing, nil
}

// sameFiles checks that a recomputed task gave exactly the files that its result lists, byte for
// byte.
func sameFiles(committed, again *manifest.Result) error {
	made := map[string]manifest.File{}
	for _, f := range again.Files {
		made[f.Key] = f
	}
	for _, f := range committed.Files {
		m, ok := made[f.Key]
		switch {
		case !ok:
			return fmt.Errorf("%q is in the result, but does not follow from its inputs: %w: %w", f.Key, table.ErrDiffers, stages.ErrPermanent)
		case m.SHA256 != f.SHA256 || m.Bytes != f.Bytes:
			return fmt.Errorf("%q would have %d bytes with SHA-256 %s, its result says %d with %s; nothing was written: use the crawlbatch that made it, or restore it: %w",
				f.Key, m.Bytes, m.SHA256, f.Bytes, f.SHA256, stages.ErrPermanent)
		}
	}
	return nil
}

// restore creates one lost part.
func (r Runner) restore(ctx context.Context, made *overlay.Bucket, f manifest.File) error {
	o, err := made.OpenWritten(ctx, f.Key)
	if err != nil {
		return err
	}
	_, err = r.Bucket.Create(ctx, f.Key, o, o.Size())
	if errors.Is(err, store.ErrExists) { // another process has just created it, with other bytes
		err = fmt.Errorf("%w: %w", err, stages.ErrPermanent)
	}
	return errors.Join(err, o.Close())
}

// namedKeys is the largest number of keys that an error lists.
const namedKeys = 5

// someKeys lists the keys of files for an error.
func someKeys(files []manifest.File) string {
	var names []string
	for _, f := range files[:min(len(files), namedKeys)] {
		names = append(names, fmt.Sprintf("%q", f.Key))
	}
	text := strings.Join(names, ", ")
	if more := len(files) - namedKeys; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
