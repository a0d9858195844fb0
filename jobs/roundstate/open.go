package roundstate

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// ToOpen returns the sealed rounds that views open, with the parts of all datasets. If
// all is true, ToOpen returns the rounds of all crawls, otherwise the rounds of the given
// crawl. If no crawl is given (""), ToOpen returns the rounds of the newest crawl that has a sealed
// round. note names the crawl, or says why no round is returned.
func ToOpen(ctx context.Context, b store.Bucket, crawl string, all bool, lookup func(string) (string, bool)) (sealed []*manifest.Sealed, note string, err error) {
	sealed, note, err = toOpen(ctx, b, crawl, all, lookup)
	if err == nil {
		sealed, err = WithFiles(ctx, b, sealed, Selection{Dataset: func(name string) bool { _, err := catalog.Find(name); return err == nil }})
	}
	return sealed, note, err
}

// toOpen does the same as ToOpen, but returns the rounds without their files.
func toOpen(ctx context.Context, b store.Bucket, crawl string, all bool, lookup func(string) (string, bool)) (sealed []*manifest.Sealed, note string, err error) {
	if crawl != "" {
		if _, _, err := OpenCrawl(ctx, b, crawl, lookup); err != nil {
			return nil, "", err
		}
		sealed, err = Sealed(ctx, b, crawl)
		return sealed, unfinished(crawl, sealed), err
	}
	crawls, err := Crawls(ctx, b)
	if err != nil {
		return nil, "", err
	}
	if len(crawls) == 0 {
		return nil, "", &ledger.NoCrawl{Bucket: b}
	}
	if all {
		sealed, err = AllSealed(ctx, b)
		return sealed, "", err
	}
	crawl, sealed, err = NewestSealed(ctx, b, crawls)
	if note = unfinished(crawl, sealed); note != "" || err != nil {
		return sealed, note, err
	}
	note = fmt.Sprintf("opened %s, the newest crawl with a finished round", crawl)
	if len(crawls) > 1 {
		note += fmt.Sprintf(", one of %d crawls in this store. --month opens another, --all-months all of them", len(crawls))
	}
	return sealed, note, nil
}

func unfinished(crawl string, sealed []*manifest.Sealed) string {
	if len(sealed) > 0 {
		return ""
	}
	return fmt.Sprintf("no round of %s is finished yet, so the views are empty: create them again after the first round", crawl)
}
