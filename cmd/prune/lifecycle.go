package prune

import (
	"context"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/show"
)

// runLifecycle prints the rule for cold storage, or adds it to the bucket's configuration.
func (o *options) runLifecycle(ctx context.Context, b store.Bucket, cfg *config.Config) error {
	s, ok := store.As[*s3store.Store](b)
	if !ok {
		return usage.Errorf("%s is a directory: only a store in S3 has lifecycle rules", b)
	}
	days := int32(cfg.Retention.ColdAfter.Std() / (24 * time.Hour))
	cold := s.Cold("warc/", days, cfg.Retention.ColdClass)
	if !o.apply {
		return usage.WriteJSON(o.out, cold)
	}
	kept, err := s.SetLifecycle(ctx, cold)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.out, "set: %s; kept %s of the bucket\n", cold, show.Count(int64(kept), "other rule"))
	return err
}
