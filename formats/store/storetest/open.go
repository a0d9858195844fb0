package storetest

import (
	"context"
	"sync"

	"crawlbatch.io/crawlbatch/formats/store"
)

// OpenCounter is a bucket that counts its open objects.
type OpenCounter struct {
	store.Bucket
	mu         sync.Mutex
	open, most int
}

// Counts returns the number of open objects, and the largest number that was open at the same time.
func (b *OpenCounter) Counts() (open, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open, b.most
}

// Open implements store.Bucket.
func (b *OpenCounter) Open(ctx context.Context, key string) (store.Object, error) {
	o, err := b.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	b.count(1)
	return &openObject{o, b}, nil
}

func (b *OpenCounter) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open += n
	b.most = max(b.most, b.open)
}

type openObject struct {
	store.Object
	of *OpenCounter
}

func (o *openObject) Close() error {
	o.of.count(-1)
	return o.Object.Close()
}
