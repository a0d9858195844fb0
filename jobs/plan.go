package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/planning"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/websource"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// ErrPlanned means that the round already has another plan, or has started.
var ErrPlanned = errors.New("the round is already planned")

// PlanRequest describes a round to plan from sources that a user names.
type PlanRequest struct {
	Bucket  store.Bucket
	Crawl   string
	Sources []source.Source // sources to read in addition to the frontier
	// Frontier is true if Plan also takes the due URLs of the last crawl that has a sealed round.
	// Such a crawl must exist, unless the request has other sources. Later rounds of a crawl always
	// read the crawl's own frontier.
	Frontier  bool
	Config    *config.Config // the config from the user; an existing crawl keeps its frozen keys
	Replace   bool
	Force     bool // true: plan also URLs that were fetched within plan.skip_within
	DryRun    bool
	Clock     stages.Clock
	Version   string
	Scratch   string         // an existing local directory
	Counts    *Counts        // if not nil, receives the counts of the sources
	Answers   *FilterAnswers // if not nil, receives the answers of the URL filters of earlier rounds
	Budgets   *Budgets       // if not nil, receives the counts of what the budgets refuse
	Slowest   *Slowest       // if not nil, receives the domains that take the longest
	Reach     *Reach         // if not nil, receives how requests would reach the planned hosts
	Continues *Continuation  // if not nil, receives the earlier crawls that the crawl continues
	Lookup    func(string) (string, bool)
	Archive   func(ctx context.Context, address string) (store.Bucket, error) // opens the store that holds plan.opt_out
	Log       *slog.Logger                                                    // for the requests of sources; nil discards messages
	Note      func(verb string, n int64, of string)                           // see planner.Request; may be nil
	Tell      func(stages.Wait)                                               // called for each wait of a source for a host; may be nil

	driver  bool    // true: a driver makes the request, so Plan freezes the clock, and accepts a plan that another driver made
	removed removed // when planning began
}

// Counts holds the number of entries of each source of a plan.
type Counts = []planner.SourceCount

// FilterAnswers counts the answers of URL filters.
type FilterAnswers = source.FilterAnswers

// Budgets holds the number of URLs that each key of plan.budgets refuses.
type Budgets = []manifest.Count

// Slowest holds the slowest hosts of a plan, at most one of each domain.
type Slowest = []slowest.Host

// Reach says how requests would reach the hosts of a plan.
type Reach = entry.Reach

// ledgers returns a writer that appends to ledgers on behalf of the request.
func (r PlanRequest) ledgers() ledger.Writer {
	return ledger.Writer{Version: r.Version, Clock: r.Clock}
}

// Plan plans the crawl's first round that is not sealed, and returns the plan. The result same is
// true if the store already had an equal plan. Plan writes nothing until the plan is complete, and
// a dry run writes nothing at all.
func Plan(ctx context.Context, r PlanRequest) (p *manifest.Plan, same bool, err error) {
	cfg, old, err := r.checkedConfig(ctx)
	if err != nil {
		return nil, false, err
	}
	crawl, round, earlier, err := r.position(ctx, cfg, old)
	if err != nil {
		return nil, false, err
	}
	if crawl.Config, err = cfg.YAML(); err != nil {
		return nil, false, err
	}
	scratch, err := os.MkdirTemp(r.Scratch, "plan-")
	if err != nil {
		return nil, false, fmt.Errorf("scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	if r.removed, err = readRemoved(ctx, r.Bucket, r.Crawl); err == nil && !r.DryRun {
		err = r.removed.check(ctx, r.Bucket, r.Crawl)
	}
	if err != nil {
		return nil, false, err
	}
	made, now, err := r.makeOnce(ctx, cfg, crawl, round, earlier, scratch)
	if err != nil {
		return nil, false, err
	}
	if r.Counts != nil {
		*r.Counts = made.Counts()
	}
	if r.Budgets != nil {
		*r.Budgets = made.OverBudget()
	}
	if r.Slowest != nil {
		*r.Slowest = made.Slowest()
	}
	if r.Reach != nil {
		*r.Reach = made.Reach()
	}
	p = made.Manifest()
	if err := checkDistance(cfg.Dedup.MaxDistance, p.Round, p.URLs); err != nil {
		return nil, false, err
	}
	if r.DryRun {
		return p, false, nil
	}
	if old != nil {
		l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
		if err == nil {
			same, err = r.compare(ctx, l, p)
		}
		if err != nil {
			return nil, false, err
		}
	}
	return p, same, r.commit(ctx, crawl, made, now)
}

// CheckConfig returns the error with which Plan refuses the config, if it does.
func (r PlanRequest) CheckConfig(ctx context.Context) error {
	_, _, err := r.checkedConfig(ctx)
	return err
}

// checkedConfig returns what frozenConfig returns, or an error if the config names no contact.
func (r PlanRequest) checkedConfig(ctx context.Context) (*config.Config, *manifest.Crawl, error) {
	cfg, old, err := r.frozenConfig(ctx)
	if err == nil && !r.DryRun {
		err = cfg.RequireContact()
	}
	return cfg, old, err
}

// makeOnce makes a plan, and returns the time by which URLs had to be due. If a URL is due, a
// driver freezes this time for the round, so that two drivers make the same plan. A driver that
// finds no due URL writes nothing, so that repeated planning does not grow the ledger.
func (r PlanRequest) makeOnce(ctx context.Context, cfg *config.Config, crawl *manifest.Crawl, round int, earlier []*manifest.Sealed, scratch string) (made *planner.Plan, now time.Time, err error) {
	var before time.Time
	frozen := false
	if round > 0 && len(r.Sources) == 0 {
		l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
		if err != nil {
			return nil, now, err
		}
		before, frozen = l.Now(round)
	}
	if frozen {
		made, err = r.makePlan(ctx, cfg, crawl, round, earlier, before, scratch)
		if !errors.Is(err, planner.ErrNothing) || !r.Clock.Now().After(before) {
			return made, before, err
		}
		// No URL was due at the frozen time, so makeOnce plans with the present time.
	}
	now, err = r.clockOf(ctx, cfg, round)
	if err != nil {
		return nil, now, err
	}
	made, err = r.makePlan(ctx, cfg, crawl, round, earlier, now, scratch)
	if err != nil || !r.driver {
		return made, now, err
	}
	counts, err := r.freezeNow(ctx, round, before, now)
	if err == nil && !counts.Equal(now) { // another driver froze its clock first
		made, err = r.makePlan(ctx, cfg, crawl, round, earlier, counts, scratch)
	}
	return made, counts, err
}

// clockOf returns the time that decides which URLs are planned. With plan.skip_within, this time
// changes the plan. If the round already has a plan that must not be replaced, clockOf therefore
// returns the time of that plan. The same sources then give the same plan again on a later day.
func (r PlanRequest) clockOf(ctx context.Context, cfg *config.Config, round int) (time.Time, error) {
	now := r.Clock.Now().UTC()
	if cfg.Plan.SkipWithin == 0 || r.Replace || r.driver {
		return now, nil
	}
	l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return now, nil
	}
	if err != nil {
		return now, err
	}
	if choice, _ := l.Plan(round); choice != nil {
		if then, err := time.Parse(time.RFC3339Nano, choice.Now); err == nil {
			return then, nil
		}
	}
	return now, nil
}

// freezeNow freezes the time at which a round is planned, and returns the frozen time. If the
// ledger already has a time after oldest, freezeNow returns the time in the ledger. Otherwise, it
// appends the time now to the ledger.
func (r PlanRequest) freezeNow(ctx context.Context, round int, oldest, now time.Time) (time.Time, error) {
	_, err := r.ledgers().Append(ctx, r.Bucket, r.Crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		if others, ok := l.Now(round); ok && others.After(oldest) {
			now = others
			return nil, nil
		}
		return []manifest.Entry{ledger.Planning(round, now)}, nil
	})
	return now, err
}

// dueScratch is the scratch space that each planned URL of a frontier takes, in bytes (planner/README.md).
const dueScratch = 230

// makePlan plans a round from the sources and from the results of earlier rounds. The method keeps
// temporary files in the directory scratch.
func (r PlanRequest) makePlan(ctx context.Context, cfg *config.Config, crawl *manifest.Crawl, round int, earlier []*manifest.Sealed, now time.Time, scratch string) (*planner.Plan, error) {
	basis := planning.Basis{
		Bucket: r.Bucket, Of: crawl, Round: round, Earlier: earlier, Now: now, Force: r.Force, Pruned: r.removed.pruned, Version: r.Version, Answers: r.Answers,
	}
	var err error
	if basis.Config, err = r.paced(ctx, cfg); err != nil {
		return nil, err
	}
	if basis.OptOut, err = r.optOut(ctx, cfg, round); err != nil {
		return nil, err
	}
	limits, request, err := basis.Request(ctx, scratch)
	if err != nil {
		return nil, err
	}
	if (r.Frontier || round > 0) && r.Log != nil {
		if err := room.Need(request.Known * dueScratch); err != nil {
			r.Log.Warn("if most known URLs are due, the plan will run out of scratch space", "known_urls", request.Known, "error", err)
		}
	}
	request.Sources, request.DryRun = append(slices.Clone(r.Sources), request.Sources...), r.DryRun
	request.Note = r.Note
	done, err := websource.Prepare(request.Sources, websource.Options{
		Config: basis.Config, Version: r.Version, Clock: r.Clock, Log: r.Log, Scratch: scratch, Barred: limits.OptOut.Or(limits.Gone), Tell: r.Tell,
	})
	if err != nil {
		return nil, err
	}
	defer done()
	return planner.Make(ctx, limits, request)
}

// paced returns a copy of the config with the crawl's newest politeness and stops. Hosts and
// domains that were stopped while the crawl ran must not be planned.
func (r PlanRequest) paced(ctx context.Context, cfg *config.Config) (*config.Config, error) {
	paced := cfg.Clone()
	l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return paced, nil
	}
	if err != nil {
		return nil, err
	}
	newest, revision, err := roundstate.NewestPolitenessIn(ctx, r.Bucket, l)
	if err == nil && revision > 0 {
		paced.Politeness = newest
	}
	paced.Politeness.Stops = l.Stopped()
	return paced, err
}

// Planned reports whether a crawl's first round has a plan.
func Planned(ctx context.Context, b store.Bucket, crawl string) (bool, error) {
	_, _, err := roundstate.FindPlan(ctx, b, crawl, 0)
	if errors.Is(err, roundstate.ErrNoPlan) || errors.Is(err, roundstate.ErrNoCrawl) {
		return false, nil
	}
	return err == nil, err
}

// frozenConfig returns the config for planning. For a new crawl, or if the request replaces the
// crawl's plan, frozenConfig returns the given config. For a crawl that keeps its plan,
// frozenConfig returns the frozen config with the allowed changes from the given config.
func (r PlanRequest) frozenConfig(ctx context.Context) (*config.Config, *manifest.Crawl, error) {
	m, _, err := ledger.LoadCrawl(ctx, r.Bucket, r.Crawl)
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return r.Config, nil, checkNew(r.Config)
	}
	if err != nil {
		return nil, nil, err
	}
	_, started, err := roundstate.FindPlan(ctx, r.Bucket, r.Crawl, 0)
	switch {
	case errors.Is(err, roundstate.ErrNoPlan), err == nil && !started && (r.Replace || r.DryRun), err != nil && !started && r.Replace:
		return r.Config, m, checkNew(r.Config) // nothing has been fetched, so the crawl's config may change
	case err != nil:
		return nil, nil, err
	}
	m, c, err := roundstate.OpenCrawl(ctx, r.Bucket, r.Crawl, r.Lookup)
	if err == nil {
		err = r.Config.RefuseLiteralSecrets(c)
	}
	if err != nil {
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

// checkNew returns an error if a new crawl must not have the config.
func checkNew(c *config.Config) error {
	if err := CheckAgent(c); err != nil {
		return err
	}
	return c.RefuseLiteralSecrets(nil)
}

// A round of more than mostFarURLs URLs must not have a dedup.max_distance greater than
// nearDistance.
const (
	mostFarURLs  = 100_000_000
	nearDistance = 3
)

// checkDistance returns an error if the search for near duplicates among the URLs planned for a round would take
// too long.
func checkDistance(distance, round int, urls int64) error {
	if distance <= nearDistance || urls <= mostFarURLs {
		return nil
	}
	when := ""
	if round > 0 {
		when = " for the next month: a month keeps both settings, so this one has no further round"
	}
	return fmt.Errorf("%w: dedup.max_distance is %d, and %d URLs are planned: comparing their texts would take about %v of CPU, and %v at a distance of %d; "+
		"set dedup.max_distance to %d, or plan at most %d URLs with plan.budgets.total%s", config.ErrInvalid,
		distance, urls, simhash.EstimatedCost(urls, distance).Round(time.Minute), simhash.EstimatedCost(urls, nearDistance).Round(time.Minute), nearDistance, nearDistance, mostFarURLs, when)
}

// CheckAgent returns an error for a user agent to which robots.txt might apply the rules for
// another crawler. A crawl that has already frozen such a user agent continues.
func CheckAgent(c *config.Config) error {
	if c.UserAgent == "" {
		return nil // then the program's own user agent applies, unless RequireContact rejects the config
	}
	if err := robots.CheckAgent(c.UserAgent); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return nil
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
	r := PlanRequest{
		Bucket: d.Bucket, Crawl: crawl, Config: d.Config, Clock: d.Clock, Version: d.Version, Scratch: d.Scratch, Lookup: d.Lookup, Archive: d.Runner.Archive, Log: d.Log, driver: true,
	}
	_, _, err = Plan(ctx, r)
	if errors.Is(err, ErrPlanned) { // another driver, with another config, has planned the round first
		_, _, err = roundstate.FindPlan(ctx, d.Bucket, crawl, round)
	}
	if errors.Is(err, planner.ErrNothing) {
		return false, nil
	}
	return err == nil, err
}
