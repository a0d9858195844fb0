package roundstate

import (
	"context"
	"fmt"
	"regexp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// crawlPrefix matches the prefixes of crawl names such as 2026-11 and 2026-11r2.
var crawlPrefix = regexp.MustCompile(`^((1|19\d?|2|20\d?)?|(19|20)\d\d(-[01]?|-\d\d(r\d*)?)?)$`)

// Crawls lists the crawls of a store by name: months and their reparses. A listing of all keys
// would read millions of names. Instead, Crawls extends each prefix that some key has by one
// character at a time.
func Crawls(ctx context.Context, b store.Bucket) ([]string, error) {
	return crawlsWith(ctx, b, "")
}

func crawlsWith(ctx context.Context, b store.Bucket, prefix string) (crawls []string, err error) {
	if some, err := anyKey(ctx, b, "crawl="+prefix); err != nil || !some {
		return nil, err
	}
	if layout.ValidCrawl(prefix) {
		ok, err := manifest.Exists(ctx, b, layout.CrawlManifest(prefix))
		if err != nil {
			return nil, err
		}
		if ok {
			crawls = append(crawls, prefix)
		}
	}
	for _, next := range "-0123456789r" {
		if longer := prefix + string(next); crawlPrefix.MatchString(longer) {
			more, err := crawlsWith(ctx, b, longer)
			if err != nil {
				return nil, err
			}
			crawls = append(crawls, more...)
		}
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
