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

// ErrPlanned means that the round has another plan, or has started.
var ErrPlanned = errors.New("the round is planned already")

// PlanRequest describes a round to plan from sources that a user names.
type PlanRequest struct {
	Bucket  store.Bucket
	Crawl   string
	Sources []source.Source // in addition to the frontier
	// Frontier also plans the due URLs of the last crawl that has a sealed round. If there are
	// other sources, such a crawl need not exist. Later rounds of a crawl always read the crawl's
	// own frontier.
	Frontier bool
	Config   *config.Config // as the user gives it; an existing crawl keeps its frozen keys
	Replace  bool
	DryRun   bool
	Clock    stages.Clock
	Version  string
	Scratch  string // an existing local directory
	Lookup   func(string) (string, bool)
}

// Plan plans the crawl's first round that is not sealed, and returns the plan. same reports that
// the store already had exactly this plan. Plan writes nothing until the plan is complete. A dry
// run writes nothing at all.
func Plan(ctx context.Context, r PlanRequest) (p *manifest.Plan, same bool, err error) {
	cfg, old, err := r.frozen(ctx)
	if err == nil && !r.DryRun {
		err = cfg.RequireContact()
	}
	if err != nil {
		return nil, false, err
	}
	crawl, round, earlier, err := r.position(ctx, old)
	if err != nil {
		return nil, false, err
	}
	scratch, err := os.MkdirTemp(r.Scratch, "plan-")
	if err != nil {
		return nil, false, fmt.Errorf("scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	made, err := r.make(ctx, cfg, round, earlier, scratch)
	if err != nil {
		return nil, false, err
	}
	p = made.Manifest()
	if r.DryRun {
		return p, false, nil
	}
	same, others, err := r.compare(ctx, p)
	if err != nil || same && len(others) == 0 {
		return p, same, err
	}
	if crawl.Config, err = cfg.YAML(); err != nil {
		return nil, false, err
	}
	if err := r.commit(ctx, crawl, made, others); err != nil {
		return nil, false, err
	}
	return p, false, nil
}

// position returns the round to plan, its crawl document, and the sealed rounds before it, oldest
// first. old is the crawl's stored document, or nil if there is none.
func (r PlanRequest) position(ctx context.Context, old *manifest.Crawl) (crawl *manifest.Crawl, round int, earlier []*manifest.Sealed, err error) {
	sealed, err := roundstate.Sealed(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return nil, 0, nil, err
	}
	crawl = &manifest.Crawl{Header: manifest.Header{Version: r.Version}, Crawl: r.Crawl, CreatedAt: r.Clock.Now().UTC().Format(time.RFC3339)}
	if old != nil {
		crawl.Continues = old.Continues
	}
	if r.Frontier && len(sealed) == 0 {
		crawl.Continues, err = lastCrawl(ctx, r.Bucket, r.Crawl)
		if err != nil && !(errors.Is(err, errNoCrawlBefore) && len(r.Sources) > 0) {
			return nil, 0, nil, err
		}
	}
	if crawl.Continues == "" {
		return crawl, len(sealed), sealed, nil
	}
	before, err := roundstate.History(ctx, r.Bucket, crawl.Continues)
	return crawl, len(sealed), append(before, sealed...), err
}

// make plans a round from the sources and from the frontier of earlier rounds. It works in scratch.
func (r PlanRequest) make(ctx context.Context, cfg *config.Config, round int, earlier []*manifest.Sealed, scratch string) (*planner.Plan, error) {
	sources := slices.Clone(r.Sources)
	if len(earlier) > 0 {
		sources = append(sources, source.Frontier(r.Bucket, r.Crawl, earlier, r.Clock.Now()))
	}
	// Do not plan a domain that was stopped while the crawl ran.
	paced := cfg.Clone()
	newest, revision, err := roundstate.NewestPoliteness(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return nil, err
	}
	if revision > 0 {
		paced.Politeness = newest
	}
	return planner.Make(ctx, worker.PlanConfig(paced), planner.Request{
		Crawl: r.Crawl, Round: round, Sources: sources, Scratch: scratch, Version: r.Version, DryRun: r.DryRun,
	})
}

// commit writes crawl.json and the plan, and removes the plans that this one replaces.
func (r PlanRequest) commit(ctx context.Context, crawl *manifest.Crawl, made *planner.Plan, others []string) error {
	// Nothing is written yet. First check that the store supports the operations that a crawl
	// needs.
	if _, err := store.Probe(ctx, r.Bucket); err != nil {
		return err
	}
	round := made.Manifest().Round
	if err := r.writeCrawl(ctx, crawl, round == 0); err != nil {
		return err
	}
	if err := made.Commit(ctx, r.Bucket); err != nil {
		return err
	}
	for _, id := range others {
		if err := removePlan(ctx, r.Bucket, r.Crawl, round, id); err != nil {
			return err
		}
	}
	return nil
}

// Planned reports whether a crawl's first round has a plan.
func Planned(ctx context.Context, b store.Bucket, crawl string) (bool, error) {
	_, _, err := roundstate.FindPlan(ctx, b, crawl, 0)
	if errors.Is(err, roundstate.ErrNoPlan) {
		return false, nil
	}
	return err == nil, err
}

// frozen returns the config to plan with. For a new crawl, or one whose plan is replaced, this is
// the given config. Otherwise it is the frozen config with those changes of the given one that are
// allowed.
func (r PlanRequest) frozen(ctx context.Context) (*config.Config, *manifest.Crawl, error) {
	m, c, err := roundstate.OpenCrawl(ctx, r.Bucket, r.Crawl, r.Lookup)
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return r.Config, nil, checkNew(r.Config)
	}
	if err != nil {
		return nil, nil, err
	}
	_, started, err := roundstate.FindPlan(ctx, r.Bucket, r.Crawl, 0)
	switch {
	case errors.Is(err, roundstate.ErrNoPlan), err == nil && !started && (r.Replace || r.DryRun), err != nil && r.Replace:
		return r.Config, m, checkNew(r.Config) // nothing has been fetched, so the crawl may change
	case err != nil:
		return nil, nil, err
	}
	if err := c.Adopt(r.Config); err != nil {
		if !started {
			err = fmt.Errorf("%w; nothing was fetched yet, so --replace can plan it again", err)
		}
		return nil, nil, err
	}
	return r.Config, m, nil
}

// checkNew returns an error if a new crawl may not have the config.
func checkNew(c *config.Config) error {
	if err := CheckAgent(c); err != nil {
		return err
	}
	return c.RefuseLiteralSecrets()
}

// CheckAgent returns an error if robots.txt would read the user agent's product token as the token
// of another crawler. A crawl that already froze such a user agent continues.
func CheckAgent(c *config.Config) error {
	if c.UserAgent == "" {
		return nil // this is the program's own agent, or RequireContact rejects it
	}
	if err := robots.CheckAgent(c.UserAgent); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return nil
}

// compare compares a plan with the plans in the store. same reports that the store already has it,
// and others lists the plans that it replaces. If the request must not replace them, compare
// returns ErrPlanned.
func (r PlanRequest) compare(ctx context.Context, p *manifest.Plan) (same bool, others []string, err error) {
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
		return true, nil, nil // an interrupted replacement left the others behind
	case started:
		return false, nil, fmt.Errorf("round %d of crawl %s was started with another plan (%s), which cannot be replaced any more: "+
			"finish it with `crawlbatch run --month %s`, or plan another month: %w", p.Round, p.Crawl, others[0], p.Crawl, ErrPlanned)
	case !r.Replace:
		return false, nil, fmt.Errorf("round %d of crawl %s has another plan (%s): add --replace to put this one in its place: %w", p.Round, p.Crawl, others[0], ErrPlanned)
	}
	return same, others, nil
}

// writeCrawl creates crawl.json. Before the crawl's first round starts, it may also replace it.
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

// removePlan deletes a replaced plan. It deletes plan.json first, so that what an interrupted
// removal leaves behind is not a plan.
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

// reach is the number of months that lastCrawl looks back.
const reach = 36

// errNoCrawlBefore means that the store has no earlier crawl with a frontier to plan.
var errNoCrawlBefore = fmt.Errorf("no crawl before: %w", planner.ErrNothing)

// lastCrawl returns the newest earlier crawl that has a sealed round. It skips reparses, because
// their frontier may contain URLs that were never fetched.
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

// planNext plans another round from the crawl's own frontier, unless the round already has a plan.
// It returns false if no URL is due.
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
