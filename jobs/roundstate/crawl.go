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

// CreatingCommand returns the command that creates a crawl. flags are the flags that commands for
// the same store need, with a leading space.
func CreatingCommand(crawl, flags string) string {
	if layout.IsReparse(crawl) {
		month, _ := layout.MonthOf(crawl)
		return fmt.Sprintf("crawlbatch reparse --month %s --as %s%s", month, crawl, flags)
	}
	return fmt.Sprintf("crawlbatch plan --month %s --source FILE%s", crawl, flags)
}

// OpenCrawl reads crawl.json and its frozen config. lookup reads the environment.
func OpenCrawl(ctx context.Context, b store.Bucket, crawl string, lookup func(string) (string, bool)) (*manifest.Crawl, *config.Config, error) {
	key := layout.CrawlManifest(crawl)
	m, err := loadCrawl(ctx, b, crawl)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%s holds no crawl %s: make one with `%s`: %w", b, crawl, CreatingCommand(crawl, ""), ErrNoCrawl)
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := config.ReadFrozen(key, []byte(m.Config), lookup)
	if err != nil {
		return nil, nil, err
	}
	return m, c, nil
}

func loadCrawl(ctx context.Context, b store.Bucket, crawl string) (*manifest.Crawl, error) {
	var m manifest.Crawl
	key := layout.CrawlManifest(crawl)
	if _, _, err := manifest.Load(ctx, b, key, &m); err != nil {
		return nil, err
	}
	if m.Crawl != crawl {
		return nil, misplaced(key, "crawl "+m.Crawl, "crawl "+crawl)
	}
	return &m, nil
}

// ReparseOf returns what a reparse parses again, or nil for a crawl that fetches.
func ReparseOf(ctx context.Context, b store.Bucket, crawl string) (*manifest.Reparse, error) {
	if !layout.IsReparse(crawl) {
		return nil, nil
	}
	m, err := loadCrawl(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	if m.Reparse == nil {
		return nil, fmt.Errorf("%q does not say what the crawl parses again: %w", layout.CrawlManifest(crawl), manifest.ErrCorrupt)
	}
	return m.Reparse, nil
}
