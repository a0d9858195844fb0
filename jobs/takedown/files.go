package takedown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/takedown/rewrite"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// everyFile rewrites the files of all crawls, as many at a time as there are cores. Rows that refer to a
// removed record or planned row are found after it, so there are several passes. Rows may also refer to
// records of a month that was pruned as a whole. No document lists these WARC files any more.
func (w *work) everyFile(ctx context.Context) error {
	type pass = func(context.Context, *errgroup.Group, *crawl) error
	ofRounds := func(do func(context.Context, *errgroup.Group, *round) error) pass {
		return func(ctx context.Context, g *errgroup.Group, c *crawl) error {
			for _, r := range c.rounds {
				if err := do(ctx, g, r); err != nil {
					return err
				}
			}
			return nil
		}
	}
	ofResults := func(warcs bool) pass {
		return ofRounds(func(ctx context.Context, g *errgroup.Group, r *round) error {
			return w.files(ctx, g, r, func(f *manifest.File) bool { return (f.Dataset == stages.FileWARC) == warcs })
		})
	}
	for _, do := range []pass{ofRounds(w.planFiles), ofResults(true), w.keptWARCs, ofResults(false)} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		var failed error
		for _, c := range w.crawls {
			if failed == nil {
				failed = do(ctx, group, c)
			}
		}
		if err := group.Wait(); err != nil { // the first error, which may have caused failed
			return err
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

func (w *work) planFiles(ctx context.Context, group *errgroup.Group, r *round) error {
	rewriteFile := func(f manifest.File, then func(*rewrite.Rewritten, *os.File) error) {
		group.Go(func() error { return w.file(ctx, r.crawl, f, then) })
	}
	for i := range r.plan.Partitions {
		part := &r.plan.Partitions[i]
		rewriteFile(part.File, func(n *rewrite.Rewritten, _ *os.File) error {
			names, err := w.countNames(ctx, part.File.Key, n)
			w.mu.Lock()
			defer w.mu.Unlock()
			r.dropped[part.Partition], r.names[part.Partition] = n.DroppedRows, names
			return err
		})
	}
	for _, f := range r.plan.Lists() {
		rewriteFile(f, nil)
	}
	return ctx.Err()
}

// files rewrites those files of a round's results for which want returns true.
func (w *work) files(ctx context.Context, group *errgroup.Group, r *round, want func(*manifest.File) bool) error {
	for _, stage := range stages.Of(r.plan) {
		for _, t := range roundstate.Tasks(r.plan, stage) {
			res, _, err := roundstate.LoadResultOf(ctx, w.r.Bucket, r.plan, t)
			if err == nil && res == nil {
				err = fmt.Errorf("%s has no result, though its round is sealed: restore it: %w", t, stages.ErrPermanent)
			}
			if err != nil {
				return err
			}
			for _, f := range res.Files {
				if want(&f) {
					group.Go(func() error { return w.file(ctx, r.crawl, f, nil) })
				}
			}
		}
	}
	for _, dataset := range publish.Accounts {
		if want(&manifest.File{Dataset: dataset}) {
			group.Go(func() error { return w.account(ctx, r, dataset) })
		}
	}
	return nil
}

// account rewrites the part of a dataset that says what a round took, because its error messages may name
// a target. No result lists it, so its new content is also where the seal is made again.
func (w *work) account(ctx context.Context, r *round, dataset string) error {
	f, err := describe(ctx, w.r.Bucket, publish.AccountKey(r.plan, dataset))
	if errors.Is(err, store.ErrNotFound) {
		return nil // the round was pruned
	}
	if err != nil {
		return err
	}
	f.Dataset = dataset
	return w.file(ctx, r.crawl, f, func(n *rewrite.Rewritten, body *os.File) error {
		_, err := w.over.Create(ctx, f.Key, body, n.File.Bytes)
		return err
	})
}

// file rewrites a file that a document lists. If the file changes, file calls then, unless it is nil, with
// the new content. Several goroutines may call file at the same time, for different files.
func (w *work) file(ctx context.Context, c *crawl, f manifest.File, then func(*rewrite.Rewritten, *os.File) error) error {
	w.mu.Lock()
	_, done := w.seen[f.Key]
	w.seen[f.Key] = struct{}{}
	w.mu.Unlock()
	if done || c.pruned != nil && c.pruned.Has(f.Key) {
		return nil
	}
	rw := *w.rw
	var err error
	if rw.Scratch, err = os.MkdirTemp(w.rw.Scratch, "file-"); err != nil {
		return err
	}
	defer os.RemoveAll(rw.Scratch) // nolint:errcheck // temporary files
	checked := manifest.NewChecked(w.r.Bucket)
	checked.Add("restore it from a copy: `crawlbatch verify` says more", f)
	rw.Bucket, rw.Clusters = checked, c.clusters
	n, err := rw.File(ctx, &f)
	if errors.Is(err, store.ErrNotFound) && (f.Dataset == stages.FileWARC || f.Dataset == stages.FileCDXJ) {
		return w.missing(ctx, f.Key, err)
	}
	if err != nil || n == nil {
		return err
	}
	if n.File.SHA256 == f.SHA256 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.found.Mentions += n.Mentions
		return nil
	}
	body, err := os.Open(n.Path)
	if err != nil {
		return err
	}
	defer body.Close() // nolint:errcheck // it was only read
	lost, err := countRows(ctx, w.r.Bucket, f, n)
	if err == nil {
		err = w.put(ctx, c, stepData, f.Key, f.SHA256, f.Bytes, n.File.SHA256, body, n.File.Bytes)
	}
	if err == nil && then != nil {
		err = then(n, body)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found.Mentions += n.Mentions
	k := w.kind(f.Key)
	k.Dropped += n.Dropped
	k.Cleared += n.Cleared
	k.Adjusted += n.Adjusted
	k.Tombstones += n.Tombstones
	w.changed[f.Key] = n.File
	if len(n.Removed) > 0 {
		w.rw.Removed[f.Key] = n.Removed
	}
	w.recount[f.Key] = lost
	return nil
}

// missing notes a lost WARC file or index, so that its loss does not keep other objects from being changed. It
// returns err if the object is there: then something else was not found.
func (w *work) missing(ctx context.Context, key string, err error) error {
	o, failed := w.r.Bucket.Open(ctx, key)
	if failed == nil {
		return errors.Join(err, o.Close())
	}
	if !errors.Is(failed, store.ErrNotFound) {
		return failed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found.Missing = append(w.found.Missing, key)
	return nil
}

// kind returns the counts of objects like key. The caller holds w.mu.
func (w *work) kind(key string) *Kind {
	name := kindOf(key)
	if w.kinds[name] == nil {
		w.kinds[name] = &Kind{Name: name}
	}
	return w.kinds[name]
}

// put notes that an object changes, and stores its new content. Without a digest, it is deleted.
func (w *work) put(ctx context.Context, c *crawl, step int, key, old string, size int64, digest string, body io.ReaderAt, bytes int64) error {
	o := manifest.ChangedObject{Key: key, Old: old, New: digest, Step: step}
	w.mu.Lock()
	if old != "" && digest != "" {
		k := w.kind(key)
		k.Objects++
		k.Bytes += size
	}
	store := w.id != "" && digest != ""
	if store {
		w.staged++
		o.Staged = w.staged
	}
	c.objects = append(c.objects, o)
	w.mu.Unlock()
	if !store {
		return nil
	}
	_, err := w.r.Bucket.Create(ctx, layout.Staged(w.id, o.Staged), body, bytes)
	return err
}

// describe returns the digests of an object that no document lists.
func describe(ctx context.Context, b store.Bucket, key string) (f manifest.File, err error) {
	obj, err := b.Open(ctx, key)
	if err != nil {
		return f, err
	}
	sum := manifest.NewSum()
	err = copyObject(sum, obj)
	f = sum.File()
	f.Key = key
	return f, errors.Join(err, obj.Close())
}

// copyObject copies an object with few requests to the store.
func copyObject(to io.Writer, obj store.Object) error {
	_, err := io.CopyBuffer(to, io.NewSectionReader(obj, 0, obj.Size()), make([]byte, max(1, min(obj.Size(), copied))))
	return err
}

// copied is the number of bytes that copyObject reads at a time.
const copied = 4 << 20
