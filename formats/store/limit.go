package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// slowest is the lowest accepted rate of a write, in bytes per second.
const slowest = 256 << 10

// WithLimit returns a bucket whose Create and Swap take at most d, plus one second for each 256 KiB
// of the body. Without a limit, the stores repeat these calls until ctx ends. A call that reaches
// the limit returns ErrUnavailable, and nobody knows whether it took effect. The caller may repeat
// it with the same bytes: the call succeeds if the object already has them. A caller that continues
// with other bytes must be able to recognise the bytes of the earlier call in the store.
func WithLimit(b Bucket, d time.Duration) Bucket { return &limited{b, d} }

type limited struct {
	Bucket
	limit time.Duration
}

func (b *limited) Unwrap() Bucket { return b.Bucket }

func (b *limited) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (Version, error) {
	return b.within(ctx, "create", key, size, func(ctx context.Context) (Version, error) {
		return b.Bucket.Create(ctx, key, body, size)
	})
}

func (b *limited) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old Version) (Version, error) {
	return b.within(ctx, "swap", key, size, func(ctx context.Context) (Version, error) {
		return b.Bucket.Swap(ctx, key, body, size, old)
	})
}

func (b *limited) within(ctx context.Context, call, key string, size int64, write func(context.Context) (Version, error)) (Version, error) {
	limit := b.limit + time.Duration(size/slowest)*time.Second
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := write(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrConflict) {
		// The error must not wrap a context error, because the caller's context has not ended.
		return "", fmt.Errorf("%s %q: %w: not done within %v: %s", call, key, ErrUnavailable, limit, err.Error())
	}
	return v, err
}
