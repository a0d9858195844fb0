package roundstate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// RebuildInputs recreates a stage's inputs.json if it is lost or changed, and returns its key, or ""
// if nothing is lost. The recreated document must have the digest in the ledger. The results that
// the stage reads must exist.
func RebuildInputs(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage, l *ledger.Ledger, w ledger.Writer) (string, error) {
	e := l.Frozen(p.Round, stage)
	if e == nil {
		return "", nil
	}
	err := l.Check(ctx, b, e, &manifest.Inputs{})
	if !broken(err) {
		return "", err
	}
	tasks, err := feeding(ctx, b, p, stage)
	if err != nil {
		return "", err
	}
	in := &manifest.Inputs{Header: manifest.Header{Version: w.Version}, Stage: string(stage), Plan: p.ID, Tasks: tasks}
	return e.Object, storeRecreated(ctx, b, e, in)
}

// feeding returns the entries for the inputs.json of a reduce stage or of a reparse's fetch stage.
func feeding(ctx context.Context, b store.Bucket, p *manifest.Plan, stage stages.Stage) ([]manifest.InputTask, error) {
	if stage != stages.Fetch {
		return digestsFeeding(ctx, b, p, stage)
	}
	of, err := ReparseOf(ctx, b, p.Crawl)
	if err != nil {
		return nil, err
	}
	return digestsOfSource(ctx, b, of, p)
}

// RebuildSeal recreates a lost or changed seal, and the seal's lost or changed manifests.
// RebuildSeal returns the keys of the recreated objects. All results of the round must exist. The
// recreated seal must have the digest in the ledger. The seal contains the digests of the
// manifests, so the digest of the seal also proves that the manifests are right.
func RebuildSeal(ctx context.Context, b store.Bucket, p *manifest.Plan, l *ledger.Ledger, w ledger.Writer) (rebuilt []string, err error) {
	e := l.Newest(manifest.EntrySealed, p.Round)
	if e == nil {
		return nil, nil
	}
	var stored manifest.Sealed
	checked := l.Check(ctx, b, e, &stored)
	if checked == nil {
		_, checked = WithFiles(ctx, b, []*manifest.Sealed{&stored}, Selection{})
	}
	if !broken(checked) {
		return nil, checked
	}
	lost := map[string][]byte{} // manifests by key
	s, err := sealOf(ctx, b, p, w, nil, func(f manifest.File, body []byte) error {
		there, _, err := b.Get(ctx, f.Key, manifest.MaxBytes)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrTooLarge) || err == nil && !bytes.Equal(there, body) {
			lost[f.Key], err = body, nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	body, err := recreated(e, s)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(lost)) {
		if err := replace(ctx, b, key, lost[key]); err != nil {
			return rebuilt, err
		}
		rebuilt = append(rebuilt, key)
	}
	if err := l.Check(ctx, b, e, &manifest.Sealed{}); !broken(err) {
		return rebuilt, err
	}
	return append(rebuilt, e.Object), replace(ctx, b, e.Object, body)
}

// broken reports whether an error says that a document is gone, changed or damaged.
func broken(err error) bool {
	return errors.Is(err, ledger.ErrLost) || errors.Is(err, manifest.ErrCorrupt)
}

// storeRecreated stores a recreated document if the document has the digest that the entry
// recorded.
func storeRecreated(ctx context.Context, b store.Bucket, e *manifest.Entry, d manifest.Document) error {
	body, err := recreated(e, d)
	if err != nil {
		return err
	}
	return replace(ctx, b, e.Object, body)
}

// recreated encodes a recreated document, and compares its digest with the entry. An entry of a rebuilt ledger has no
// digest of a document that was already damaged then.
func recreated(e *manifest.Entry, d manifest.Document) ([]byte, error) {
	body, err := manifest.Encode(d)
	if err != nil {
		return nil, err
	}
	if got := manifest.ContentDigest(body); e.SHA256 != "" && got != e.SHA256 {
		return nil, fmt.Errorf("the recreated %q has SHA-256 %s, but the ledger names %s; nothing was written: use the crawlbatch version that made it, or restore it from a copy: %w",
			e.Object, got, e.SHA256, stages.ErrPermanent)
	}
	return body, nil
}

// replace stores an object. If the key has a damaged object, replace overwrites it.
func replace(ctx context.Context, b store.Bucket, key string, body []byte) error {
	_, version, err := b.Get(ctx, key, manifest.MaxBytes)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_, err = store.SwapBytes(ctx, b, key, body, version)
	return err
}

// ResultDigest returns the digest of a task's result in the frozen inputs of a later stage, or "" if
// no inputs list the result.
func ResultDigest(ctx context.Context, b store.Bucket, l *ledger.Ledger, t stages.Task) (string, error) {
	for _, later := range stages.Order {
		for _, from := range feeds[later] {
			if from != t.Stage || l.Frozen(t.Round, later) == nil {
				continue
			}
			var in manifest.Inputs
			_, _, err := manifest.Load(ctx, b, layout.Inputs(t.Crawl, t.Round, string(later)), &in)
			if errors.Is(err, store.ErrNotFound) {
				continue // a later step recreates the lost inputs.json, which must have the recorded digest
			}
			if err != nil {
				return "", err
			}
			for _, frozen := range in.Tasks {
				if frozen.Stage == string(t.Stage) && frozen.Partition == t.Partition {
					return frozen.SHA256, nil
				}
			}
		}
	}
	return "", nil
}
