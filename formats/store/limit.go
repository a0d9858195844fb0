package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// slowest is the least rate of a write that goes on, bytes a second.
const slowest = 256 << 10

// WithLimit bounds how long a Create goes on, which the stores otherwise repeat
// until ctx ends: by d, and what its bytes take at 256 KiB a second. Its outcome is
// unknown then, and the error ErrUnavailable; as Create succeeds over the same
// bytes, the caller may wait and call it again. Swap is passed through: its caller
// must know how it ended before it swaps anything else.
func WithLimit(b Bucket, d time.Duration) Bucket { return &limited{b, d} }

type limited struct {
	Bucket
	limit time.Duration
}

func (b *limited) Unwrap() Bucket { return b.Bucket }

func (b *limited) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (Version, error) {
	limit := b.limit + time.Duration(size/slowest)*time.Second
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := b.Bucket.Create(bounded, key, body, size)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil && !errors.Is(err, ErrExists) {
		// Not wrapped: it is the store that is late, nobody's context has ended.
		return "", fmt.Errorf("create %q: %w: not done within %v: %s", key, ErrUnavailable, limit, err.Error())
	}
	return v, err
}
