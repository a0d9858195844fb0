package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner"
)

// commit creates the crawl if it does not exist, stores the plan, and chooses the plan with one
// swap of the ledger. The swap fails if the round has started in the meantime, or if the round
// follows a plan that the request must not replace. A replaced plan stays until the round starts,
// because another `plan --replace` may choose it again.
func (r PlanRequest) commit(ctx context.Context, crawl *manifest.Crawl, made *planner.Plan, now time.Time) error {
	// Before its first write, commit checks that the store supports the operations that a crawl
	// needs.
	if _, err := store.Probe(ctx, r.Bucket); err != nil {
		return err
	}
	p, w := made.Manifest(), r.ledgers()
	first := p.Round == 0 // crawl.json may change only for round 0, before the round has started
	stored, digest, err := r.foundCrawl(ctx, crawl)
	if err != nil {
		return err
	}
	if err := w.Found(ctx, r.Bucket, r.Crawl); err != nil {
		return err
	}
	if err := made.Commit(ctx, r.Bucket); errors.Is(err, store.ErrFull) {
		return cmp.Or(r.makeRoom(ctx, p, err), err)
	} else if err != nil {
		return err
	}
	body, err := manifest.Encode(stored)
	if first && (stored.Config != crawl.Config || stored.Continues != crawl.Continues || stored.Listed != crawl.Listed || !slices.Equal(stored.Continued, crawl.Continued)) {
		body, err = manifest.Encode(crawl)
		digest = manifest.ContentDigest(body)
	}
	if err != nil {
		return err
	}
	err = roundstate.Choose(ctx, r.Bucket, p, now.UTC().Format(time.RFC3339Nano), w, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		if err := r.removed.check(ctx, r.Bucket, r.Crawl); err != nil {
			return nil, err
		}
		_, err := r.compare(ctx, l, p)
		if err != nil {
			return nil, err
		}
		var more []manifest.Entry
		first = p.Round == 0 && l.Started(0) == nil
		if named := l.Of(manifest.EntryCrawl); first && (named == nil || named.SHA256 != digest) {
			more = append(more, manifest.Entry{What: manifest.EntryCrawl, Object: layout.CrawlManifest(r.Crawl), SHA256: digest})
		}
		if r.removed.takedowns > 0 {
			more = append(more, l.NoteTakedowns()...)
		}
		return more, nil
	})
	if errors.Is(err, ErrPlanned) {
		return errors.Join(err, r.discard(ctx, p))
	}
	if err == nil && first {
		err = r.replaceCrawl(ctx, body, digest)
	}
	return err
}

// removed is what takedowns and prunings had removed from a store at a time.
type removed struct {
	takedowns int              // in the store's list
	pruned    ledger.AllPruned // nil if the plan does not depend on it
}

// readRemoved returns what is removed now. The crawl is the one to plan.
func readRemoved(ctx context.Context, b store.Bucket, crawl string) (was removed, err error) {
	if was.takedowns, err = takedown.Count(ctx, b); err == nil {
		was.pruned, err = ledger.ReadAllPruned(ctx, b, crawl)
	}
	return was, err
}

// check returns roundstate.ErrBusy while `takedown` or `prune` removes objects, or if one did since was was read.
// Otherwise the plan of a crawl might ask servers whether pages have changed whose stored contents are gone, or name
// what `takedown` removes.
func (was removed) check(ctx context.Context, b store.Bucket, crawl string) error {
	// The fetch stage reports a lost active.json.
	if err := roundstate.CheckNoPruning(ctx, b, crawl); errors.Is(err, roundstate.ErrBusy) {
		return err
	}
	now, err := readRemoved(ctx, b, crawl)
	if err != nil {
		return err
	}
	if now.takedowns != was.takedowns {
		return fmt.Errorf("%s: a takedown began while %s was planned: run this command again: %w", b, crawl, roundstate.ErrBusy)
	}
	if was.pruned == nil {
		return nil
	}
	for of, p := range now.pruned {
		if old := was.pruned[of]; old == nil || old.Entry.N != p.Entry.N {
			return fmt.Errorf("%s was pruned while %s was planned: run this command again: %w", of, crawl, roundstate.ErrBusy)
		}
	}
	return nil
}

// explain returns err, or the error of check if what was removed meanwhile may have caused err: `takedown` replaces
// objects that a reparse reads.
func (was removed) explain(ctx context.Context, b store.Bucket, crawl string, err error) error {
	if err != nil {
		if busy := was.check(ctx, b, crawl); errors.Is(busy, roundstate.ErrBusy) {
			return busy
		}
	}
	return err
}

// foundCrawl creates crawl.json if the crawl has none. It returns the stored document and its
// digest.
func (r PlanRequest) foundCrawl(ctx context.Context, c *manifest.Crawl) (*manifest.Crawl, string, error) {
	stored, digest, err := ledger.LoadCrawl(ctx, r.Bucket, c.Crawl)
	if !errors.Is(err, roundstate.ErrNoCrawl) {
		return stored, digest, err
	}
	_, err = manifest.Create(ctx, r.Bucket, layout.CrawlManifest(c.Crawl), c)
	if errors.Is(err, store.ErrExists) {
		err = fmt.Errorf("another `crawlbatch plan` of %s is running: run this command again: %w", c.Crawl, ErrPlanned)
	}
	if err != nil {
		return nil, "", err
	}
	return ledger.LoadCrawl(ctx, r.Bucket, c.Crawl)
}

// replaceCrawl stores the crawl.json that the ledger now names. The round cannot start before it is
// stored. If another `plan --replace` has named its own crawl.json since then, the error is
// ErrPlanned.
func (r PlanRequest) replaceCrawl(ctx context.Context, body []byte, digest string) error {
	key := layout.CrawlManifest(r.Crawl)
	for {
		var old manifest.Crawl
		version, have, err := manifest.LoadContents(ctx, r.Bucket, key, &old)
		if err != nil || have == digest {
			return err
		}
		l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
		if err != nil {
			return err
		}
		if named := l.Of(manifest.EntryCrawl); named == nil || named.SHA256 != digest {
			return fmt.Errorf("another `crawlbatch plan --replace` of %s was later, so its plan and config apply: run this command again if you want this plan instead: %w", r.Crawl, ErrPlanned)
		}
		if _, err := store.SwapBytes(ctx, r.Bucket, key, body, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// discard removes a plan that was not chosen, if the round has already started. After the start, no
// process can choose the plan.
func (r PlanRequest) discard(ctx context.Context, p *manifest.Plan) error {
	l, err := ledger.Load(ctx, r.Bucket, p.Crawl)
	if err != nil {
		return err
	}
	if started := l.Started(p.Round); started == nil || started.Plan == p.ID {
		return nil
	}
	return roundstate.RemovePlan(ctx, r.Bucket, p.Crawl, p.Round, p.ID)
}

// makeRoom removes what a plan stored before the error full, unless the plan exists or the ledger names it. It returns
// full with a note, or nil if it has not removed everything. Another `plan` that stores the same files at this moment
// finds no plan.json, or fails when the disk is full.
func (r PlanRequest) makeRoom(ctx context.Context, p *manifest.Plan, full error) error {
	l, err := ledger.Load(ctx, r.Bucket, p.Crawl)
	if err != nil {
		return nil
	}
	if choice, _ := l.Plan(p.Round); choice != nil && choice.Plan == p.ID {
		return nil
	}
	if there, err := manifest.Exists(ctx, r.Bucket, layout.PlanManifest(p.Crawl, p.Round, p.ID)); err != nil || there {
		return nil
	}
	if err := roundstate.RemovePlan(ctx, r.Bucket, p.Crawl, p.Round, p.ID); err != nil {
		return nil
	}
	return fmt.Errorf("%w; what was stored of the plan is removed: run this command again once there is space", full)
}

// compare compares a plan with the plan that the ledger names. same is true if the plans
// are equal. If the plans differ, the error is ErrPlanned if the round has started, or if the
// request must not replace the named plan.
func (r PlanRequest) compare(ctx context.Context, l *ledger.Ledger, p *manifest.Plan) (same bool, err error) {
	if err := l.CheckUnbegun(ctx, r.Bucket, p.Round); err != nil {
		return false, err
	}
	choice, started := l.Plan(p.Round)
	switch {
	case choice == nil:
		return false, nil
	case choice.Plan == p.ID:
		there, err := manifest.Exists(ctx, r.Bucket, choice.Object)
		if err == nil && !there && started {
			err = l.Miss(choice, false)
		}
		return there, err
	case started:
		return false, fmt.Errorf("round %d of crawl %s was started with another plan (%s), which cannot be replaced any more: "+
			"finish it with `crawlbatch run --month %s`, or plan another month: %w", p.Round, p.Crawl, choice.Plan, p.Crawl, ErrPlanned)
	case !r.Replace:
		return false, fmt.Errorf("round %d of crawl %s has another plan (%s): use --replace to replace it: %w", p.Round, p.Crawl, choice.Plan, ErrPlanned)
	}
	return false, nil
}
