package roundstate

import (
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Ready checks a store before a command writes to it. It returns the ledger of a crawl, or nil for a crawl that does not
// exist yet. The error is a ledger.Lost error if the store's head, active.json or the crawl's ledger is gone,
// or the ledger is older than the objects of the crawl.
func Ready(ctx context.Context, b store.Bucket, crawl string) (*ledger.Ledger, error) {
	head, _, err := ledger.LoadHead(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	_, _, err = ledger.LoadCrawl(ctx, b, crawl)
	if errors.Is(err, ErrNoCrawl) {
		return nil, ledger.CheckActive(ctx, b, head, crawl)
	}
	if err != nil {
		return nil, err
	}
	l, err := ledger.LoadNewest(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	if ledger.CheckHead(l, head) != nil {
		// A `plan` command may have added the crawl to the head after Ready read the head.
		if head, _, err = ledger.LoadHead(ctx, b, crawl); err == nil {
			err = ledger.CheckHead(l, head)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, ledger.CheckActive(ctx, b, head, crawl)
}
