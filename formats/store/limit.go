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

// WithLimit bounds the time of a Create or a Swap by d plus one second for each 256 KiB of the body.
// Without a limit the stores repeat Create and Swap until ctx ends. A call that reaches the limit
// returns ErrUnavailable, and its outcome is unknown. The caller may repeat the call, because a call
// succeeds if the object already has the same bytes. A caller that repeats the call with different
// bytes must be able to recognise the bytes of the earlier call.
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

func (b *limited) Swap(ctx context.Context, key string, body []byte, old Version) (Version, error) {
	return b.within(ctx, "swap", key, int64(len(body)), func(ctx context.Context) (Version, error) {
		return b.Bucket.Swap(ctx, key, body, old)
	})
}

func (b *limited) within(ctx context.Context, call, key string, size int64, write func(context.Context) (Version, error)) (Version, error) {
	limit := b.limit + time.Duration(size/slowest)*time.Second
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := write(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrConflict) {
		// The error does not wrap a context error, because no context of the caller has ended.
		return "", fmt.Errorf("%s %q: %w: not done within %v: %s", call, key, ErrUnavailable, limit, err.Error())
	}
	return v, err
}
