package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// ErrPlanned: the round has another plan already, or was started.
var ErrPlanned = errors.New("the round is planned already")

// PlanRequest is a round to plan from sources that a user names.
type PlanRequest struct {
	Bucket  store.Bucket
	Crawl   string
	Sources []source.Source // beside the frontier
	// Frontier: plan what the last crawl with a sealed round left due, too; beside
	// other sources it need not be there. Later rounds of a crawl read its own
	// frontier in any case.
	Frontier bool
	Config   *config.Config // as given; a crawl that exists keeps what it froze
	Replace  bool
	DryRun   bool
	Clock    stages.Clock
	Version  string
	Scratch  string // an existing local directory
	Lookup   func(string) (string, bool)
}

// Plan plans the first round of a crawl that is not sealed, and returns it; same
// says that this very plan stood there already. Nothing is written before the plan
// is whole, and nothing at all by a dry run.
func Plan(ctx context.Context, r PlanRequest) (p *manifest.Plan, same bool, err error) {
	cfg, old, err := r.frozen(ctx)
	if err != nil {
		return nil, false, err
	}
	if !r.DryRun {
		if err := cfg.RequireContact(); err != nil {
			return nil, false, err
		}
	}
	sealed, err := roundstate.Sealed(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return nil, false, err
	}
	round := len(sealed)
	crawl := &manifest.Crawl{Header: manifest.Header{Version: r.Version}, Crawl: r.Crawl, CreatedAt: r.Clock.Now().UTC().Format(time.RFC3339)}
	if old != nil {
		crawl.Continues = old.Continues
	}
	earlier := sealed
	if r.Frontier && round == 0 {
		crawl.Continues, err = lastCrawl(ctx, r.Bucket, r.Crawl)
		if err != nil && !(errors.Is(err, errNoCrawlBefore) && len(r.Sources) > 0) {
			return nil, false, err
		}
	}
	if crawl.Continues != "" {
		before, err := roundstate.History(ctx, r.Bucket, crawl.Continues)
		if err != nil {
			return nil, false, err
		}
		earlier = append(before, sealed...)
	}
	sources := slices.Clone(r.Sources)
	if len(earlier) > 0 {
		sources = append(sources, source.Frontier(r.Bucket, r.Crawl, earlier, r.Clock.Now()))
	}
	scratch, err := os.MkdirTemp(r.Scratch, "plan-")
	if err != nil {
		return nil, false, fmt.Errorf("scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	// A domain that was stopped while the crawl ran is not planned any more.
	paced := cfg.Clone()
	if newest, revision, err := roundstate.NewestPoliteness(ctx, r.Bucket, r.Crawl); err != nil {
		return nil, false, err
	} else if revision > 0 {
		paced.Politeness = newest
	}
	made, err := planner.Make(ctx, worker.PlanConfig(paced), planner.Request{
		Crawl: r.Crawl, Round: round, Sources: sources, Scratch: scratch, Version: r.Version, DryRun: r.DryRun,
	})
	if err != nil {
		return nil, false, err
	}
	p = made.Manifest()
	if r.DryRun {
		return p, false, nil
	}
	same, others, err := r.standing(ctx, p)
	if err != nil || same && len(others) == 0 {
		return p, same, err
	}
	if crawl.Config, err = cfg.YAML(); err != nil {
		return nil, false, err
	}
	// Only now is anything written: does the store have what the protocol needs?
	if _, err := store.Probe(ctx, r.Bucket); err != nil {
		return nil, false, err
	}
	if err := r.writeCrawl(ctx, crawl, round == 0); err != nil {
		return nil, false, err
	}
	if err := made.Commit(ctx, r.Bucket); err != nil {
		return nil, false, err
	}
	for _, id := range others {
		if err := removePlan(ctx, r.Bucket, r.Crawl, round, id); err != nil {
			return nil, false, err
		}
	}
	return p, false, nil
}

// Planned reports whether a crawl's first round has a plan.
func Planned(ctx context.Context, b store.Bucket, crawl string) (bool, error) {
	_, _, err := roundstate.FindPlan(ctx, b, crawl, 0)
	if errors.Is(err, roundstate.ErrNoPlan) {
		return false, nil
	}
	return err == nil, err
}

// frozen is the config that counts: the given one for a new crawl, or one whose
// plan is replaced; otherwise what the crawl froze, as the given one may change it.
func (r PlanRequest) frozen(ctx context.Context) (*config.Config, *manifest.Crawl, error) {
	m, c, err := roundstate.OpenCrawl(ctx, r.Bucket, r.Crawl, r.Lookup)
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return r.Config, nil, CheckAgent(r.Config)
	}
	if err != nil {
		return nil, nil, err
	}
	_, started, err := roundstate.FindPlan(ctx, r.Bucket, r.Crawl, 0)
	switch {
	case errors.Is(err, roundstate.ErrNoPlan), err == nil && !started && (r.Replace || r.DryRun), err != nil && r.Replace:
		return r.Config, m, CheckAgent(r.Config) // nothing was fetched: the crawl can be made anew
	case err != nil:
		return nil, nil, err
	}
	if err := c.Adopt(r.Config); err != nil {
		if !started {
			err = fmt.Errorf("%w; nothing was fetched yet, so --replace puts a new plan in its place", err)
		}
		return nil, nil, err
	}
	return r.Config, m, nil
}

// CheckAgent refuses a user agent that robots.txt reads as another's. A crawl that froze
// one goes on.
func CheckAgent(c *config.Config) error {
	if c.UserAgent == "" {
		return nil // the program's own, or RequireContact refuses it
	}
	if err := robots.CheckAgent(c.UserAgent); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return nil
}

// standing compares a plan with those that the round has: whether it is there,
// and which others it replaces. Others that it may not replace are an error.
func (r PlanRequest) standing(ctx context.Context, p *manifest.Plan) (same bool, others []string, err error) {
	ids, err := roundstate.Plans(ctx, r.Bucket, p.Crawl, p.Round)
	if err != nil {
		return false, nil, err
	}
	for _, id := range ids {
		if id == p.ID {
			same = true
		} else {
			others = append(others, id)
		}
	}
	if len(others) == 0 {
		return same, nil, nil
	}
	started, err := manifest.Exists(ctx, r.Bucket, layout.Start(p.Crawl, p.Round))
	if err != nil {
		return false, nil, err
	}
	switch {
	case started && same:
		return true, nil, nil // others are garbage of a replacement that was cut off
	case started:
		return false, nil, fmt.Errorf("round %d of crawl %s was started with another plan (%s), which nothing can replace any more: "+
			"finish it with `crawlbatch run --month %s`, or plan another month: %w", p.Round, p.Crawl, others[0], p.Crawl, ErrPlanned)
	case !r.Replace:
		return false, nil, fmt.Errorf("round %d of crawl %s has another plan (%s): add --replace to put this one in its place: %w", p.Round, p.Crawl, others[0], ErrPlanned)
	}
	return same, others, nil
}

// writeCrawl creates crawl.json, or replaces it while nothing of the crawl has run.
func (r PlanRequest) writeCrawl(ctx context.Context, c *manifest.Crawl, first bool) error {
	key := layout.CrawlManifest(c.Crawl)
	var old manifest.Crawl
	version, _, err := manifest.Load(ctx, r.Bucket, key, &old)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = manifest.Create(ctx, r.Bucket, key, c)
		if errors.Is(err, store.ErrExists) {
			return fmt.Errorf("another `crawlbatch plan` of %s runs at the same time: run this one again: %w", c.Crawl, ErrPlanned)
		}
		return err
	case err != nil:
		return err
	case !first || old.Config == c.Config && old.Continues == c.Continues:
		return nil
	}
	_, err = manifest.Swap(ctx, r.Bucket, key, c, version)
	return err
}

// removePlan deletes a plan that was replaced, its plan.json first: what is left
// after a cut is no plan any more.
func removePlan(ctx context.Context, b store.Bucket, crawl string, round int, id string) error {
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

// reach is how many months lastCrawl looks back.
const reach = 36

// errNoCrawlBefore: the store holds no earlier crawl whose frontier could be planned.
var errNoCrawlBefore = fmt.Errorf("no crawl before: %w", planner.ErrNothing)

// lastCrawl is the newest crawl before this one with a sealed round: the month's own,
// not a reparse of it, whose frontier may name what was never asked for.
func lastCrawl(ctx context.Context, b store.Bucket, crawl string) (string, error) {
	month, err := layout.ParseMonth(crawl)
	if err != nil {
		return "", err
	}
	for i := 1; i <= reach; i++ {
		before := month.AddDate(0, -i, 0).Format("2006-01")
		found, err := manifest.Exists(ctx, b, layout.Sealed(before, 0))
		if err != nil {
			return "", err
		}
		if found {
			return before, nil
		}
	}
	return "", fmt.Errorf("%s holds no crawl with a finished round in the %d months before %s: plan from a file first: %w", b, reach, crawl, errNoCrawlBefore)
}

// planNext plans a further round from the crawl's own frontier. It returns false
// when nothing is due. A plan that stands already is kept.
func (d *Driver) planNext(ctx context.Context, crawl string, round int) (bool, error) {
	_, _, err := roundstate.FindPlan(ctx, d.Bucket, crawl, round)
	if err == nil || !errors.Is(err, roundstate.ErrNoPlan) {
		return true, err
	}
	if layout.IsReparse(crawl) {
		return d.planReparse(ctx, crawl, round)
	}
	_, _, err = Plan(ctx, PlanRequest{
		Bucket: d.Bucket, Crawl: crawl, Config: d.Config, Clock: d.Clock, Version: d.Version, Scratch: d.Scratch, Lookup: d.Lookup,
	})
	if errors.Is(err, planner.ErrNothing) {
		return false, nil
	}
	return err == nil, err
}
