// Package ledgertest makes and edits ledgers in tests, and simulates another process that acts on
// the store in the meantime.
//
// A test writes documents into a store, and the package then makes the ledger that names these
// documents. The package imports jobs/ledger, stages and formats.
package ledgertest

import (
	"context"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// Writer is a writer of ledgers for tests.
func Writer() ledger.Writer { return ledger.Writer{Version: "test", Clock: stages.SystemClock{}} }

// NoCopy is a ledger.Keeper that keeps no copy.
func NoCopy(context.Context, store.Bucket, string) (string, error) { return "", nil }

// Make recreates the head and the ledgers of the crawls from the documents in the store.
func Make(t testing.TB, b store.Bucket, crawls ...string) {
	t.Helper()
	for _, crawl := range crawls {
		if err := b.Delete(t.Context(), layout.Ledger(crawl)); err != nil {
			t.Fatal(err)
		}
	}
	for _, crawl := range crawls {
		if _, err := Writer().Rebuild(t.Context(), b, crawl, nil, NoCopy); err != nil {
			t.Fatal(err)
		}
	}
	for _, crawl := range crawls {
		if err := Writer().Found(t.Context(), b, crawl); err != nil {
			t.Fatal(err)
		}
	}
}

// Edit changes the entries of a ledger and recomputes the digests that chain the entries.
func Edit(t testing.TB, b store.Bucket, crawl string, change func([]manifest.Entry) []manifest.Entry) {
	t.Helper()
	var l manifest.Ledger
	version, _, err := manifest.Load(t.Context(), b, layout.Ledger(crawl), &l)
	if err != nil {
		t.Fatal(err)
	}
	entries := change(l.Entries)
	l.Entries = nil
	if err := l.Append(entries...); err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Swap(t.Context(), b, layout.Ledger(crawl), &l, version); err != nil {
		t.Fatal(err)
	}
}

// Overtaken is a bucket in which another process acts one time, just after the first Get of the
// object Key.
type Overtaken struct {
	store.Bucket
	Key string
	Act func() // what the other process does; nil after it has acted
}

// Get implements store.Bucket.
func (o *Overtaken) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	body, v, err := o.Bucket.Get(ctx, key, limit)
	if act := o.Act; act != nil && key == o.Key {
		o.Act = nil
		act()
	}
	return body, v, err
}
