package roundstate

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// RebuildInputs recreates a lost or changed inputs.json of a stage and returns its key, or "" if
// nothing is lost. The recreated document must have the digest in the ledger. The results that feed
// the stage must exist.
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

// feeding returns the entries of inputs.json, for any stage that freezes its inputs.
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

// RebuildSeal recreates a lost or changed seal and returns its key, or "" if nothing is lost. All
// results of the round must exist.
func RebuildSeal(ctx context.Context, b store.Bucket, p *manifest.Plan, l *ledger.Ledger, w ledger.Writer) (string, error) {
	e := l.Newest(manifest.EntrySealed, p.Round)
	if e == nil {
		return "", nil
	}
	err := l.Check(ctx, b, e, &manifest.Sealed{})
	if !broken(err) {
		return "", err
	}
	s, err := sealOf(ctx, b, p, w)
	if err != nil {
		return "", err
	}
	return e.Object, storeRecreated(ctx, b, e, s)
}

// broken reports whether an error says that a document is gone, changed or damaged.
func broken(err error) bool {
	return errors.Is(err, ledger.ErrLost) || errors.Is(err, manifest.ErrCorrupt)
}

// storeRecreated stores a recreated document if the document has the digest that the entry
// recorded.
func storeRecreated(ctx context.Context, b store.Bucket, e *manifest.Entry, d manifest.Document) error {
	format := e.Format
	if format == 0 {
		return fmt.Errorf("%q cannot be made anew: it was damaged when the ledger was made: restore it from a copy: %w", e.Object, stages.ErrPermanent)
	}
	body, err := manifest.EncodeAs(d, format)
	if err != nil {
		return err
	}
	if got := manifest.ContentDigest(body); e.SHA256 != "" && got != e.SHA256 {
		return fmt.Errorf("%q would have contents with SHA-256 %s, the ledger says %s; nothing was written: use the crawlbatch that made it, or restore it from a copy: %w",
			e.Object, got, e.SHA256, stages.ErrPermanent)
	}
	_, version, err := b.Get(ctx, e.Object, manifest.MaxBytes)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_, err = b.Swap(ctx, e.Object, body, version)
	return err
}

// ResultDigest returns the digest that a later stage froze for a task's result, or "" if no stage
// froze the result.
func ResultDigest(ctx context.Context, b store.Bucket, l *ledger.Ledger, t stages.Task) (string, error) {
	for _, later := range stages.Order {
		for _, from := range feeds[later] {
			if from != t.Stage || l.Frozen(t.Round, later) == nil {
				continue
			}
			var in manifest.Inputs
			_, _, err := manifest.Load(ctx, b, layout.Inputs(t.Crawl, t.Round, string(later)), &in)
			if errors.Is(err, store.ErrNotFound) {
				continue // a later step recreates a lost inputs.json and compares digests
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
