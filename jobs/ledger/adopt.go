package ledger

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Adopt creates the store's head and the ledger of each crawl of an older format. Before that,
// Adopt calls await, which waits until no process of an older version fetches. Adopt skips crawls
// that already have a ledger. Several processes may call Adopt at the same time, and a second call
// continues an interrupted adoption.
//
// Adopt first writes active.json and crawl.json in the new format, which older versions refuse.
// Adopt then writes the ledger, and finally adds the crawl's name to the head. An interrupted
// adoption leaves a crawl.json that has the field adopted_from, although the head does not name the
// crawl.
func (w Writer) Adopt(ctx context.Context, b store.Bucket, crawls []string, await func(ctx context.Context, a *manifest.Active) error) (adopted []string, err error) {
	var old []string
	for _, crawl := range crawls {
		head, _, err := LoadHead(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		l, err := Load(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		m, _, err := LoadCrawl(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		if l.Unadopted(m, head) {
			old = append(old, crawl)
		}
	}
	if len(old) == 0 {
		return nil, nil
	}
	if err := w.adoptActive(ctx, b, old[0], await); err != nil {
		return nil, err
	}
	for _, crawl := range old {
		if err := w.adoptCrawl(ctx, b, crawl); err != nil {
			return nil, fmt.Errorf("adopt crawl %s: %w", crawl, err)
		}
	}
	for _, crawl := range old {
		if err := w.name(ctx, b, crawl, true, false); err != nil {
			return nil, fmt.Errorf("adopt crawl %s: %w", crawl, err)
		}
	}
	return old, nil
}

// Unadopted reports whether Adopt still has to adopt the ledger's crawl, or to finish its adoption.
func (l *Ledger) Unadopted(m *manifest.Crawl, head *manifest.Crawls) bool {
	return m.Format < Since || m.AdoptedFrom > 0 && l.fresh() && !(head != nil && head.Names(l.Crawl))
}

// adoptActive gives active.json the new format, so that an older version can no longer claim a
// round.
func (w Writer) adoptActive(ctx context.Context, b store.Bucket, crawl string, await func(ctx context.Context, a *manifest.Active) error) error {
	for {
		a, version, err := LoadActive(ctx, b, crawl)
		if errors.Is(err, store.ErrNotFound) {
			a, version, err = &manifest.Active{Done: true}, "", nil
		}
		if err != nil || a.Format >= Since {
			return err
		}
		if !a.Done && await != nil {
			if err := await(ctx, a); err != nil {
				return err
			}
		}
		a.Version, a.Nonce = w.Version, "adopted-"+w.now()
		if _, err := manifest.Swap(ctx, b, layout.Active(), a, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// adoptCrawl gives crawl.json the new format, then writes the ledger.
func (w Writer) adoptCrawl(ctx context.Context, b store.Bucket, crawl string) error {
	for {
		var m manifest.Crawl
		version, _, err := manifest.Load(ctx, b, layout.CrawlManifest(crawl), &m)
		if err != nil {
			return err
		}
		if m.Format >= Since {
			break
		}
		m.AdoptedFrom = m.Format
		if _, err := manifest.Swap(ctx, b, layout.CrawlManifest(crawl), &m, version); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	if stands, err := manifest.Exists(ctx, b, layout.Ledger(crawl)); err != nil || stands {
		return err
	}
	if err := w.write(ctx, b, crawl, ""); !errors.Is(err, store.ErrConflict) { // another process has written the ledger first
		return err
	}
	return nil
}

// write makes a ledger from the documents in the store. It replaces an existing ledger only if the
// version of that ledger equals old.
func (w Writer) write(ctx context.Context, b store.Bucket, crawl string, old store.Version) error {
	entries, err := existingEntries(ctx, b, crawl)
	if err != nil {
		return err
	}
	_, err = w.swap(ctx, b, &Ledger{Crawl: crawl, version: old}, entries)
	return err
}
