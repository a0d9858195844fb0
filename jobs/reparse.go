package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/planner/source/external"
	"crawlbatch.io/crawlbatch/stages"
)

// ReparseRequest describes a crawl to create, which parses stored responses again.
type ReparseRequest struct {
	Bucket store.Bucket
	As     string // the name of the new crawl, such as 2026-11r1
	Of     string // the crawl whose responses are parsed; empty to parse external WARC files
	// Config is the config of the new crawl. Config equals the frozen config of the parsed crawl,
	// except for keys that decide how documents are parsed and reduced.
	Config *config.Config

	// Archive is the store of the external WARC files to parse, and Files lists their keys.
	Archive     store.Bucket
	ArchiveName string // the name of the archive that the user gave
	Files       []string
	// Open opens the bucket of the opt-out list, if external WARC files are parsed and the list is in S3.
	Open func(ctx context.Context, address string) (store.Bucket, error)

	Clock   stages.Clock
	Version string
	Scratch string // an existing local directory for temporary files
	Lookup  func(string) (string, bool)
}

// ErrNotSealed means that the crawl to parse again has no finished round.
var ErrNotSealed = errors.New("none of its rounds is finished")

// Reparse creates the crawl and the plan of its first round, unless they already exist. Driver.Run
// then runs the created crawl, with as many rounds as the source has.
func Reparse(ctx context.Context, r ReparseRequest) (*manifest.Plan, error) {
	was, err := readRemoved(ctx, r.Bucket, r.As)
	if err != nil {
		return nil, err
	}
	if r.Of == "" {
		was.pruned = nil // the plan names files of another store
	}
	p, err := r.plan(ctx, was)
	return p, was.explain(ctx, r.Bucket, r.As, err)
}

// plan creates the crawl and the plan of its first round. was is what was removed from the store before.
func (r *ReparseRequest) plan(ctx context.Context, was removed) (_ *manifest.Plan, err error) {
	of := &manifest.Reparse{Of: r.Of, Archive: r.ArchiveName, Parser: worker.ParserVersion}
	crawl := &manifest.Crawl{
		Header: manifest.Header{Version: r.Version}, Crawl: r.As, CreatedAt: r.Clock.Now().UTC().Format(time.RFC3339), Reparse: of,
	}
	if r.Of != "" {
		before, err := sourceOf(ctx, r.Bucket, r.Of)
		if err != nil {
			return nil, err
		}
		crawl.Continues, crawl.Continued, crawl.Listed = before.Continues, before.Continued, before.Listed
	} else {
		of.Files = external.Digest(r.Files)
	}
	if crawl.Config, err = r.Config.YAML(); err != nil {
		return nil, err
	}
	exists, err := r.exists(ctx, crawl)
	if err != nil {
		return nil, err
	}
	if !exists && r.Of == "" {
		if err := r.Config.RefuseLiteralSecrets(nil); err != nil {
			return nil, err
		}
	}
	if exists {
		if err := r.ledgers().Found(ctx, r.Bucket, r.As); err != nil { // an earlier process may have died while it created the crawl
			return nil, err
		}
		p, _, err := roundstate.FindPlan(ctx, r.Bucket, r.As, 0)
		if !errors.Is(err, roundstate.ErrNoPlan) {
			return p, err
		}
	}
	create := func() error {
		if exists {
			return nil
		}
		return r.create(ctx, crawl)
	}
	// While `prune` runs, no driver can follow a plan. An interrupted `prune` in turn does not
	// continue while a plan is unfinished.
	if err := roundstate.CheckNoPruning(ctx, r.Bucket, r.As); errors.Is(err, roundstate.ErrBusy) {
		return nil, err
	}
	if r.Of == "" {
		return r.planExternal(ctx, was, create)
	}
	if err := checkStates(ctx, r.Bucket, r.Of, 0); err != nil {
		return nil, err
	}
	if err := create(); err != nil {
		return nil, err
	}
	return copyPlan(ctx, r.Bucket, was, r.Of, r.As, 0, r.ledgers())
}

// ledgers returns a writer that appends to ledgers on behalf of the request.
func (r *ReparseRequest) ledgers() ledger.Writer {
	return ledger.Writer{Version: r.Version, Clock: r.Clock}
}

// sourceOf returns the document of a crawl, or an error if the crawl cannot be parsed again.
func sourceOf(ctx context.Context, b store.Bucket, crawl string) (*manifest.Crawl, error) {
	m, _, err := ledger.LoadCrawl(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Load(ctx, b, crawl)
	if err == nil {
		err = l.CheckRaw()
	}
	if err != nil {
		return nil, err
	}
	sealed, err := roundstate.SealedRound(ctx, b, crawl, 0)
	if err == nil && sealed == nil {
		err = fmt.Errorf("crawl %s cannot be reparsed yet: %w", crawl, ErrNotSealed)
	}
	return m, err
}

// create creates crawl.json.
func (r *ReparseRequest) create(ctx context.Context, crawl *manifest.Crawl) error {
	if _, err := store.Probe(ctx, r.Bucket); err != nil {
		return err
	}
	_, err := manifest.Create(ctx, r.Bucket, layout.CrawlManifest(r.As), crawl)
	if errors.Is(err, store.ErrExists) {
		return fmt.Errorf("another `crawlbatch reparse` is creating %s at the same time: run this command again: %w", r.As, ErrPlanned)
	}
	if err != nil {
		return err
	}
	return r.ledgers().Found(ctx, r.Bucket, r.As)
}

// exists reports whether the crawl exists. The error means that the existing crawl is not the same
// reparse.
func (r *ReparseRequest) exists(ctx context.Context, crawl *manifest.Crawl) (bool, error) {
	key := layout.CrawlManifest(r.As)
	old, _, err := ledger.LoadCrawl(ctx, r.Bucket, r.As)
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	is, want := old.Reparse, crawl.Reparse
	switch {
	case is == nil:
		return false, fmt.Errorf("%q does not say which responses the crawl parses again: %w", key, manifest.ErrCorrupt)
	case is.Of != want.Of || is.Archive != want.Archive || is.Files != want.Files:
		return false, fmt.Errorf("%s is already a reparse of %s, not of %s: choose another name with --as: %w", r.As, describe(is), describe(want), ErrPlanned)
	case is.Parser != want.Parser:
		return false, fmt.Errorf("%s began with version %d of the parser, this crawlbatch has %d: choose another name with --as, or continue with the crawlbatch that began it: %w",
			r.As, is.Parser, want.Parser, ErrPlanned)
	}
	frozen, err := config.ReadFrozen(key, []byte(old.Config), r.Lookup)
	if err == nil {
		err = frozen.AdoptReparsed(r.Config)
	}
	if err != nil {
		return false, fmt.Errorf("%s exists already: %w", r.As, err)
	}
	return true, nil
}

// describe returns a description of a reparse's source.
func describe(r *manifest.Reparse) string {
	if r.Of != "" {
		return "crawl " + r.Of
	}
	return fmt.Sprintf("a list of WARC files in %s (SHA-256 %.8s)", r.Archive, r.Files)
}

// copyPlan copies the plan of a round from the source of a reparse. was is what was removed from the store before the
// caller checked the source.
func copyPlan(ctx context.Context, b store.Bucket, was removed, of, as string, round int, w ledger.Writer) (*manifest.Plan, error) {
	from, _, err := roundstate.FindPlan(ctx, b, of, round)
	if err != nil {
		return nil, err
	}
	if err := checkStates(ctx, b, of, round); err != nil {
		return nil, err
	}
	p, err := planfile.Copy(ctx, stages.Checked(b, &stages.Input{Plan: from}), from, as, w.Version)
	if err != nil {
		return nil, err
	}
	return p, choosePlan(ctx, b, was, p, w)
}

// checkStates returns an error that wraps ledger.ErrPruned if states of URLs before a round were
// pruned. A reparse of the round would then treat known URLs as new ones.
func checkStates(ctx context.Context, b store.Bucket, crawl string, round int) error {
	m, _, err := ledger.LoadCrawl(ctx, b, crawl)
	if err != nil {
		return err
	}
	earlier, err := roundstate.Continued(ctx, b, m)
	if err != nil {
		return err
	}
	own, err := roundstate.Sealed(ctx, b, crawl)
	if err != nil {
		return err
	}
	earlier, err = roundstate.WithFiles(ctx, b, append(earlier, own[:min(round, len(own))]...), roundstate.Selection{Dataset: roundstate.HasStates})
	if err == nil && urlstate.After(earlier).Cut() {
		err = fmt.Errorf("a reparse of round %d of %s would need the states of URLs in months before it, and some of these months were pruned: %w", round, crawl, ledger.ErrPruned)
	}
	return err
}

// choosePlan appends p to the ledger as the plan that the round of a reparse follows, unless the
// round already follows a plan, or `prune` or `takedown` runs or has run since was was read.
func choosePlan(ctx context.Context, b store.Bucket, was removed, p *manifest.Plan, w ledger.Writer) error {
	return roundstate.Choose(ctx, b, p, "", w, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		if choice, _ := l.Plan(p.Round); choice != nil && choice.Plan != p.ID {
			return nil, fmt.Errorf("round %d of %s has another plan (%s): %w", p.Round, p.Crawl, choice.Plan, ErrPlanned)
		}
		if err := was.check(ctx, b, p.Crawl); err != nil || was.takedowns == 0 {
			return nil, err
		}
		return l.NoteTakedowns(), nil
	})
}

// planReparse copies the source's plan of a round, if the source has sealed the round. It returns
// false if the source has not sealed the round.
func (d *Driver) planReparse(ctx context.Context, crawl string, round int) (bool, error) {
	of, err := roundstate.ReparseOf(ctx, d.Bucket, crawl)
	if err != nil || of.Of == "" {
		return false, err
	}
	sealed, err := roundstate.SealedRound(ctx, d.Bucket, of.Of, round)
	if err != nil || sealed == nil {
		return false, err
	}
	was, err := readRemoved(ctx, d.Bucket, crawl)
	if err == nil {
		err = roundstate.CheckNoPruning(ctx, d.Bucket, crawl)
	}
	if err != nil {
		return false, err
	}
	source, err := ledger.Load(ctx, d.Bucket, of.Of)
	if err == nil {
		err = source.CheckRaw()
	}
	if err != nil {
		return false, fmt.Errorf("round %d of %s cannot be parsed: %w", round, crawl, err)
	}
	_, err = copyPlan(ctx, d.Bucket, was, of.Of, crawl, round, d.ledgers())
	return err == nil, was.explain(ctx, d.Bucket, crawl, err)
}

// prepareFetch prepares a fetch stage. For a crawl that fetches, prepareFetch claims active.json,
// because a store runs only one fetch stage at a time. For a reparse, prepareFetch records
// which files of the parsed crawl the tasks read.
func (d *Driver) prepareFetch(ctx context.Context, p *manifest.Plan) error {
	of, err := roundstate.ReparseOf(ctx, d.Bucket, p.Crawl)
	if err != nil {
		return err
	}
	if of == nil {
		l, err := ledger.Load(ctx, d.Bucket, p.Crawl)
		if err != nil {
			return err
		}
		return roundstate.Claim(ctx, d.Bucket, l, p, d.ledgers())
	}
	// The ledger of the reparse already names its plan, so a later `prune` sees that the reparse
	// needs its source. A `prune` that began earlier holds active.json.
	if err := roundstate.CheckNoPruning(ctx, d.Bucket, p.Crawl); err != nil {
		return err
	}
	_, err = roundstate.FreezeSource(ctx, d.Bucket, of, p, d.ledgers())
	return err
}
