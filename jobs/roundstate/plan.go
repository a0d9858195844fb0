package roundstate

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// FindPlan returns the plan that a round follows, as the crawl's ledger says, and whether the round
// has started. The error is ErrNoPlan if no plan is chosen, and a ledger.Lost error if the plan is
// gone.
func FindPlan(ctx context.Context, b store.Bucket, crawl string, round int) (p *manifest.Plan, started bool, err error) {
	l, err := ledger.Load(ctx, b, crawl)
	if err != nil {
		return nil, false, err
	}
	return PlanIn(ctx, b, l, round)
}

// PlanIn is like FindPlan, with a ledger that the caller has read.
func PlanIn(ctx context.Context, b store.Bucket, l *ledger.Ledger, round int) (p *manifest.Plan, started bool, err error) {
	if err := l.CheckGone(); err != nil {
		return nil, false, err
	}
	choice, started := l.Plan(round)
	if choice == nil {
		return nil, false, noPlan(l, round)
	}
	p = &manifest.Plan{}
	err = l.Check(ctx, b, choice, p)
	if ledger.Read(err) && (p.Crawl != l.Crawl || p.Round != round || p.ID != choice.Plan) {
		err = misplaced(choice.Object, fmt.Sprintf("plan %s of %s.%d", p.ID, p.Crawl, p.Round), fmt.Sprintf("plan %s of %s.%d", choice.Plan, l.Crawl, round))
	}
	if err != nil {
		return nil, started, err
	}
	return p, started, nil
}

// noPlan returns the error for a round whose plan the ledger does not name.
func noPlan(l *ledger.Ledger, round int) error {
	if err := l.NoPlan(round); err != nil {
		return err
	}
	return fmt.Errorf("round %d of crawl %s has no plan: make one with `%s`: %w", round, l.Crawl, ledger.CreatingCommand(l.Crawl, ""), ErrNoPlan)
}

// Plans lists the IDs of a round's complete plans.
func Plans(ctx context.Context, b store.Bucket, crawl string, round int) ([]string, error) {
	return ledger.Plans(ctx, b, crawl, round)
}

// Begin starts a round and returns its plan. After Begin, the round follows the plan that the
// ledger names now. The process that starts the round deletes the replaced plans.
func Begin(ctx context.Context, b store.Bucket, crawl string, round int, w ledger.Writer) (*manifest.Plan, error) {
	l, err := ledger.Load(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	p, _, err := BeginIn(ctx, b, l, round, w)
	return p, err
}

// BeginIn is like Begin, with a ledger that the caller has read. It also returns the newest ledger
// that it has read or written.
func BeginIn(ctx context.Context, b store.Bucket, l *ledger.Ledger, round int, w ledger.Writer) (*manifest.Plan, *ledger.Ledger, error) {
	var p *manifest.Plan
	first := false
	l, err := w.AppendTo(ctx, b, l, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		var started bool
		var err error
		p, started, err = PlanIn(ctx, b, l, round)
		if first = !started; err != nil || started {
			return nil, err
		}
		if err := l.CheckUnbegun(ctx, b, round); err != nil {
			return nil, err
		}
		if err := settled(ctx, b, l, round); err != nil {
			return nil, err
		}
		return []manifest.Entry{{What: manifest.EntryStarted, Round: &round, Plan: p.ID}}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	if first {
		// Replaced plans only use space, so Begin does not retry a failed removal.
		_ = removeReplaced(ctx, b, p)
	}
	return p, l, nil
}

// settled returns an error if the stored crawl.json is not the document that the ledger names. The
// two differ while `plan --replace` runs: it names the new document in the ledger before it stores
// the document.
func settled(ctx context.Context, b store.Bucket, l *ledger.Ledger, round int) error {
	if round > 0 {
		return nil
	}
	_, err := l.ReadCrawl(ctx, b)
	return err
}

// removeReplaced deletes the plans of a round other than the plan p, which the round follows.
func removeReplaced(ctx context.Context, b store.Bucket, p *manifest.Plan) error {
	ids, err := Plans(ctx, b, p.Crawl, p.Round)
	for _, id := range ids {
		if err == nil && id != p.ID {
			err = RemovePlan(ctx, b, p.Crawl, p.Round, id)
		}
	}
	return err
}

// RemovePlan deletes a plan that a started round does not follow. RemovePlan deletes plan.json
// first, so that the remains of an interrupted removal are not a plan.
func RemovePlan(ctx context.Context, b store.Bucket, crawl string, round int, id string) error {
	if err := b.Delete(ctx, layout.PlanManifest(crawl, round, id)); err != nil {
		return fmt.Errorf("remove plan %s: %w", id, err)
	}
	var keys []string
	for o, err := range b.List(ctx, layout.PlanDir(crawl, round, id)) {
		if err != nil {
			return fmt.Errorf("remove plan %s: %w", id, err)
		}
		keys = append(keys, o.Key)
	}
	for _, key := range keys {
		if err := b.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove plan %s: %w", id, err)
		}
	}
	return nil
}

// Choose records in the ledger that a round follows a committed plan. Before that, Choose calls
// check with the present ledger. With the plan's entry, it appends the entries that check returns.
// If another writer changes the ledger in the meantime, Choose calls check again.
func Choose(ctx context.Context, b store.Bucket, p *manifest.Plan, now string, w ledger.Writer, check func(l *ledger.Ledger) (more []manifest.Entry, err error)) error {
	key := layout.PlanManifest(p.Crawl, p.Round, p.ID)
	var stored manifest.Plan
	_, digest, err := manifest.LoadContents(ctx, b, key, &stored)
	if err != nil {
		return err
	}
	_, err = w.Append(ctx, b, p.Crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		more, err := check(l)
		if err != nil {
			return nil, err
		}
		choice, started := l.Plan(p.Round)
		if choice != nil && choice.Plan == p.ID && (started || choice.SHA256 == digest) {
			return more, nil
		}
		e := ledger.Named(manifest.EntryPlan, p.Round, key, digest)
		e.Plan, e.Now = p.ID, now
		return append(more, e), nil
	})
	return err
}
