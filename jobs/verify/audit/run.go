package audit

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
)

// Step checks a round, or each partition of a round. Exactly one function of a step is set. A step
// reports faults of the data as violations. A step returns an error only if the audit cannot
// continue.
type Step struct {
	Round     func(context.Context, *Audit, *Round) error
	Partition func(context.Context, *Audit, *Round, int) error
	Checks    []Check // the checks that the step counts and reports; the first check gets errors of Concat
	Alone     bool    // the step runs alone after all other steps, one round after the other, because the step uses all CPUs and much memory
}

// Run audits a crawl with steps. An error means that the audit is impossible, because the store
// does not answer, the crawl or round does not exist, or the context ended. All faults of the data
// are in the report.
func Run(ctx context.Context, o Options, steps []Step) (*Report, error) {
	a := New(o)
	rounds, err := a.Load(ctx)
	if err != nil {
		return nil, err
	}
	damaged := len(a.found) > 0 // until now, only documents were read
	// The search for unreadable files comes first, so that each unreadable file is reported only
	// once.
	for _, r := range rounds {
		if err := a.checkFiles(ctx, r); err != nil {
			return nil, err
		}
	}
	if damaged {
		a.Note("strays were not looked for: damaged documents cannot tell which objects are theirs; repair the documents first")
	} else if err := a.checkStrays(ctx, rounds); err != nil {
		return nil, err
	}
	a.freezeBroken()
	if err := a.steps(ctx, steps, rounds); err != nil {
		return nil, fmt.Errorf("verify %s: %w", a.Crawl, err)
	}
	report := a.Report()
	report.addRounds(rounds)
	return report, nil
}

// steps runs the steps for all rounds.
func (a *Audit) steps(ctx context.Context, steps []Step, rounds []*Round) error {
	together, running := errgroup.WithContext(ctx)
	together.SetLimit(a.Parallel)
	for _, s := range steps {
		for _, c := range s.Checks {
			a.Count(c, 0)
		}
		if s.Alone {
			continue
		}
		for _, r := range rounds {
			if s.Round != nil {
				together.Go(func() error { return a.Skip(s.Round(running, a, r), s.Checks[0], r) })
				continue
			}
			for _, n := range a.partitions(r) {
				together.Go(func() error { return a.Skip(s.Partition(running, a, r, n), s.Checks[0], r) })
			}
		}
	}
	if err := together.Wait(); err != nil {
		return err
	}
	for _, s := range steps {
		for _, r := range rounds {
			if !s.Alone {
				continue
			}
			if err := a.Skip(s.Round(ctx, a, r), s.Checks[0], r); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRounds names the rounds that were audited.
func (r *Report) addRounds(rounds []*Round) {
	for _, round := range rounds {
		r.Rounds = append(r.Rounds, round.Number)
		if round.Sealed == nil {
			r.Unsealed = append(r.Unsealed, round.Number)
		}
	}
}

// partitions lists the round's partitions that are in the sample.
func (a *Audit) partitions(r *Round) []int {
	var in []int
	name := func(n int) string { return layout.RoundDir(r.Crawl, r.Number) + layout.Part(n) }
	for n, ok := range a.SampledOf(len(r.Plan.Partitions), name) {
		if ok {
			in = append(in, n)
		}
	}
	return in
}
