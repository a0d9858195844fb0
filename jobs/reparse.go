package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// ReparseRequest is a crawl to make that parses again what is stored.
type ReparseRequest struct {
	Bucket store.Bucket
	As     string // its name, as 2026-11r1
	Of     string // the crawl that fetched; empty: WARC files of others are parsed
	// Config of the new crawl: what the crawl Of froze, but for what decides how its
	// documents are parsed and reduced.
	Config *config.Config

	// Of WARC files of others: the store that holds them, and which they are.
	Archive     store.Bucket
	ArchiveName string // as the user named it
	Files       []string

	Clock   stages.Clock
	Version string
	Scratch string // an existing local directory
	Lookup  func(string) (string, bool)
}

// ErrNotSealed: the crawl to parse again has no finished round.
var ErrNotSealed = errors.New("no round of it is finished")

// Reparse makes the crawl and the plan of its first round, or finds them as they are
// to be. Driver.Run then runs it, and goes on with the rounds that its source has.
func Reparse(ctx context.Context, r ReparseRequest) (*manifest.Plan, error) {
	of := &manifest.Reparse{Of: r.Of, Archive: r.ArchiveName, Parser: worker.ParserVersion}
	crawl := &manifest.Crawl{
		Header: manifest.Header{Version: r.Version}, Crawl: r.As, CreatedAt: r.Clock.Now().UTC().Format(time.RFC3339), Reparse: of,
	}
	if r.Of != "" {
		before, err := sourceOf(ctx, r.Bucket, r.Of)
		if err != nil {
			return nil, err
		}
		crawl.Continues = before.Continues
	} else {
		of.Files = source.WARCFilesDigest(r.Files)
	}
	var err error
	if crawl.Config, err = r.Config.YAML(); err != nil {
		return nil, err
	}
	stands, err := r.standing(ctx, crawl)
	if err != nil {
		return nil, err
	}
	if stands {
		p, _, err := roundstate.FindPlan(ctx, r.Bucket, r.As, 0)
		if !errors.Is(err, roundstate.ErrNoPlan) {
			return p, err
		}
	}
	create := func() error {
		if stands {
			return nil
		}
		return r.create(ctx, crawl)
	}
	if r.Of == "" {
		return r.plan(ctx, create)
	}
	if err := create(); err != nil {
		return nil, err
	}
	return copyPlan(ctx, r.Bucket, r.Of, r.As, 0, r.Version)
}

// sourceOf checks that a crawl can be parsed again.
func sourceOf(ctx context.Context, b store.Bucket, crawl string) (*manifest.Crawl, error) {
	var m manifest.Crawl
	if _, _, err := manifest.Load(ctx, b, layout.CrawlManifest(crawl), &m); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("%s holds no crawl %s: %w", b, crawl, roundstate.ErrNoCrawl)
		}
		return nil, err
	}
	sealed, err := manifest.Exists(ctx, b, layout.Sealed(crawl, 0))
	if err == nil && !sealed {
		err = fmt.Errorf("crawl %s cannot be parsed again yet: %w", crawl, ErrNotSealed)
	}
	return &m, err
}

// create creates crawl.json.
func (r *ReparseRequest) create(ctx context.Context, crawl *manifest.Crawl) error {
	if _, err := store.Probe(ctx, r.Bucket); err != nil {
		return err
	}
	_, err := manifest.Create(ctx, r.Bucket, layout.CrawlManifest(r.As), crawl)
	if errors.Is(err, store.ErrExists) {
		return fmt.Errorf("another `crawlbatch reparse` makes %s at the same time: run this one again: %w", r.As, ErrPlanned)
	}
	return err
}

// standing reports whether the crawl is there, which then must be of the same reparse.
func (r *ReparseRequest) standing(ctx context.Context, crawl *manifest.Crawl) (bool, error) {
	key := layout.CrawlManifest(r.As)
	var old manifest.Crawl
	_, _, err := manifest.Load(ctx, r.Bucket, key, &old)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	is, want := old.Reparse, crawl.Reparse
	switch {
	case is == nil:
		return false, fmt.Errorf("%q does not say what the crawl parses again: %w", key, manifest.ErrCorrupt)
	case is.Of != want.Of || is.Archive != want.Archive || is.Files != want.Files:
		return false, fmt.Errorf("%s is a reparse of %s already, not of %s: choose another name with --as: %w", r.As, describe(is), describe(want), ErrPlanned)
	case is.Parser != want.Parser:
		return false, fmt.Errorf("%s was begun with version %d of the parser, this crawlbatch has %d: choose another name with --as, or go on with the crawlbatch that began it: %w",
			r.As, is.Parser, want.Parser, ErrPlanned)
	}
	frozen, err := config.ReadFrozen(key, []byte(old.Config), r.Lookup)
	if err == nil {
		err = frozen.AdoptReparsed(r.Config)
	}
	if err != nil {
		return false, fmt.Errorf("%s is there already: %w", r.As, err)
	}
	return true, nil
}

// describe names what a reparse is of.
func describe(r *manifest.Reparse) string {
	if r.Of != "" {
		return "crawl " + r.Of
	}
	return fmt.Sprintf("a list of WARC files in %s (SHA-256 %.8s)", r.Archive, r.Files)
}

// copyPlan gives a round of a reparse the plan that the round of its source has.
func copyPlan(ctx context.Context, b store.Bucket, of, as string, round int, version string) (*manifest.Plan, error) {
	from, _, err := roundstate.FindPlan(ctx, b, of, round)
	if err != nil {
		return nil, err
	}
	return planner.Copy(ctx, b, from, as, version)
}

// planReparse plans a further round of a reparse: as its source did, if that round is
// finished there. It returns false where there is none.
func (d *Driver) planReparse(ctx context.Context, crawl string, round int) (bool, error) {
	of, err := roundstate.ReparseOf(ctx, d.Bucket, crawl)
	if err != nil || of.Of == "" {
		return false, err
	}
	sealed, err := manifest.Exists(ctx, d.Bucket, layout.Sealed(of.Of, round))
	if err != nil || !sealed {
		return false, err
	}
	_, err = copyPlan(ctx, d.Bucket, of.Of, crawl, round, d.Version)
	return err == nil, err
}

// prepareFetch is what a fetch stage needs before its tasks run: the store's one place
// to fetch, or, where nothing is fetched, what is read instead.
func (d *Driver) prepareFetch(ctx context.Context, p *manifest.Plan) error {
	of, err := roundstate.ReparseOf(ctx, d.Bucket, p.Crawl)
	if err != nil {
		return err
	}
	if of == nil {
		lacks, err := roundstate.LacksSpellings(ctx, d.Bucket, p)
		if err != nil {
			return err
		}
		if lacks {
			d.Log.Warn("the plan was made by an older crawlbatch, which kept no spellings of URLs: robots.txt is asked for the canonical form of its URLs alone", "crawl", p.Crawl, "round", p.Round)
		}
		return claimFetch(ctx, d.Bucket, p, d.Clock, d.Version)
	}
	_, err = roundstate.FreezeSource(ctx, d.Bucket, of, p, d.Version)
	return err
}
