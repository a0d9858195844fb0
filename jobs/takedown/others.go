package takedown

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/takedown/rewrite"
	"crawlbatch.io/crawlbatch/stages"
)

// others looks through the objects that no document lists.
func (w *work) others(ctx context.Context) error {
	for o, err := range w.r.Bucket.List(ctx, "") {
		if err != nil {
			return err
		}
		if _, seen := w.seen[o.Key]; seen || strings.HasPrefix(o.Key, layout.TakedownDir) {
			continue
		}
		if err := w.other(ctx, o); err != nil && !errors.Is(err, store.ErrNotFound) { // its owner may remove it meanwhile
			return err
		}
	}
	return nil
}

// other judges an object that no document lists: the rest of an interrupted attempt, something that was
// quarantined, or a file of a person. It stays unless it names a target. Of what cannot be read, nobody can
// tell, so it goes if other objects name a target.
func (w *work) other(ctx context.Context, o store.Info) error {
	c := w.crawlOf(o.Key)
	switch {
	case strings.HasPrefix(o.Key, "compacted/"):
		if name := layout.CrawlOf(o.Key); !slices.Contains(w.found.Compacted, name) {
			w.found.Compacted = append(w.found.Compacted, name)
		}
		return nil
	case len(w.crawls) == 0:
		return nil
	case strings.HasSuffix(o.Key, ".json"):
		return w.otherDocument(ctx, c, o)
	case c != nil && c.pruned != nil && strings.HasPrefix(o.Key, "warc/"):
		return w.keptWARC(ctx, c, o)
	case c == nil && layout.CrawlOf(o.Key) == "" && !strings.HasPrefix(o.Key, "quarantine/"):
		return nil // not an object of crawlbatch
	}
	named, readable, err := rewrite.Mentions(ctx, w.r.Bucket, o.Key, w.m)
	if err != nil || !named && (readable || len(w.kinds) == 0) {
		return err
	}
	if c == nil {
		c = w.crawls[0]
	}
	return w.remove(ctx, c, o.Key)
}

func (w *work) crawlOf(key string) *crawl {
	name := layout.CrawlOf(key)
	for _, c := range w.crawls {
		if c.name == name {
			return c
		}
	}
	return nil
}

// keptWARCs rewrites the WARC files and indexes of a crawl that was pruned as a whole. They stayed because later
// crawls refer to their records.
func (w *work) keptWARCs(ctx context.Context, group *errgroup.Group, c *crawl) error {
	if !c.ledger.Gone() || c.pruned == nil {
		return nil
	}
	for o, err := range w.r.Bucket.List(ctx, layout.WARCDir(c.name)) {
		if err != nil {
			return err
		}
		if strings.HasSuffix(o.Key, ".warc.gz") || strings.HasSuffix(o.Key, ".cdxj") {
			group.Go(func() error { return w.keptWARC(ctx, c, o) })
		}
	}
	return nil
}

// keptWARC rewrites a WARC file or an index that no document lists, because its crawl was pruned.
func (w *work) keptWARC(ctx context.Context, c *crawl, o store.Info) error {
	f, err := describe(ctx, w.r.Bucket, o.Key)
	if err != nil {
		return err
	}
	if f.Dataset = stages.FileWARC; strings.HasSuffix(o.Key, ".cdxj") {
		f.Dataset = stages.FileCDXJ
	}
	return w.file(ctx, c, f, nil)
}

// remove notes that an object is deleted.
func (w *work) remove(ctx context.Context, c *crawl, key string) error {
	if _, done := w.deleted[key]; done {
		return nil
	}
	f, err := describe(ctx, w.r.Bucket, key)
	if err != nil {
		return err
	}
	w.deleted[key] = struct{}{}
	w.found.Deleted = append(w.found.Deleted, key)
	return w.put(ctx, c, stepDelete, key, f.SHA256, 0, "", nil, 0)
}

// otherDocument judges a document that no other document lists.
func (w *work) otherDocument(ctx context.Context, c *crawl, o store.Info) error {
	body, _, err := w.r.Bucket.Get(ctx, o.Key, math.MaxInt64)
	if err != nil {
		return err
	}
	if !w.m.Mentions(body) {
		return nil
	}
	parts := strings.Split(o.Key, "/")
	inRound := c != nil && len(parts) > 2 && strings.HasPrefix(parts[1], "round=")
	switch {
	case parts[0] == "quarantine":
		return w.remove(ctx, w.crawls[0], o.Key)
	case inRound && strings.Contains(o.Key, "/attempts/"):
		return w.attempt(ctx, c, o.Key, body)
	case inRound: // of an audit, a replaced plan, or the rest of something
		return w.remove(ctx, c, o.Key)
	}
	w.found.Named = append(w.found.Named, o.Key)
	return nil
}

// attempt removes the error message of an attempt, which names a target.
func (w *work) attempt(ctx context.Context, c *crawl, key string, old []byte) error {
	var a manifest.Attempt
	if err := manifest.Decode(key, old, &a); err != nil {
		return w.remove(ctx, c, key) // damaged, or of another kind
	}
	if w.m.Mentions([]byte(a.Error)) {
		a.Error = "(the message named something that was taken down)"
	}
	body, err := manifest.Encode(&a)
	if err != nil {
		return err
	}
	if w.m.Mentions(body) {
		return w.remove(ctx, c, key)
	}
	return w.put(ctx, c, stepCheckpoint, key, manifest.Digest(old), int64(len(old)), manifest.Digest(body), bytes.NewReader(body), int64(len(body)))
}
