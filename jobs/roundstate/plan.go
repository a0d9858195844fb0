package roundstate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// FindPlan returns the plan that a round follows. In a started round, start.json names it. Before
// that, it is the round's only plan. The error is ErrNoPlan if there is no plan. It is also an
// error if a round that has not started has several plans.
func FindPlan(ctx context.Context, b store.Bucket, crawl string, round int) (p *manifest.Plan, started bool, err error) {
	var s manifest.Start
	_, _, err = manifest.Load(ctx, b, layout.Start(crawl, round), &s)
	switch {
	case err == nil:
		p, err = loadPlan(ctx, b, crawl, round, s.Plan)
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("round %d of %s was started with plan %s, which is missing: restore it: %w", round, crawl, s.Plan, stages.ErrPermanent)
		}
		return p, true, err
	case !errors.Is(err, store.ErrNotFound):
		return nil, false, err
	}
	ids, err := Plans(ctx, b, crawl, round)
	if err != nil {
		return nil, false, err
	}
	switch len(ids) {
	case 0:
		return nil, false, fmt.Errorf("round %d of crawl %s has no plan: make one with `%s`: %w", round, crawl, CreatingCommand(crawl, ""), ErrNoPlan)
	case 1:
		p, err = loadPlan(ctx, b, crawl, round, ids[0])
		return p, false, err
	}
	return nil, false, fmt.Errorf("round %d of crawl %s has %d plans (%s), left by an interrupted `plan --replace`: run it again",
		round, crawl, len(ids), strings.Join(ids, ", "))
}

// Plans lists the IDs of a round's complete plans.
func Plans(ctx context.Context, b store.Bucket, crawl string, round int) ([]string, error) {
	var ids []string
	prefix := layout.RoundDir(crawl, round) + "plan-"
	for o, err := range b.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list plans of %s.%d: %w", crawl, round, err)
		}
		id, rest, _ := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/")
		if rest == "plan.json" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func loadPlan(ctx context.Context, b store.Bucket, crawl string, round int, id string) (*manifest.Plan, error) {
	var p manifest.Plan
	key := layout.PlanManifest(crawl, round, id)
	if _, _, err := manifest.Load(ctx, b, key, &p); err != nil {
		return nil, err
	}
	if p.Crawl != crawl || p.Round != round || p.ID != id {
		return nil, misplaced(key, fmt.Sprintf("plan %s of %s.%d", p.ID, p.Crawl, p.Round), fmt.Sprintf("plan %s of %s.%d", id, crawl, round))
	}
	return &p, nil
}

// FormatOf returns the schema.FormatVersion of a round's start.json.
func FormatOf(ctx context.Context, b store.Bucket, crawl string, round int) (int, error) {
	var s manifest.Start
	_, _, err := manifest.Load(ctx, b, layout.Start(crawl, round), &s)
	return s.Format, err
}

// LacksSpellings reports whether a round checks robots.txt for every spelling of a URL, but its
// plan does not list the spellings because an older version made it.
func LacksSpellings(ctx context.Context, b store.Bucket, p *manifest.Plan) (bool, error) {
	if p.KeepsSpellings() {
		return false, nil
	}
	format, err := FormatOf(ctx, b, p.Crawl, p.Round)
	return format >= 2, err
}

// Begin starts a round: it creates start.json once and returns the plan that start.json names.
func Begin(ctx context.Context, b store.Bucket, crawl string, round int, version string) (*manifest.Plan, error) {
	p, started, err := FindPlan(ctx, b, crawl, round)
	if err != nil || started {
		return p, err
	}
	start := &manifest.Start{Header: manifest.Header{Version: version}, Plan: p.ID}
	if err := createOnce(ctx, b, layout.Start(crawl, round), start); err != nil {
		return nil, err
	}
	p, _, err = FindPlan(ctx, b, crawl, round)
	return p, err
}
