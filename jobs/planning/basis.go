// Package planning makes the Basis of a plan, which is what the plan is made from beside the user's sources.
//
// The input is the crawl's earlier rounds and what the store knows about their pages. The output is the config and the
// request of package planner.
package planning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// Basis is what a plan is made from, beside the sources of the user. The same Basis and sources give the same
// plan.
type Basis struct {
	Bucket  store.Bucket
	Of      *manifest.Crawl // crawl.json, as the plan's commit will store it
	Round   int
	Config  *config.Config     // with the politeness and the stops in force
	Earlier []*manifest.Sealed // earlier rounds with their files, oldest first
	Now     time.Time
	Force   bool // plan also what was fetched within plan.skip_within
	OptOut  *scope.OptOut
	Pruned  ledger.AllPruned // what `prune` had deleted when planning began
	Version string
	Answers *source.FilterAnswers // if not nil, receives the answers of the URL filters of earlier rounds
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
	if request.HasLinks, err = s.storedLinks(ctx); err != nil {
		return limits, request, err
	}
	if len(s.Pruned) > 0 {
		request.Pruned = s.Pruned.Has
	}
	limits = worker.PlanConfig(s.Config)
	limits.OptOut = s.OptOut
	if s.Force {
		limits.SkipWithin = 0
	}
	limits.Gone, err = worker.TakenDown(ctx, s.Bucket, s.Config, nil)
	return limits, request, err
}
