package roundstate

import (
	"context"
	"errors"
	"slices"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Crawls lists the crawls of a store by name. A crawl is a month or a reparse of a month. The list
// includes crawls that the head names but whose crawl.json is lost. It leaves out crawls that were
// pruned as a whole.
func Crawls(ctx context.Context, b store.Bucket) ([]string, error) {
	crawls, err := ledger.Crawls(ctx, b)
	if err != nil {
		return nil, err
	}
	newest := ""
	if len(crawls) > 0 {
		newest = crawls[len(crawls)-1]
	}
	head, _, err := ledger.LoadHead(ctx, b, newest)
	if err != nil || head == nil {
		return crawls, err
	}
	for _, c := range head.Crawls {
		if slices.Contains(crawls, c.Crawl) {
			continue
		}
		l, err := ledger.Load(ctx, b, c.Crawl)
		if errors.Is(err, ledger.ErrPruned) || err == nil && l.Gone() {
			continue
		}
		crawls = append(crawls, c.Crawl) // callers report what is lost
	}
	slices.Sort(crawls)
	return crawls, nil
}

// NewestFirst lists the crawls of a store as Crawls does, the newest month first. A month comes before
// its reparses, which follow with the largest number first.
func NewestFirst(ctx context.Context, b store.Bucket) ([]string, error) {
	crawls, err := Crawls(ctx, b)
	slices.SortFunc(crawls, newerFirst)
	return crawls, err
}
