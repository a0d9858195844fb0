package metrics

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/store"
)

// tableSuffix ends the key of every part of a table, in published datasets and in working files.
// The keys of runs end with another suffix.
const tableSuffix = ".parquet"

// The names that stand for objects outside of the published datasets, where a series has a label for
// the dataset.
const (
	ofWARC      = "warc"      // WARC files and their indexes
	ofWebGraph  = "webgraph"  // text files of web graphs
	ofDocuments = "documents" // plans, checkpoints, results, ledgers and all other JSON documents
	ofWorking   = "working"   // segments, plan files, runs, URL filters and all other files that only tasks read
)

// datasetNames returns the values of the label for the dataset, sorted.
func datasetNames() []string {
	names := []string{ofWARC, ofWebGraph, ofDocuments, ofWorking}
	for _, d := range catalog.Datasets() {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// datasetOf returns the dataset of a key, one of the datasetNames.
func (m *Metrics) datasetOf(key string) string {
	name, rest, _ := strings.Cut(key, "/")
	if name == "tables" {
		name, _, _ = strings.Cut(rest, "/")
	}
	switch {
	case m.writtenBytes[name] != nil:
		return name
	case strings.HasSuffix(key, ".json"):
		return ofDocuments
	}
	return ofWorking
}

// Bucket wraps b, times its writes and counts their bytes.
func (m *Metrics) Bucket(b store.Bucket) store.Bucket {
	if m == nil {
		return b
	}
	return &timedBucket{b, m}
}

// timedBucket is a Bucket that times its writes.
type timedBucket struct {
	store.Bucket
	m *Metrics
}

// Unwrap returns the timed bucket.
func (t *timedBucket) Unwrap() store.Bucket { return t.Bucket }

// answered notes whether the store answered a call, for /readyz. A call whose context ended tells nothing.
func (t *timedBucket) answered(ctx context.Context, err error) {
	if ctx.Err() == nil {
		t.m.storeAway.Store(errors.Is(err, store.ErrUnavailable))
	}
}

// Get implements store.Bucket. Fetch tasks read the ledger every few seconds, so a store that does not
// answer is noticed soon.
func (t *timedBucket) Get(ctx context.Context, key string, limit int64) (body []byte, v store.Version, err error) {
	defer func() { t.answered(ctx, err) }()
	return t.Bucket.Get(ctx, key, limit)
}

// GetNew implements store.Renewer, as Get does store.Bucket.
func (t *timedBucket) GetNew(ctx context.Context, key string, limit int64, have store.Version) (body []byte, v store.Version, err error) {
	defer func() { t.answered(ctx, err) }()
	return store.GetNew(ctx, t.Bucket, key, limit, have)
}

// wrote records a write that began at the given time. *err says whether the write of size bytes
// succeeded.
func (t *timedBucket) wrote(key string, began time.Time, size int64, err *error) {
	took := t.m.clock.Now().Sub(began).Seconds()
	t.m.storeWrites.Observe(took)
	if strings.HasSuffix(key, tableSuffix) {
		t.m.tableWrites.Observe(took)
	}
	if *err == nil {
		t.m.writtenBytes[t.m.datasetOf(key)].Add(float64(size))
	}
}

// Create implements store.Bucket.
func (t *timedBucket) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (_ store.Version, err error) {
	defer t.wrote(key, t.m.clock.Now(), size, &err)
	defer func() { t.answered(ctx, err) }()
	return t.Bucket.Create(ctx, key, body, size)
}

// Swap implements store.Bucket.
func (t *timedBucket) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (_ store.Version, err error) {
	defer t.wrote(key, t.m.clock.Now(), size, &err)
	defer func() { t.answered(ctx, err) }()
	return t.Bucket.Swap(ctx, key, body, size, old)
}
