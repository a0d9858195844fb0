package roundstate

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Crawls lists the crawls of a store, months and reparses of them, in order. Listing all keys
// would read millions of names, so it asks decade, year and month whether there is
// anything.
func Crawls(ctx context.Context, b store.Bucket) ([]string, error) {
	var crawls []string
	for decade := 199; decade < 210; decade++ {
		if some, err := anyKey(ctx, b, fmt.Sprintf("crawl=%d", decade)); err != nil || !some {
			if err != nil {
				return nil, err
			}
			continue
		}
		for year := decade * 10; year < decade*10+10; year++ {
			some, err := anyKey(ctx, b, fmt.Sprintf("crawl=%d-", year))
			if err != nil {
				return nil, err
			}
			for month := 1; some && month <= 12; month++ {
				crawl := fmt.Sprintf("%d-%02d", year, month)
				ok, err := manifest.Exists(ctx, b, layout.CrawlManifest(crawl))
				if err != nil {
					return nil, err
				}
				if ok {
					crawls = append(crawls, crawl)
				}
				more, err := reparses(ctx, b, crawl+"r")
				if err != nil {
					return nil, err
				}
				crawls = append(crawls, more...)
			}
		}
	}
	return crawls, nil
}

// reparses lists the crawls whose names begin with prefix and go on with digits, in
// the order of their names as texts.
func reparses(ctx context.Context, b store.Bucket, prefix string) ([]string, error) {
	some, err := anyKey(ctx, b, "crawl="+prefix)
	if err != nil || !some {
		return nil, err
	}
	var crawls []string
	if layout.IsReparse(prefix) {
		ok, err := manifest.Exists(ctx, b, layout.CrawlManifest(prefix))
		if err != nil {
			return nil, err
		}
		if ok {
			crawls = append(crawls, prefix)
		}
	}
	for digit := range 10 {
		more, err := reparses(ctx, b, fmt.Sprintf("%s%d", prefix, digit))
		if err != nil {
			return nil, err
		}
		crawls = append(crawls, more...)
	}
	return crawls, nil
}

// anyKey reports whether some key starts with prefix.
func anyKey(ctx context.Context, b store.Bucket, prefix string) (bool, error) {
	for _, err := range b.List(ctx, prefix) {
		if err != nil {
			return false, fmt.Errorf("list %s: %w", prefix, err)
		}
		return true, nil
	}
	return false, nil
}
