package jobs

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/optout"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/scope"
)

// optOut reads the opt-out list of a round. If an earlier round had a list and this round has none,
// optOut returns an error, because the user may just have forgotten --config.
func (r PlanRequest) optOut(ctx context.Context, cfg *config.Config, round int) (*scope.OptOut, error) {
	if cfg.Plan.OptOut != "" || round == 0 {
		return optout.Read(ctx, cfg, r.Archive)
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
