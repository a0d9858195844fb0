package worker

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// TakenDown returns the guard of the URLs that were taken down in the store, or nil if there are none.
// Without the right key in the config, nothing may be planned, fetched or parsed: the error wraps
// config.ErrInvalid and takedown.ErrKey. If the list of takedowns is lost, the error wraps ledger.ErrLost. p is the
// plan that is fetched or parsed again; nil while a round is planned.
func TakenDown(ctx context.Context, b store.Bucket, c *config.Config, p *manifest.Plan) (*takedown.Guard, error) {
	g, err := takedown.Open(ctx, b, c.Store.TakedownKey)
	if g == nil && err == nil {
		if p == nil {
			p = &manifest.Plan{}
		}
		err = ledger.CheckTakedownListOf(ctx, b, p)
	}
	if errors.Is(err, takedown.ErrKey) {
		err = fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	if g == nil || err != nil {
		return nil, err
	}
	rules, err := c.Plan.Canonicalizer()
	if err != nil {
		return nil, err
	}
	return g.WithRules(rules), nil
}
