package roundstate

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
)

// NewestPoliteness reads the newest revision of a crawl's politeness. If none was ever published,
// it returns revision 0, and the frozen politeness applies.
func NewestPoliteness(ctx context.Context, b store.Bucket, crawl string) (p config.Politeness, revision int, err error) {
	p, revision, _, err = loadPoliteness(ctx, b, crawl)
	return p, revision, err
}

func loadPoliteness(ctx context.Context, b store.Bucket, crawl string) (p config.Politeness, revision int, v store.Version, err error) {
	var m manifest.Politeness
	key := layout.Politeness(crawl)
	v, _, err = manifest.Load(ctx, b, key, &m)
	if errors.Is(err, store.ErrNotFound) {
		return p, 0, "", nil
	}
	if err != nil {
		return p, 0, "", err
	}
	c, err := config.Read(key, []byte(m.Config), func(string) (string, bool) { return "", false })
	if err != nil {
		return p, 0, "", fmt.Errorf("%w: %w", err, manifest.ErrCorrupt)
	}
	return c.Politeness, m.Revision, v, nil
}

// PublishPoliteness makes p the newest revision of a crawl's politeness, unless it already is, and
// returns its number. Every task that starts later follows it, whatever the task's own config says.
func PublishPoliteness(ctx context.Context, b store.Bucket, crawl string, p config.Politeness, version string) (int, error) {
	text, err := p.YAML()
	if err != nil {
		return 0, err
	}
	for {
		newest, revision, v, err := loadPoliteness(ctx, b, crawl)
		if err != nil {
			return 0, err
		}
		if have, err := newest.YAML(); err != nil || revision > 0 && have == text {
			return revision, err
		}
		next := &manifest.Politeness{Header: manifest.Header{Version: version}, Revision: revision + 1, Config: text}
		if _, err := manifest.Swap(ctx, b, layout.Politeness(crawl), next, v); !errors.Is(err, store.ErrConflict) {
			return next.Revision, err
		}
	}
}
