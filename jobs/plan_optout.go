package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
)

// OptOut reads the list that plan.opt_out names, or returns nil if the key is empty.
// If the list is in a bucket, archive opens the bucket.
func OptOut(ctx context.Context, cfg *config.Config, archive func(ctx context.Context, address string) (store.Bucket, error)) (*scope.OptOut, error) {
	if cfg.Plan.OptOut == "" {
		return nil, nil
	}
	if strings.HasPrefix(strings.ToLower(cfg.Plan.OptOut), "s3://") && archive == nil {
		return nil, fmt.Errorf("%w: plan.opt_out: this command cannot read %q", config.ErrInvalid, cfg.Plan.OptOut)
	}
	if cfg.Plan.OptOut == "-" || cfg.Plan.OptOut == source.FrontierName {
		return nil, fmt.Errorf("%w: plan.opt_out is %q: give a file or s3://bucket/key", config.ErrInvalid, cfg.Plan.OptOut)
	}
	list, err := source.Open(ctx, cfg.Plan.OptOut, source.Options{Bucket: archive})
	if err != nil {
		return nil, fmt.Errorf("plan.opt_out: %w", err)
	}
	return scope.ReadOptOut(ctx, list, cfg.Plan.StripParams, cfg.Plan.URLRules())
}

// optOut reads the opt-out list of a round. If an earlier round had a list and this round has none,
// optOut returns an error, because the user may just have forgotten --config.
func (r PlanRequest) optOut(ctx context.Context, cfg *config.Config, round int) (*scope.OptOut, error) {
	if cfg.Plan.OptOut != "" || round == 0 {
		return OptOut(ctx, cfg, r.Archive)
	}
	before, _, err := roundstate.FindPlan(ctx, r.Bucket, r.Crawl, round-1)
	if errors.Is(err, roundstate.ErrNoPlan) {
		return nil, nil
	}
	if err == nil && before.OptOutFile != nil {
		err = fmt.Errorf("%w: round %d of %s had an opt-out list, but plan.opt_out is empty: give the --config that names the list, or name an empty file if nobody opts out any more", config.ErrInvalid, round-1, r.Crawl)
	}
	return nil, err
}
