package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/overlay"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/quarantine"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Rebuild recreates the lost and damaged parts that a task's result lists, and returns their keys.
// Rebuild recomputes the task from its frozen inputs. All inputs must exist, so the caller rebuilds
// tasks in the order of their stages. If every recomputed part has the digest in the result, Rebuild
// moves damaged parts to quarantine/ and creates the lost and damaged parts. Otherwise it writes
// nothing. If a recomputed part has another digest, or if fetched data is lost or damaged, the error
// names the object and wraps stages.ErrPermanent. Rebuild also recreates a lost result. A task that
// never had a result has nothing to rebuild.
func (r Runner) Rebuild(ctx context.Context, t stages.Task) (rebuilt []string, err error) {
	committed, _, err := roundstate.LoadResult(ctx, r.Bucket, t)
	if err != nil && !errors.Is(err, manifest.ErrCorrupt) {
		return nil, err
	}
	if committed == nil {
		return r.rebuildResult(ctx, t, err != nil)
	}
	missing, err := r.lostFiles(ctx, t, committed)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, err)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if lost := fetchedFiles(t, missing); len(lost) > 0 {
		return nil, fmt.Errorf("rebuild %s: %s was fetched and cannot be recreated: restore it from a copy: %w", t, someKeys(lost), stages.ErrPermanent)
	}
	recomputed, made, release, err := r.Recompute(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, r.prunedInputs(ctx, t, err))
	}
	defer release()
	if err := sameFiles(missing, recomputed); err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, r.prunedInputs(ctx, t, err))
	}
	for _, f := range missing {
		if err := r.restorePart(ctx, made, f); err != nil {
			return rebuilt, fmt.Errorf("rebuild %s: %w", t, err)
		}
		rebuilt = append(rebuilt, f.Key)
	}
	return rebuilt, nil
}

// rebuildResult recreates a lost result and its missing parts. A task had a result if a later stage
// froze the result's digest, or if the round is sealed. A task that never had a result has nothing
// to rebuild. If the result is damaged, rebuildResult moves the damaged result to quarantine/
// first.
func (r Runner) rebuildResult(ctx context.Context, t stages.Task, damaged bool) (rebuilt []string, err error) {
	l, err := ledger.Load(ctx, r.Bucket, t.Crawl)
	if err != nil {
		return nil, err
	}
	key := roundstate.ResultKey(t)
	lost := roundstate.CheckResult(l, t)
	switch {
	case t.Stage == stages.Fetch && !layout.IsReparse(t.Crawl):
		return nil, lost
	case lost == nil && damaged:
		to, err := quarantine.Move(ctx, r.Bucket, key)
		if err == nil {
			r.Log.Warn("a damaged result was moved: the next run makes it again", "task", t.String(), "object", key, "to", to)
		}
		return nil, err
	case lost == nil:
		return nil, nil
	}
	want, err := roundstate.ResultDigest(ctx, r.Bucket, l, t)
	if err != nil {
		return nil, err
	}
	recomputed, made, release, err := r.Recompute(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, r.prunedInputs(ctx, t, err))
	}
	defer release()
	body, err := encodeAs(recomputed, want)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, r.prunedInputs(ctx, t, err))
	}
	missing, err := r.lostFiles(ctx, t, recomputed)
	if err == nil && want == "" {
		err = r.requireAbsent(ctx, missing)
	}
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", t, err)
	}
	for _, f := range missing {
		if err := r.restorePart(ctx, made, f); err != nil {
			return rebuilt, fmt.Errorf("rebuild %s: %w", t, err)
		}
		rebuilt = append(rebuilt, f.Key)
	}
	if damaged {
		if _, err := quarantine.Move(ctx, r.Bucket, key); err != nil {
			return rebuilt, fmt.Errorf("rebuild %s: %w", t, err)
		}
	}
	if _, err := store.CreateBytes(ctx, r.Bucket, key, body); err != nil {
		return rebuilt, fmt.Errorf("rebuild %s: %w", t, err)
	}
	return append(rebuilt, key), nil
}

// requireAbsent returns an error if any of the files exists: without the lost result, nobody can tell
// whether the existing file or the recreated file is right.
func (r Runner) requireAbsent(ctx context.Context, files []manifest.File) error {
	for _, f := range files {
		o, err := r.Bucket.Open(ctx, f.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		return errors.Join(fmt.Errorf("%q differs from the recreated file; nothing was written: use the crawlbatch version that made it, or restore its result from a copy: %w", f.Key, stages.ErrPermanent), o.Close())
	}
	return nil
}

// encodeAs encodes a result, and returns an error if the encoding does not have the wanted digest. An empty
// digest allows any encoding.
func encodeAs(result *manifest.Result, want string) ([]byte, error) {
	body, err := manifest.Encode(result)
	if err != nil || want == "" || manifest.Digest(body) == want {
		return body, err
	}
	return nil, fmt.Errorf("the recreated result does not have the SHA-256 %s that a later stage froze; nothing was written: use the crawlbatch version that made it, or restore it from a copy: %w", want, stages.ErrPermanent)
}

// fetchedFiles returns those files of a task that came from the network. For a fetch task, these
// are all its files. For a fetch task of a reparse, these are the files of the crawl that is parsed
// again.
func fetchedFiles(t stages.Task, files []manifest.File) []manifest.File {
	if t.Stage != stages.Fetch {
		return nil
	}
	if !layout.IsReparse(t.Crawl) {
		return files
	}
	own := layout.FetchDir(t.Crawl, t.Round, t.Partition)
	return slices.DeleteFunc(slices.Clone(files), func(f manifest.File) bool { return strings.HasPrefix(f.Key, own) })
}

// prunedInputs returns err, the error of a failed recomputation. If the crawl's working data, its raw captures or
// earlier months were pruned, it adds this reason, and what still works.
func (r Runner) prunedInputs(ctx context.Context, t stages.Task, err error) error {
	const advice = "restore it from a copy, because it cannot be computed again: "
	if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, stages.ErrPermanent) {
		return err // such as an outage of the store
	}
	l, failed := ledger.Load(ctx, r.Bucket, t.Crawl)
	if failed != nil {
		return err
	}
	if raw := l.CheckRaw(); raw != nil {
		return fmt.Errorf(advice+"%w (%v): %w", raw, err, stages.ErrPermanent)
	}
	if t.Stage == stages.Fetch {
		return err
	}
	if working := l.CheckWorking(); working != nil {
		month, _ := layout.MonthOf(t.Crawl)
		return fmt.Errorf(advice+"%[1]w; or make all tables of the month again from its WARC files, as another crawl: `crawlbatch reparse --month %s --as %[2]srN`: %[3]w", working, month, stages.ErrPermanent)
	}
	sealed, failed := roundstate.History(ctx, r.Bucket, t.Crawl)
	i := slices.IndexFunc(sealed, func(s *manifest.Sealed) bool { return s.Pruned })
	if failed != nil || i < 0 {
		return err
	}
	return fmt.Errorf(advice+"the tables of %s and perhaps of other earlier months were %w (%v): %w", sealed[i].Crawl, ledger.ErrPruned, err, stages.ErrPermanent)
}

// lostFiles returns the files of a result that are lost or damaged in the store, except pruned
// files. It compares the digest of each file that can be recreated, but only the size of a fetched
// file. It opens every file instead of listing them, because a listing may omit a file.
func (r Runner) lostFiles(ctx context.Context, t stages.Task, committed *manifest.Result) ([]manifest.File, error) {
	pruned, err := ledger.ReadAllPruned(ctx, r.Bucket, t.Crawl)
	if err != nil {
		return nil, err
	}
	var missing []manifest.File
	fetched := map[string]bool{}
	for _, f := range fetchedFiles(t, committed.Files) {
		fetched[f.Key] = true
	}
	for _, f := range committed.Files {
		if pruned.Has(f.Key) {
			continue
		}
		whole, err := r.isWhole(ctx, f, !fetched[f.Key])
		if err != nil {
			return nil, err
		}
		if !whole {
			missing = append(missing, f)
		}
	}
	return missing, nil
}

// digestBuffer is the number of bytes that isWhole reads at a time.
const digestBuffer = 4 << 20

// isWhole reports whether the store has a file with the right size and, if read is true, with the
// right digest.
func (r Runner) isWhole(ctx context.Context, f manifest.File, read bool) (bool, error) {
	o, err := r.Bucket.Open(ctx, f.Key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if o.Size() != f.Bytes || !read {
		return o.Size() == f.Bytes, o.Close()
	}
	h := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(o, 0, o.Size()), make([]byte, min(digestBuffer, o.Size()+1)))
	if err = errors.Join(err, o.Close()); err != nil {
		return false, fmt.Errorf("read %q: %w", f.Key, err)
	}
	return hex.EncodeToString(h.Sum(nil)) == f.SHA256, nil
}

// sameFiles returns an error unless a recomputed task gave the missing files, with the digests in the
// committed result. Its other files may differ, if months that the task read were pruned since then.
func sameFiles(missing []manifest.File, recomputed *manifest.Result) error {
	made := map[string]manifest.File{}
	for _, f := range recomputed.Files {
		made[f.Key] = f
	}
	for _, f := range missing {
		m, ok := made[f.Key]
		switch {
		case !ok:
			return fmt.Errorf("the result lists %q, but recomputing the task does not give this file: %w: %w", f.Key, table.ErrDiffers, stages.ErrPermanent)
		case m.SHA256 != f.SHA256 || m.Bytes != f.Bytes:
			return fmt.Errorf("%q would have %d bytes with SHA-256 %s, its result says %d with %s; nothing was written: use the crawlbatch that made it, or restore it: %w",
				f.Key, m.Bytes, m.SHA256, f.Bytes, f.SHA256, stages.ErrPermanent)
		}
	}
	return nil
}

// restorePart creates one part. If the store has a damaged part with the same key, restorePart
// first moves this part to quarantine/.
func (r Runner) restorePart(ctx context.Context, made *overlay.Bucket, f manifest.File) error {
	o, err := made.OpenWritten(ctx, f.Key)
	if err != nil {
		return err
	}
	if _, err := quarantine.Move(ctx, r.Bucket, f.Key); err != nil {
		return errors.Join(err, o.Close())
	}
	_, err = r.Bucket.Create(ctx, f.Key, o, o.Size())
	if errors.Is(err, store.ErrExists) { // another process has just created the part, with other bytes
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
