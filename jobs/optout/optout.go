// Package optout reads the opt-out list that a config names: the hosts, domains and URL patterns that get
// no requests. The package imports jobs/config and planner.
package optout

import (
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Read reads the list that plan.opt_out names, or returns nil if the key is empty.
// If the list is in a bucket, archive opens the bucket.
func Read(ctx context.Context, cfg *config.Config, archive func(ctx context.Context, address string) (store.Bucket, error)) (*scope.OptOut, error) {
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
