package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Step checks a round, or each partition of a round. Either Round or Partition is set. A step reports
// faults of the data as violations. It returns an error only if the audit cannot continue.
type Step struct {
	Round     func(context.Context, *Audit, *Round) error
	Partition func(context.Context, *Audit, *Round, int) error
	Checks    []Check // the checks of the step; the first check reports the objects that Concat cannot read
	// Computes means that the step computes again what a round computed from rows that a takedown may
	// have removed. The step leaves out rounds with a takedown.
	Computes bool
	Alone    bool // true: the step runs after all other steps, for one round at a time, because it uses all CPUs and much memory
	Divided  bool // true: every task calls Round, which checks only the task's Share; false: one task calls Round, which checks the whole round
}

// Phase is a part of an audit that several tasks can do together. A phase begins when the previous
// phase has ended.
type Phase string

// These are the phases of an audit, in order.
const (
	Files  Phase = "files"  // the search for unreadable files
	Checks Phase = "checks" // the steps, which skip unreadable files
)

// Work tells the tasks of a phase which objects are unreadable.
type Work struct {
	Phase      Phase
	Unreadable []byte        // as in manifest.Audit
	InFlight   int           // as Audit.InFlight
	RobotsTTL  time.Duration // as Audit.RobotsTTL
}

// Elsewhere runs a phase for the given rounds in other tasks, and returns the findings of each
// task.
type Elsewhere func(ctx context.Context, w Work, rounds []*Round) ([]*manifest.Findings, error)

// Run audits a crawl with steps. If elsewhere is not nil, other tasks do the phases,
// and Run itself only reads the documents and lists the objects. An error means that the audit is
// impossible: the store does not answer, the crawl or round does not exist, or the context ended.
// All faults of the data are in the report.
func Run(ctx context.Context, o Options, steps []Step, elsewhere Elsewhere) (*Report, error) {
	if err := ledger.CheckTakedown(ctx, o.Bucket); err != nil {
		return nil, err
	}
	a := New(o)
	defer a.close()
	rounds, err := a.Load(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rounds {
		if r.TakenDown {
			a.noteTakenDown(r, steps)
		}
	}
	do := func(phase Phase) error {
		if elsewhere == nil || len(rounds) == 0 {
			return a.do(ctx, phase, steps, rounds)
		}
		found, err := elsewhere(ctx, Work{phase, a.unreadable(), a.InFlight, a.RobotsTTL}, rounds)
		if err != nil {
			return err
		}
		for _, f := range found {
			a.add(f)
		}
		return nil
	}
	a.defers = elsewhere == nil && a.Sample >= 1 && a.Round < 0 && a.Reparse == nil
	damaged := a.Report().Found() > 0 // whether a document is damaged: nothing else was read until now
	// The search for unreadable files comes first, so that each unreadable file is reported only
	// once.
	if err := do(Files); err != nil {
		return nil, err
	}
	a.Sound = a.defers && a.Report().Found() == 0
	if damaged {
		a.Note("strays were not searched for, because damaged documents do not show which objects belong to them; repair the documents first")
	} else if err := a.checkStrays(ctx, rounds); err != nil {
		return nil, err
	}
	if err := do(Checks); err != nil {
		return nil, fmt.Errorf("verify %s: %w", a.Crawl, err)
	}
	if err := a.decodeRest(ctx); err != nil {
		return nil, err
	}
	if err := a.noteKilled(ctx, rounds); err != nil {
		return nil, err
	}
	report := a.Report()
	report.addRounds(rounds)
	return report, nil
}

// RunShare does the share of one task in a phase. Every task reads the crawl's documents. The
// findings do not include the faults of the documents, because Run reports these faults.
func RunShare(ctx context.Context, o Options, steps []Step, w Work) (*manifest.Findings, error) {
	a := New(o)
	defer a.close()
	rounds, err := a.Load(ctx)
	if err != nil {
		return nil, err
	}
	a.forget()
	a.InFlight, a.RobotsTTL = w.InFlight, w.RobotsTTL
	a.addUnreadable(w.Unreadable)
	if err := a.do(ctx, w.Phase, steps, rounds); err != nil {
		return nil, fmt.Errorf("verify %s: %w", a.Crawl, err)
	}
	f := a.findings()
	if w.Phase == Checks {
		f.Unreadable = nil // the checks add no unreadable objects
	}
	return f, nil
}

// do runs the audit's share of a phase.
func (a *Audit) do(ctx context.Context, phase Phase, steps []Step, rounds []*Round) error {
	if phase == Checks {
		a.freezeBroken()
		return a.steps(ctx, steps, rounds)
	}
	if len(rounds) == 0 {
		return nil
	}
	return a.checkFiles(ctx, rounds)
}

// steps runs the audit's share of the given steps for all rounds.
func (a *Audit) steps(ctx context.Context, steps []Step, rounds []*Round) error {
	mine := func(i int, r *Round) bool { return steps[i].Divided || a.Share.Has(i+r.Number) }
	together, running := errgroup.WithContext(ctx)
	together.SetLimit(a.Parallel)
	for i, s := range steps {
		for _, c := range s.Checks {
			a.Count(c, 0)
		}
		for _, r := range rounds {
			if s.Computes && r.TakenDown {
				continue
			}
			if s.Round != nil && !s.Alone && mine(i, r) {
				together.Go(func() error { return a.Skip(s.Round(running, a, r), s.Checks[0], r) })
			}
			if s.Partition == nil {
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
	for i, s := range steps {
		for _, r := range rounds {
			if !s.Alone || !mine(i, r) || s.Computes && r.TakenDown {
				continue
			}
			if err := a.Skip(s.Round(ctx, a, r), s.Checks[0], r); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteTakenDown adds a note about the steps that leave out a round with a takedown.
func (a *Audit) noteTakenDown(r *Round, steps []Step) {
	var names []string
	for _, s := range steps {
		for _, c := range s.Checks {
			if s.Computes {
				names = append(names, c.Name)
			}
		}
	}
	a.Note("round %d: checks that compute again what a takedown changed were left out: %s", r.Number, strings.Join(names, ", "))
}

// addRounds adds the numbers of the audited rounds to the report.
func (r *Report) addRounds(rounds []*Round) {
	for _, round := range rounds {
		r.Rounds = append(r.Rounds, round.Number)
		if round.Sealed == nil {
			r.Unsealed = append(r.Unsealed, round.Number)
		}
	}
}

// partitions lists the round's partitions that are in the sample and in the audit's share.
func (a *Audit) partitions(r *Round) []int {
	var in []int
	name := func(n int) string { return layout.RoundDir(r.Crawl, r.Number) + layout.Part(n) }
	for n, ok := range a.SampledOf(len(r.Plan.Partitions), name) {
		if ok && a.Share.Has(n) {
			in = append(in, n)
		}
	}
	return in
}
