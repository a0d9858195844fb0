package verify

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
)

// check is one way to look at a round, or at a partition of it.
type check struct {
	round     func(*audit, context.Context, *round) error
	partition func(*audit, context.Context, *round, int) error
	lists     []listed // what it notes and reports
}

// listed is an entry of the report.
type listed struct {
	invariant int
	name, of  string
}

// checks lists the invariants in their order; those of the store's structure come
// before all of them.
func checks() []check {
	return []check{
		{partition: (*audit).checkCheckpoint, lists: []listed{{0, checkpoints, "checkpoints"}}},
		{partition: (*audit).checkOutcomes, lists: []listed{{1, oneOutcome, "planned URLs"}, {1, knownOutcomes, "rows of fetches"}}},
		{round: (*audit).checkPartitions, lists: []listed{{1, apart, "planned URLs"}}},
		{partition: (*audit).checkRobots, lists: []listed{{2, obeyed, "requests"}, {2, verdicts, "rows of fetches"}, {3, crawlDelay, "requests"}}},
		{partition: (*audit).checkPace, lists: []listed{{3, pace, "gaps"}, {3, inFlight, "requests"}}},
		{round: (*audit).checkBetweenRounds, lists: []listed{{3, pace, "gaps"}}},
		{partition: (*audit).checkCaptures, lists: []listed{{4, records, "WARC records"}, {4, pointers, "rows of fetches and pages"}, {4, indexes, "CDXJ lines"}}},
		{round: (*audit).checkDedup, lists: []listed{{5, clustersCheck, "pages"}, {5, standingCheck, "objects"}}},
		{round: (*audit).checkLinks, lists: []listed{{6, linksCheck, "link targets"}, {6, urlsCheck, "rows"}, {6, knownCheck, "URLs"}, {6, spellingsCheck, "URLs with spellings"}}},
		{round: (*audit).checkRecompute, lists: []listed{{7, recomputeCheck, "tasks"}}},
	}
}

// Run audits a crawl. The error says why the audit could not be done: the store
// does not answer, the crawl or round is not there, the context ended. Whatever is
// wrong with the data is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	return newAudit(o).run(ctx, checks())
}

func (a *audit) run(ctx context.Context, all []check) (*Report, error) {
	rounds, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	// Files that cannot be read are found first, so that they are reported once.
	for _, r := range rounds {
		if err := a.checkFiles(ctx, r); err != nil {
			return nil, err
		}
	}
	a.settle()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.Parallel)
	for _, c := range all {
		for _, l := range c.lists {
			a.note(l.invariant, l.name, l.of, 0)
		}
		for _, r := range rounds {
			if c.round != nil {
				g.Go(func() error { return c.round(a, ctx, r) })
				continue
			}
			for _, n := range a.partitions(r) {
				g.Go(func() error { return c.partition(a, ctx, r, n) })
			}
		}
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("verify %s: %w", a.Crawl, err)
	}
	report := a.summary()
	for _, r := range rounds {
		report.Rounds = append(report.Rounds, r.number)
		if r.sealed == nil {
			report.Unsealed = append(report.Unsealed, r.number)
		}
	}
	return report, nil
}

// partitions are those of the round that are looked at.
func (a *audit) partitions(r *round) []int {
	var names []string
	for n := range r.plan.Partitions {
		names = append(names, layout.RoundDir(r.crawl, r.number)+layout.Part(n))
	}
	var in []int
	for n, ok := range a.sampledOf(names) {
		if ok {
			in = append(in, n)
		}
	}
	return in
}
