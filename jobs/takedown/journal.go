package takedown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// changing is the number of objects that are replaced at the same time.
const changing = 4

// publish stores the lists of the changed objects, and then takedown.json. Until takedown.json exists,
// nothing is changed.
func (w *work) publish(ctx context.Context, h *roundstate.Hold) error {
	pending := &manifest.Removing{Header: manifest.Header{Version: w.r.Version}, ID: w.id, At: w.r.now()}
	for _, c := range w.crawls {
		if len(c.objects) == 0 {
			continue
		}
		list := &manifest.Removal{Header: manifest.Header{Version: w.r.Version}, Crawl: c.name, At: pending.At, Objects: c.objects, Entries: c.entries}
		body, err := manifest.Encode(list)
		if err != nil {
			return err
		}
		digest := manifest.ContentDigest(body)
		key := layout.Removal(c.name, digest)
		if _, err := store.CreateBytes(ctx, w.r.Bucket, key, body); err != nil {
			return err
		}
		pending.Crawls = append(pending.Crawls, manifest.RemovalName{Crawl: c.name, Object: key, SHA256: digest})
	}
	if len(pending.Crawls) == 0 {
		return nil
	}
	if err := h.Check(ctx); err != nil {
		return err
	}
	if _, err := manifest.Create(ctx, w.r.Bucket, layout.Takedown(), pending); err != nil {
		return err
	}
	// Whoever has taken the claim over meanwhile has deleted the new contents, and nothing is changed yet.
	if err := h.Check(ctx); err != nil {
		return errors.Join(err, w.r.removePending(context.WithoutCancel(ctx), w.id))
	}
	return nil
}

// finish changes the objects of a takedown whose new contents are complete, and deletes the remains of
// a takedown that died before. It reports whether there was one to finish.
func (r *Request) finish(ctx context.Context, h *roundstate.Hold) (bool, error) {
	var pending manifest.Removing
	_, _, err := manifest.Load(ctx, r.Bucket, layout.Takedown(), &pending)
	if errors.Is(err, store.ErrNotFound) {
		return false, r.removeRemains(ctx, h)
	}
	if err != nil {
		return false, err
	}
	lists := make([]*manifest.Removal, len(pending.Crawls))
	for i, n := range pending.Crawls {
		lists[i] = &manifest.Removal{}
		_, digest, err := manifest.LoadContents(ctx, r.Bucket, n.Object, lists[i])
		if errors.Is(err, store.ErrNotFound) {
			began, failed := r.began(ctx)
			if failed != nil {
				return true, failed
			}
			if began == "" { // the takedown died while another one took its claim over and deleted its lists
				return false, r.removePending(ctx, pending.ID)
			}
		}
		if err == nil && digest != n.SHA256 {
			err = fmt.Errorf("%q was changed since the takedown began: restore it from a copy: %w", n.Object, manifest.ErrCorrupt)
		}
		if err != nil {
			return true, err
		}
	}
	if err := h.Check(ctx); err != nil {
		return true, err
	}
	for _, n := range pending.Crawls {
		if err := r.writer().BeginTakedown(ctx, r.Bucket, n.Crawl, n.Object, n.SHA256); err != nil {
			return true, err
		}
	}
	for _, list := range lists {
		if err := r.change(ctx, h, pending.ID, list); err != nil {
			return true, err
		}
	}
	if err := h.Check(ctx); err != nil {
		return true, err
	}
	for i, n := range pending.Crawls {
		if err := r.writer().EndTakedown(ctx, r.Bucket, n.Object, lists[i]); err != nil {
			return true, err
		}
	}
	if err := h.Check(ctx); err != nil {
		return true, err
	}
	if err := r.removeStaged(ctx, layout.TakedownDir+pending.ID+"/"); err != nil {
		return true, err
	}
	return true, r.removePending(ctx, pending.ID)
}

// removePending deletes takedown.json if it is that of the takedown with the given ID.
func (r *Request) removePending(ctx context.Context, id string) error {
	var pending manifest.Removing
	_, _, err := manifest.Load(ctx, r.Bucket, layout.Takedown(), &pending)
	if errors.Is(err, store.ErrNotFound) || err == nil && pending.ID != id {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Bucket.Delete(ctx, layout.Takedown())
}

// began returns a crawl in whose ledger a takedown has begun and not ended, or "".
func (r *Request) began(ctx context.Context) (string, error) {
	crawls, err := roundstate.Crawls(ctx, r.Bucket)
	if err != nil {
		return "", err
	}
	for _, crawl := range crawls {
		l, err := ledger.Load(ctx, r.Bucket, crawl)
		if err != nil {
			return "", err
		}
		if l.TakedownUnfinished() {
			return crawl, nil
		}
	}
	return "", nil
}

// removeRemains deletes what a takedown left that died before it changed anything. A takedown that takes h over has another
// ID and another time in its lists, so nothing that was listed before the check is its own.
func (r *Request) removeRemains(ctx context.Context, h *roundstate.Hold) error {
	crawl, err := r.began(ctx)
	if err != nil {
		return err
	}
	if crawl != "" { // the new contents are the only ones
		return fmt.Errorf("%q is gone, but the ledger of %s says that a takedown is not finished: restore it from a copy; nothing was deleted: %w", layout.Takedown(), crawl, manifest.ErrCorrupt)
	}
	lists, err := r.unnamedLists(ctx)
	if err != nil {
		return err
	}
	staged, err := r.keysIn(ctx, layout.TakedownDir)
	if err == nil {
		err = h.Check(ctx)
	}
	if err != nil {
		return err
	}
	return errors.Join(r.remove(ctx, lists), r.remove(ctx, staged))
}

// removeStaged deletes the new contents in the folder of a takedown.
func (r *Request) removeStaged(ctx context.Context, folder string) error {
	keys, err := r.keysIn(ctx, folder)
	if err != nil {
		return err
	}
	return r.remove(ctx, keys)
}

// keysIn lists the objects in a folder, except takedown.json.
func (r *Request) keysIn(ctx context.Context, folder string) (keys []string, err error) {
	for o, err := range r.Bucket.List(ctx, folder) {
		if err != nil {
			return nil, err
		}
		if o.Key != layout.Takedown() {
			keys = append(keys, o.Key)
		}
	}
	return keys, nil
}

// unnamedLists lists the lists of changed objects that no ledger names, of a takedown that died before it changed
// anything.
func (r *Request) unnamedLists(ctx context.Context) (keys []string, err error) {
	crawls, err := roundstate.Crawls(ctx, r.Bucket)
	if err != nil {
		return nil, err
	}
	for _, crawl := range crawls {
		l, err := ledger.Load(ctx, r.Bucket, crawl)
		if err != nil {
			return nil, err
		}
		lists, err := r.keysIn(ctx, layout.RemovalDir(crawl))
		if err != nil {
			return nil, err
		}
		keys = append(keys, slices.DeleteFunc(lists, l.NamesRemoval)...)
	}
	return keys, nil
}

// remove deletes objects.
func (r *Request) remove(ctx context.Context, keys []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * changing)
	for _, key := range keys {
		group.Go(func() error { return r.Bucket.Delete(ctx, key) })
	}
	return group.Wait()
}

// change gives the objects of a list their new contents, step by step.
func (r *Request) change(ctx context.Context, h *roundstate.Hold, id string, list *manifest.Removal) error {
	for rest := list.Objects; len(rest) > 0; {
		if err := h.Check(ctx); err != nil {
			return err
		}
		n := slices.IndexFunc(rest, func(o manifest.ChangedObject) bool { return o.Step != rest[0].Step })
		if n < 0 {
			n = len(rest)
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(changing)
		for _, o := range rest[:n] {
			group.Go(func() error { return r.changeObject(ctx, id, &o) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// changeObject gives an object its new content, unless it has it.
func (r *Request) changeObject(ctx context.Context, id string, o *manifest.ChangedObject) error {
	have, version, err := r.content(ctx, o.Key, io.Discard)
	if errors.Is(err, store.ErrNotFound) {
		have, version, err = "", "", nil
	}
	switch {
	case err != nil:
		return err
	case have == o.New:
		return nil
	case have != o.Old:
		return fmt.Errorf("%q has neither the content that it had when the takedown began nor the new one: restore it from a copy of either: %w", o.Key, manifest.ErrCorrupt)
	case o.New == "":
		return r.Bucket.Delete(ctx, o.Key)
	}
	staged := layout.Staged(id, o.Staged)
	body, err := os.CreateTemp(r.Scratch, "staged-") // a store may read the body several times
	if err != nil {
		return fmt.Errorf("create scratch file: %w", err)
	}
	defer body.Close()                             // nolint:errcheck // a temporary file
	if err := os.Remove(body.Name()); err != nil { // it has no name, so a kill leaves nothing
		return err
	}
	content, _, err := r.content(ctx, staged, body)
	if err != nil {
		return fmt.Errorf("the new content of %q: %w; if it is gone, restore it from a copy", o.Key, err)
	}
	if content != o.New {
		return fmt.Errorf("%q is damaged: it was the new content of %q: restore it from a copy: %w", staged, o.Key, manifest.ErrCorrupt)
	}
	size, err := body.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = r.Bucket.Swap(ctx, o.Key, body, size, version)
	}
	return err
}

// content copies an object to a writer, and returns its digest and version.
func (r *Request) content(ctx context.Context, key string, to io.Writer) (digest string, v store.Version, err error) {
	obj, err := r.Bucket.Open(ctx, key)
	if err != nil {
		return "", "", err
	}
	sum := manifest.NewSum()
	if err = copyObject(io.MultiWriter(to, sum), obj); err == nil {
		v, err = obj.Version()
	}
	return sum.File().SHA256, v, errors.Join(err, obj.Close())
}
