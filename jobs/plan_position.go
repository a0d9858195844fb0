package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/planning"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner"
)

// position returns the number of the round to plan, its crawl document, and the earlier sealed
// rounds, oldest first. old is the crawl's stored document, or nil if the crawl is new.
func (r PlanRequest) position(ctx context.Context, cfg *config.Config, old *manifest.Crawl) (crawl *manifest.Crawl, round int, earlier []*manifest.Sealed, err error) {
	crawl = &manifest.Crawl{Header: manifest.Header{Format: schema.FormatVersion, Version: r.Version}, Crawl: r.Crawl, CreatedAt: r.Clock.Now().UTC().Format(time.RFC3339)}
	begun := false
	var sealed []*manifest.Sealed
	if old != nil {
		if sealed, err = roundstate.Sealed(ctx, r.Bucket, r.Crawl); err != nil {
			return nil, 0, nil, err
		}
		l, err := ledger.Load(ctx, r.Bucket, r.Crawl)
		if err != nil {
			return nil, 0, nil, err
		}
		begun = len(sealed) > 0 || l.Started(0) != nil || r.keepsContinued(l, old)
		crawl.Format, crawl.Continues, crawl.Continued, crawl.Listed = old.Format, old.Continues, old.Continued, old.Listed
	}
	if !begun {
		if err := r.continueCrawls(ctx, cfg, crawl); err != nil {
			return nil, 0, nil, err
		}
	}
	continued, err := roundstate.Continued(ctx, r.Bucket, crawl)
	if err != nil && !begun {
		err = r.adviseAlone(err)
	}
	if err != nil {
		return nil, 0, nil, err
	}
	if r.Continues != nil {
		r.Continues.Crawls = crawl.Continued
	}
	earlier, err = roundstate.WithFiles(ctx, r.Bucket, append(continued, sealed...), roundstate.Selection{Dataset: planning.PlannedFrom})
	if !begun {
		err = r.adviseAlone(err)
	}
	return crawl, len(sealed), earlier, err
}

// keepsContinued reports whether a planned crawl that has not begun keeps the rounds that it
// continues. It keeps these rounds if the request repeats the plan. Earlier months may have sealed
// more rounds since then, and with these rounds the repeated plan would be a different plan.
func (r PlanRequest) keepsContinued(l *ledger.Ledger, old *manifest.Crawl) bool {
	choice, _ := l.Plan(0)
	return choice != nil && !r.Replace && len(old.Continued) > 0 && old.Listed == !r.Frontier
}

// continueCrawls decides which earlier crawls an unbegun crawl continues. With plan.history, a
// crawl continues the newest earlier month and the crawls that this month continues, but only the
// rounds that are sealed now. Without plan.history, a crawl continues earlier crawls only if it is
// planned from the frontier, and then with all their rounds.
func (r PlanRequest) continueCrawls(ctx context.Context, cfg *config.Config, crawl *manifest.Crawl) error {
	// Continues without Continued means all rounds of the earlier crawls, so no field of a replaced plan may stay.
	crawl.Continues, crawl.Continued, crawl.Listed = "", nil, false
	if !r.Frontier && !cfg.Plan.History {
		return nil
	}
	before, skipped, err := lastCrawl(ctx, r.Bucket, r.Crawl)
	if r.Continues != nil && cfg.Plan.History {
		r.Continues.Skipped = skipped
	}
	if errors.Is(err, errNoCrawlBefore) && len(r.Sources) == 0 {
		return r.adviseWaiting(ctx, err, skipped)
	}
	if err != nil && !errors.Is(err, errNoCrawlBefore) {
		return r.adviseAlone(err)
	}
	if r.Continues != nil && r.Frontier {
		r.Continues.From = before
		if r.Continues.Missed, err = r.missed(ctx, before, skipped); err != nil {
			return r.adviseAlone(err)
		}
	}
	crawl.Continues = before
	if crawl.Continues == "" || !cfg.Plan.History {
		return nil
	}
	crawl.Listed = !r.Frontier
	if crawl.Continued, err = roundstate.Continuing(ctx, r.Bucket, r.Crawl, crawl.Continues); err != nil {
		return r.adviseAlone(err)
	}
	return nil
}

// Continuation says which earlier crawls a crawl continues.
type Continuation struct {
	Crawls  []manifest.ContinuedCrawl // with the numbers of their rounds, oldest crawl first
	Skipped []string                  // months newer than the last of Crawls that have no finished round, newest first

	From   string        // the crawl whose frontier the crawl is planned from; "" if there is none
	Missed []MissedMonth // From and later months that are unfinished, oldest first: what they will find is not in the plan
}

// MissedMonth is an earlier month that has begun and is not finished.
type MissedMonth struct {
	Crawl  string
	Sealed int // number of sealed rounds
	Final  int // number of rounds if it begins no further one, for FinishCommand
}

// adviseAlone adds advice to an error about an earlier month: how to plan a month only from its
// lists.
func (r PlanRequest) adviseAlone(err error) error {
	if len(r.Sources) == 0 || r.Frontier || !(errors.Is(err, ledger.ErrLost) || errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, roundstate.ErrNoCrawl)) {
		return err
	}
	return fmt.Errorf("%s would continue an earlier month: %w; to plan it without what earlier months know, set plan.history: false", r.Crawl, err)
}

// adviseWaiting adds advice to the error of a plan that finds no frontier, if one of the skipped months is about to leave one.
func (r PlanRequest) adviseWaiting(ctx context.Context, err error, skipped []string) error {
	missed, failed := r.missed(ctx, "", skipped)
	if failed != nil || len(missed) == 0 {
		return err
	}
	u := missed[len(missed)-1]
	return fmt.Errorf("%s is not finished and has no finished round yet, so it has left no frontier: give the same command with --after-earlier, which waits for it, or finish it with `%s` first: %w",
		u.Crawl, FinishCommand(u.Crawl, u.Final, ""), errNoCrawlBefore)
}

// reach is the number of earlier months in which lastCrawl and AwaitEarlier look for a crawl.
const reach = 36

// errNoCrawlBefore means that no earlier crawl in the store has a frontier to plan.
var errNoCrawlBefore = fmt.Errorf("no crawl before: %w", planner.ErrNothing)

// lastCrawl returns the newest earlier crawl with a sealed round, and the newer crawls without one.
// It skips reparses, because their frontier may contain URLs that were never fetched.
func lastCrawl(ctx context.Context, b store.Bucket, crawl string) (before string, skipped []string, err error) {
	month, err := layout.ParseMonth(crawl)
	if err != nil {
		return "", nil, err
	}
	named, err := namedCrawls(ctx, b, crawl)
	if err != nil {
		return "", nil, err
	}
	for i := 1; i <= reach; i++ {
		before := month.AddDate(0, -i, 0).Format("2006-01")
		if !named[before] {
			continue
		}
		s, err := roundstate.SealedRound(ctx, b, before, 0)
		if errors.Is(err, ledger.ErrPruned) {
			continue
		}
		if err != nil && !errors.Is(err, roundstate.ErrNoCrawl) {
			return "", nil, err
		}
		if s != nil {
			return before, skipped, nil
		}
		skipped = append(skipped, before)
	}
	return "", skipped, fmt.Errorf("%s holds no crawl with a finished round in the %d months before %s: plan from a file first: %w", b, reach, crawl, errNoCrawlBefore)
}

// namedCrawls returns the crawls that the store's head names. If an older version made the store and
// there is no head, namedCrawls lists the store's crawls.
func namedCrawls(ctx context.Context, b store.Bucket, crawl string) (map[string]bool, error) {
	head, _, err := ledger.LoadHead(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	if head != nil {
		for _, c := range head.Crawls {
			named[c.Crawl] = true
		}
		return named, nil
	}
	crawls, err := roundstate.Crawls(ctx, b)
	for _, c := range crawls {
		named[c] = true
	}
	return named, err
}
