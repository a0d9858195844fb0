package roundstate

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// ConfigInForce returns a crawl's frozen config and its current config. A process applies its own
// --config and flags to the current config. settings is the key under which a driver stored the
// current config for its pods; if it is "", the current config is the frozen one. In both cases,
// the current config has the crawl's newest politeness. If the newest politeness is lost, it has
// the frozen politeness, and the error is a ledger.Lost error.
func ConfigInForce(ctx context.Context, b store.Bucket, l *ledger.Ledger, settings string, lookup func(string) (string, bool)) (frozen, current *config.Config, err error) {
	_, frozen, err = openIn(ctx, b, l, lookup)
	if err != nil {
		return nil, nil, err
	}
	current = frozen.Clone()
	if settings != "" {
		var s manifest.Settings
		if _, _, err := manifest.Load(ctx, b, settings, &s); err != nil {
			return nil, nil, err
		}
		if current, err = config.ReadFrozen(settings, []byte(s.Config), lookup); err != nil {
			return nil, nil, err
		}
		current.SetPoliteness(frozen.Politeness, layout.CrawlManifest(l.Crawl))
	}
	newest, revision, err := NewestPolitenessIn(ctx, b, l)
	newest.Stops, current.Politeness.Stops = l.Stopped(), l.Stopped()
	if errors.Is(err, ledger.ErrLost) {
		return frozen, current, err
	}
	if err != nil {
		return nil, nil, err
	}
	if revision > 0 {
		current.SetPoliteness(newest, fmt.Sprintf("politeness revision %d", revision))
	}
	return frozen, current, nil
}
