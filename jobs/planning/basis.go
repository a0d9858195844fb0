package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/spool"
	"crawlbatch.io/crawlbatch/stages"
)

// Basis is what a plan is made from, beside the sources of the user. The same Basis and sources give the same
// plan.
type Basis struct {
	Bucket    store.Bucket
	Of        *manifest.Crawl // crawl.json, as the plan's commit will store it
	Round     int
	Config    *config.Config     // with the politeness and the stops in force
	Earlier   []*manifest.Sealed // earlier rounds with their files, oldest first
	Now       time.Time
	Format    int  // format of the plan
	Force     bool // plan also what was fetched within plan.skip_within
	OptOut    *scope.OptOut
	Pruned    ledger.AllPruned // what `prune` had deleted when planning began
	Takedowns int              // in the store's list when planning began
	Version   string
	Answers   *source.FilterAnswers // if not nil, receives the answers of the URL filters of earlier rounds
}

// PlannedFrom reports whether the planner reads the named dataset of earlier rounds.
func PlannedFrom(dataset string) bool {
	return dataset == stages.FileHosts || dataset == stages.FileURLFilter || roundstate.HasStates(dataset)
}

// Request returns the planner's config and request. The request has no sources of the user. The planner keeps
// temporary files in the directory scratch.
func (s *Basis) Request(ctx context.Context, scratch string) (limits planner.Config, request planner.Request, err error) {
	known := urlstate.After(s.Earlier)
	if known.Cut() {
		return limits, request, fmt.Errorf("round %d of %s would need the states of URLs in months before it, and some of these months were pruned: plan a newer month: %w", s.Round, s.Of.Crawl, ledger.ErrPruned)
	}
	request = planner.Request{
		Crawl: s.Of.Crawl, Round: s.Round, Known: known.Known(), Buckets: known.Buckets(), Now: s.Now, Scratch: scratch, Version: s.Version,
	}
	answers, weights, recrawl := cmp.Or(s.Answers, new(source.FilterAnswers)), s.Config.Plan.Priority, s.Config.Frontier.Recrawl.Rule()
	*answers = source.FilterAnswers{} // of an earlier try
	if len(s.Earlier) > 0 {
		checked := stages.Checked(s.Bucket, &stages.Input{Earlier: s.Earlier})
		for _, sealed := range s.Earlier {
			for _, f := range slices.Concat(sealed.FilesOf(stages.FileHosts), sealed.FilesOf(stages.FileURLFilter)) {
				from := stages.Rank
				if f.Dataset == stages.FileURLFilter {
					from = stages.Frontier
				}
				checked.Add(stages.RemedyFor(from, sealed.Crawl, f), f)
			}
		}
		switch own := s.Earlier[len(s.Earlier)-s.Round:]; {
		case !s.Config.Plan.History:
			request.Sources = []source.Source{source.Frontier(checked, s.Of.Crawl, s.Earlier, s.Now, weights, recrawl, scratch)}
		case !s.Of.Listed:
			request.History = []source.Known{source.Frontier(checked, s.Of.Crawl, s.Earlier, s.Now, weights, recrawl, scratch)}
		default:
			request.History = []source.Known{source.History(checked, s.Earlier[:len(s.Earlier)-s.Round], answers)}
			if s.Round > 0 {
				request.History = slices.Insert(request.History, 0, source.OwnFrontier(checked, s.Of.Crawl, own, s.Now, weights, recrawl, scratch))
			}
		}
		request.Hosts = source.Hosts(ctx, checked, s.Earlier)
	}
	if request.HasLinks, err = s.hasLinks(ctx); err != nil {
		return limits, request, err
	}
	if len(s.Pruned) > 0 {
		request.Pruned = s.Pruned.Has
	}
	limits = worker.PlanConfig(s.Config)
	limits.BeforeFormat8, limits.Format, limits.OptOut = s.Of.Format < 8, s.Format, s.OptOut
	if s.Force {
		limits.SkipWithin = 0
	}
	limits.Gone, err = worker.TakenDown(ctx, s.Bucket, s.Config, nil)
	return limits, request, err
}

// state returns a digest of what a task reads again from the store, and what may have changed since the plan began.
func (s *Basis) state() string {
	text := fmt.Sprintf("takedowns %d\n", s.Takedowns)
	if stops := s.Config.Politeness.Stops; stops != nil {
		text += fmt.Sprintf("stops %v\n", *stops) // fmt sorts maps
	}
	var crawls []string
	for crawl := range s.Pruned {
		crawls = append(crawls, crawl)
	}
	slices.Sort(crawls)
	for _, crawl := range crawls {
		text += fmt.Sprintf("pruned %s %d\n", crawl, s.Pruned[crawl].Entry.N)
	}
	for _, sealed := range s.Earlier {
		text += fmt.Sprintf("round %s.%d %s\n", sealed.Crawl, sealed.Round, sealed.Plan)
	}
	return manifest.Digest([]byte(text))
}

// store returns the document from which a task makes the same Basis. It stores the opt-out list in the depot.
func (s *Basis) store(ctx context.Context, d spool.Depot, gone *takedown.Guard, scratch string) (*manifest.PlanBasis, error) {
	text, err := s.Config.YAML()
	if err != nil {
		return nil, err
	}
	out := &manifest.PlanBasis{Of: *s.Of, Config: text, Now: s.Now.UTC().Format(time.RFC3339Nano), Format: s.Format, Force: s.Force, State: s.state()}
	if s.OptOut != nil {
		l, err := table.WriteFile(filepath.Join(scratch, "opt-out.parquet"), s.OptOut.Rows(gone))
		if err != nil {
			return nil, err
		}
		f, err := d.Commit(ctx, l, planfile.OptOut)
		if err != nil {
			return nil, err
		}
		out.OptOut = &f
	}
	return out, nil
}

// errChanged means that the store is not as it was when a plan began.
var errChanged = errors.New("a stop, a takedown, a pruning or a finished round was added while the plan was made")

// load returns the Basis of a document. The function lookup returns variables of the environment, for ${VAR}.
func load(ctx context.Context, b store.Bucket, in *manifest.Planning, version string, lookup func(string) (string, bool)) (*Basis, error) {
	of := in.Basis
	s := &Basis{Bucket: b, Of: &of.Of, Round: in.Round, Format: of.Format, Force: of.Force, Version: version}
	var err error
	if s.Now, err = time.Parse(time.RFC3339Nano, of.Now); err != nil {
		return nil, err
	}
	if s.Config, err = config.ReadFrozen("the config of the plan", []byte(of.Config), lookup); err != nil {
		return nil, err
	}
	l, err := ledger.Load(ctx, b, in.Crawl)
	var own []*manifest.Sealed
	switch {
	case err == nil:
		s.Config.Politeness.Stops = l.Stopped()
		if own, err = roundstate.Sealed(ctx, b, in.Crawl); err != nil {
			return nil, err
		}
	case !errors.Is(err, roundstate.ErrNoCrawl):
		return nil, err
	}
	continued, err := roundstate.Continued(ctx, b, s.Of)
	if err != nil {
		return nil, err
	}
	if s.Earlier, err = roundstate.WithFiles(ctx, b, append(continued, own...), roundstate.Selection{Dataset: PlannedFrom}); err != nil {
		return nil, err
	}
	if s.Takedowns, err = takedown.Count(ctx, b); err != nil {
		return nil, err
	}
	if s.Pruned, err = ledger.ReadAllPruned(ctx, b, in.Crawl); err != nil {
		return nil, err
	}
	if have := s.state(); have != of.State {
		return nil, fmt.Errorf("%w: run `crawlbatch plan --month %s` again: %w", errChanged, in.Crawl, stages.ErrPermanent)
	}
	if of.OptOut != nil {
		checked := manifest.NewChecked(b)
		checked.Add(spool.Remedy, *of.OptOut)
		list := &manifest.Plan{ID: "in the making", OptOutFile: of.OptOut}
		if s.OptOut, err = scope.LoadOptOut(ctx, checked, list, s.Config.Plan.StripParams, s.Config.Plan.URLRules()); err != nil {
			return nil, err
		}
	}
	return s, nil
}
