package takedown

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// documents computes the new documents of a crawl. Each lists the new digests of those before it. It
// writes them to w.over, from which the seals are made again.
func (w *work) documents(ctx context.Context, c *crawl) error {
	for _, key := range []string{layout.Ledger(c.name), layout.CrawlManifest(c.name), layout.Politeness(c.name)} {
		if err := w.keeps(ctx, key); err != nil {
			return err
		}
	}
	for _, r := range c.rounds {
		steps := []func(context.Context, *round) error{w.planDocument, w.checkpoints, w.results, w.inputs, w.sealDocument}
		for _, step := range steps {
			if err := step(ctx, r); err != nil {
				return fmt.Errorf("round %d of %s: %w", r.n, c.name, err)
			}
		}
	}
	return nil
}

// keeps notes a document that stays as it is, and whether it names a target.
func (w *work) keeps(ctx context.Context, key string) error {
	w.seen[key] = struct{}{}
	body, _, err := w.r.Bucket.Get(ctx, key, math.MaxInt64)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil && w.m.Mentions(body) {
		w.found.Named = append(w.found.Named, key)
	}
	return err
}

// document reads a document into d, calls edit, and notes the change if edit reports one. The results
// are the document's old and new content, or nil if it stays as it is. A document that does not exist is
// no error.
func (w *work) document(ctx context.Context, c *crawl, step int, key string, d manifest.Document, edit func() (bool, error)) (old, body []byte, err error) {
	w.seen[key] = struct{}{}
	old, _, err = w.r.Bucket.Get(ctx, key, manifest.MaxBytes)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err == nil {
		err = manifest.Decode(key, old, d)
	}
	if err != nil {
		return nil, nil, err
	}
	changed, err := edit()
	if err == nil && changed {
		body, err = manifest.Encode(d)
	}
	if err != nil {
		return nil, nil, err
	}
	stored := old
	if changed {
		stored = body
	}
	if w.m.Mentions(stored) {
		w.found.Named = append(w.found.Named, key)
	}
	if !changed {
		return nil, nil, nil
	}
	return old, body, w.putDocument(ctx, c, step, key, old, body)
}

// putDocument notes the new content of a document, for the store and for the seals.
func (w *work) putDocument(ctx context.Context, c *crawl, step int, key string, old, body []byte) error {
	_, version, err := w.over.Get(ctx, key, math.MaxInt64)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if _, err := store.SwapBytes(ctx, w.over, key, body, version); err != nil {
		return err
	}
	before := ""
	if old != nil {
		before = manifest.Digest(old)
	}
	return w.put(ctx, c, step, key, before, int64(len(old)), manifest.Digest(body), bytes.NewReader(body), int64(len(body)))
}

// renew gives files their new descriptions, and reports whether one has changed. It returns how many
// rows each dataset lost.
func (w *work) renew(files []manifest.File) (lost map[string]int64, recounts map[string]int64, changed bool) {
	lost, recounts = map[string]int64{}, map[string]int64{}
	for i, f := range files {
		n, ok := w.changed[f.Key]
		if !ok {
			continue
		}
		changed = true
		lost[f.Dataset] += f.Rows - n.Rows
		if n.Blocks != "" && f.Blocks == "" {
			n.Blocks = "" // as its writer listed it
		}
		for name, n := range w.recount[f.Key] {
			recounts[name] += n
		}
		files[i] = n
	}
	return lost, recounts, changed
}

// prunedSegments reports whether the rows that a fetch task stored were pruned with the raw captures. A reparse lists
// segments of the crawl that it parses again.
func (w *work) prunedSegments(files []manifest.File) bool {
	return slices.ContainsFunc(files, func(f manifest.File) bool {
		c := w.crawlOf(f.Key)
		return f.Dataset == stages.FileFetches && c != nil && c.pruned != nil && c.pruned.Has(f.Key)
	})
}

// published returns how many rows the published tables of a partition lost. Merge writes the rows of one fetch
// task into them, so they are also the rows that the task lost if its own files were pruned. Links are left out: merge
// adds those of unchanged pages, which the task never counted.
func (w *work) published(ctx context.Context, r *round, partition int) (lost map[string]int64, recounts map[string]int64, err error) {
	var files []manifest.File
	for _, stage := range []stages.Stage{stages.Merge, stages.Publish} {
		res, _, err := roundstate.LoadResultOf(ctx, w.r.Bucket, r.plan, stages.Task{Crawl: r.crawl.name, Round: r.n, Stage: stage, Partition: partition})
		if err != nil {
			return nil, nil, err
		}
		if res == nil {
			continue
		}
		for _, f := range res.Files {
			if strings.HasPrefix(f.Key, "tables/") && f.Dataset != stages.FileLinks && (stage == stages.Merge || f.Dataset == stages.FilePages) {
				files = append(files, f)
			}
		}
	}
	lost, recounts, _ = w.renew(files)
	return lost, recounts, nil
}

// removedName replaces the name of a source that names a target, such as a sitemap of its host.
const removedName = "(taken down)"

// planDocument renews plan.json.
func (w *work) planDocument(ctx context.Context, r *round) error {
	var p manifest.Plan
	key := r.choice.Object
	_, body, err := w.document(ctx, r.crawl, stepResult, key, &p, func() (bool, error) {
		changed := false
		for i, name := range p.Sources {
			if w.m.Mentions([]byte(name)) {
				p.Sources[i], changed = removedName, true
			}
		}
		for i := range p.Partitions {
			part := &p.Partitions[i]
			n, ok := w.changed[part.File.Key]
			if !ok {
				continue
			}
			changed = true
			lost, names := part.File.Rows-n.Rows, r.names[part.Partition]
			part.File = n
			part.URLs, part.Hosts, part.Domains = part.URLs-lost, part.Hosts-names.hosts, part.Domains-names.domains
			p.URLs, p.Hosts, p.Domains = p.URLs-lost, p.Hosts-names.hosts, p.Domains-names.domains
		}
		for _, f := range []*manifest.File{p.RefusedFile, p.OptOutFile} {
			if f == nil {
				continue
			}
			if n, ok := w.changed[f.Key]; ok {
				p.Refused = lower(p.Refused, "", nil, w.recount[f.Key])
				*f, changed = n, true
			}
		}
		return changed, nil
	})
	if err != nil || body == nil {
		return err
	}
	r.plan = &p
	e := *r.choice
	e.SHA256 = manifest.ContentDigest(body)
	return w.record(ctx, r.crawl, e)
}

// record notes a ledger entry that names a changed document again.
func (w *work) record(ctx context.Context, c *crawl, e manifest.Entry) error {
	e.N, e.At, e.Digest = 0, "", ""
	c.entries = append(c.entries, e)
	_, err := w.r.writer().Append(ctx, w.over, c.name, func(*ledger.Ledger) ([]manifest.Entry, error) {
		return []manifest.Entry{e}, nil
	})
	return err
}

// checkpoints renews the checkpoints of a round.
func (w *work) checkpoints(ctx context.Context, r *round) error {
	for _, part := range r.plan.Partitions {
		var k manifest.Checkpoint
		_, _, err := w.document(ctx, r.crawl, stepCheckpoint, layout.Checkpoint(r.crawl.name, r.n, part.Partition), &k, func() (bool, error) {
			lost, recounts, changed := w.renew(k.Files)
			if w.prunedSegments(k.Files) {
				var err error
				if lost, recounts, err = w.published(ctx, r, part.Partition); err != nil {
					return false, err
				}
			}
			if n := slices.Clone(k.Counts); len(lost) > 0 {
				k.Counts = lower(k.Counts, stages.Fetch, lost, recounts)
				changed = changed || !slices.Equal(n, k.Counts)
			}
			if dropped := r.dropped[part.Partition]; len(dropped) > 0 {
				changed = true
				if err := compactRows(&k, dropped); err != nil {
					return false, err
				}
			}
			if w.forgetHosts(&k) {
				changed = true
			}
			return changed, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compactRows removes rows from the bitmap of a checkpoint and renumbers the rows after them. dropped is
// ascending.
func compactRows(k *manifest.Checkpoint, dropped []int32) error {
	rows, err := k.RecordedRows()
	if err != nil {
		return err
	}
	kept, gone := roaring.New(), 0
	for it := rows.Iterator(); it.HasNext(); {
		row := it.Next()
		for gone < len(dropped) && uint32(dropped[gone]) < row {
			gone++
		}
		if gone < len(dropped) && uint32(dropped[gone]) == row {
			continue
		}
		kept.Add(row - uint32(gone))
	}
	kept.RunOptimize()
	k.Recorded, err = kept.ToBytes()
	return err
}

// forgetHosts removes the hosts of targets from a checkpoint. All rounds are sealed, so nothing waits.
func (w *work) forgetHosts(k *manifest.Checkpoint) (changed bool) {
	changed = w.forgetNames(&k.Hosts, &k.Answerers)
	if body, err := manifest.Encode(k); err == nil && w.m.Mentions(body) {
		k.Activity, k.Retries, k.Robots = nil, nil, nil
		changed = true
	}
	return changed
}

func (w *work) forgetNames(hosts *[]manifest.HostClock, answerers *[]manifest.Answerer) (changed bool) {
	n := len(*hosts) + len(*answerers)
	*hosts = slices.DeleteFunc(*hosts, func(h manifest.HostClock) bool { return w.m.Host(h.Host) })
	*answerers = slices.DeleteFunc(*answerers, func(a manifest.Answerer) bool { return w.m.Host(a.Host()) })
	return len(*hosts)+len(*answerers) != n
}

// results renews the results of a round.
func (w *work) results(ctx context.Context, r *round) error {
	for _, stage := range stages.Of(r.plan) {
		for _, t := range roundstate.Tasks(r.plan, stage) {
			var res manifest.Result
			old, body, err := w.document(ctx, r.crawl, stepResult, roundstate.ResultKey(t), &res, func() (bool, error) {
				lost, recounts, changed := w.renew(res.Files)
				if stage == stages.Fetch && w.prunedSegments(res.Files) {
					var err error
					if lost, recounts, err = w.published(ctx, r, t.Partition); err != nil {
						return false, err
					}
				}
				r.fromOthers(t, recounts)
				if n := slices.Clone(res.Counts); len(lost)+len(recounts) > 0 {
					res.Counts = lower(res.Counts, stage, lost, recounts)
					changed = changed || !slices.Equal(n, res.Counts)
				}
				forgotten := w.forgetNames(&res.Hosts, &res.Answerers)
				return changed || forgotten, nil
			})
			if err != nil {
				return err
			}
			if body != nil {
				w.digests[manifest.Digest(old)] = manifest.Digest(body)
			}
		}
	}
	return nil
}

// inputs renews the frozen inputs of a round's stages.
func (w *work) inputs(ctx context.Context, r *round) error {
	for _, stage := range stages.Order {
		var in manifest.Inputs
		_, body, err := w.document(ctx, r.crawl, stepInputs, layout.Inputs(r.crawl.name, r.n, string(stage)), &in, func() (changed bool, _ error) {
			for i := range in.Tasks {
				if n, ok := w.digests[in.Tasks[i].SHA256]; ok {
					in.Tasks[i].SHA256, changed = n, true
				}
			}
			return changed, nil
		})
		if err != nil {
			return err
		}
		if e := r.crawl.ledger.Frozen(r.n, stage); body != nil && e != nil {
			e.SHA256 = manifest.ContentDigest(body)
			if err := w.record(ctx, r.crawl, *e); err != nil {
				return err
			}
		}
	}
	return nil
}

// sealDocument makes the manifests and the seal of a round again. Manifests whose contents change have
// new keys.
func (w *work) sealDocument(ctx context.Context, r *round) error {
	old := map[string]bool{}
	for _, l := range r.seal.Manifests {
		w.seen[l.Key] = struct{}{}
		old[l.Key] = true
	}
	key := layout.Sealed(r.crawl.name, r.n)
	before, _, err := w.r.Bucket.Get(ctx, key, manifest.MaxBytes)
	if err != nil {
		return err
	}
	w.seen[key] = struct{}{}
	if len(r.crawl.objects) == 0 {
		return nil
	}
	s, err := roundstate.Reseal(ctx, w.over, r.plan, r.seal, func(f manifest.File, body []byte) error {
		if old[f.Key] {
			old[f.Key] = false
			return nil
		}
		return w.putDocument(ctx, r.crawl, stepManifest, f.Key, nil, body)
	})
	if err != nil {
		return err
	}
	body, err := manifest.Encode(s)
	if err != nil || bytes.Equal(body, before) {
		return err
	}
	if err := w.putDocument(ctx, r.crawl, stepSeal, key, before, body); err != nil {
		return err
	}
	for _, l := range r.seal.Manifests {
		if old[l.Key] {
			f, err := describe(ctx, w.r.Bucket, l.Key)
			if err != nil {
				return err
			}
			if err := w.put(ctx, r.crawl, stepDelete, l.Key, f.SHA256, 0, "", nil, 0); err != nil {
				return err
			}
		}
	}
	e := r.crawl.ledger.Newest(manifest.EntrySealed, r.n)
	if e == nil {
		return fmt.Errorf("the ledger has no entry for the seal: run `crawlbatch run --month %s`: %w", r.crawl.name, stages.ErrPermanent)
	}
	e.SHA256 = manifest.ContentDigest(body)
	e.Generation++
	return w.record(ctx, r.crawl, *e)
}
