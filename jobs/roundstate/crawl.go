package roundstate

import (
	"context"
	"fmt"
	"os"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// OpenCrawl reads crawl.json and the frozen config in it, and expands each ${VAR} in the config with
// lookup. The error is ErrNoCrawl if the store never had the crawl, and a ledger.Lost error if
// crawl.json is gone or is not the document that the ledger names, and if the ledger is older than the crawl's objects.
func OpenCrawl(ctx context.Context, b store.Bucket, crawl string, lookup func(string) (string, bool)) (*manifest.Crawl, *config.Config, error) {
	l, err := ledger.LoadNewest(ctx, b, crawl)
	if err != nil {
		return nil, nil, err
	}
	return openIn(ctx, b, l, lookup)
}

// openIn does the same as OpenCrawl, with a ledger that the caller has read.
func openIn(ctx context.Context, b store.Bucket, l *ledger.Ledger, lookup func(string) (string, bool)) (*manifest.Crawl, *config.Config, error) {
	key := layout.CrawlManifest(l.Crawl)
	m, err := l.ReadCrawl(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	c, err := config.ReadFrozen(key, []byte(m.Config), lookup)
	if err != nil {
		return nil, nil, err
	}
	return m, c, nil
}

// Canonicalizers returns the canonicalizers of the sources and links of crawls. Variables of the environment that are
// not set are empty, because most hold secrets, on which the rules do not depend.
func Canonicalizers(ctx context.Context, b store.Bucket, crawls []string) ([]*urlkey.Canonicalizer, error) {
	all := make([]*urlkey.Canonicalizer, len(crawls))
	for i, crawl := range crawls {
		var unset []string
		_, cfg, err := OpenCrawl(ctx, b, crawl, func(name string) (string, bool) {
			value, set := os.LookupEnv(name)
			if !set {
				unset = append(unset, name)
			}
			return value, true
		})
		if err != nil && unset != nil {
			err = fmt.Errorf("%w (not set in the environment: %s)", err, strings.Join(unset, ", "))
		}
		if err != nil {
			return nil, err
		}
		if all[i], err = cfg.Plan.Canonicalizer(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ReparseOf returns what a reparse parses again: a crawl or external WARC files. For a crawl that
// fetches, it returns nil.
func ReparseOf(ctx context.Context, b store.Bucket, crawl string) (*manifest.Reparse, error) {
	if !layout.IsReparse(crawl) {
		return nil, nil
	}
	m, _, err := ledger.LoadCrawl(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	if m.Reparse == nil {
		return nil, fmt.Errorf("%q does not say which responses the crawl parses again: %w", layout.CrawlManifest(crawl), manifest.ErrCorrupt)
	}
	return m.Reparse, nil
}
