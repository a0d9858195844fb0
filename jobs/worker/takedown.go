package worker

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/config"
)

// TakenDown returns the guard of the URLs that were taken down in the store, or nil if there are none.
// Without the right key in the config, nothing may be planned, fetched or parsed: the error wraps
// config.ErrInvalid and takedown.ErrKey.
func TakenDown(ctx context.Context, b store.Bucket, c *config.Config) (*takedown.Guard, error) {
	g, err := takedown.Open(ctx, b, c.Store.TakedownKey)
	if errors.Is(err, takedown.ErrKey) {
		err = fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return g, err
}
