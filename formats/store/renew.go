package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnchanged means that GetNew found the version that the caller already has.
var ErrUnchanged = errors.New("object is unchanged")

// Renewer is an optional interface of a store, or of a wrapper, that reads an object only if it has
// changed.
type Renewer interface {
	// GetNew is like Bucket.Get, but returns ErrUnchanged if the object has the version have. An
	// unchanged object costs a request, but no transfer.
	GetNew(ctx context.Context, key string, limit int64, have Version) ([]byte, Version, error)
}

// GetNew reads an object of b, unless the object has the version have. The error then is ErrUnchanged.
// If b does not implement Renewer, GetNew reads the object and compares the versions. GetNew does not
// repeat failed reads, and sends no second request for a slow one, because its callers poll.
func GetNew(ctx context.Context, b Bucket, key string, limit int64, have Version) ([]byte, Version, error) {
	switch w := b.(type) {
	case Renewer:
		return w.GetNew(ctx, key, limit, have)
	case *retrying:
		body, v, err := GetNew(ctx, w.Bucket, key, limit, have)
		if errors.Is(err, ErrUnavailable) && w.retry.OnRetry != nil {
			w.retry.OnRetry(1, 0, err) // the caller's next poll is the next try
		}
		return body, v, err
	case *Hedged:
		return GetNew(ctx, w.Bucket, key, limit, have)
	case *limited:
		return GetNew(ctx, w.Bucket, key, limit, have)
	}
	body, v, err := b.Get(ctx, key, limit)
	if err == nil && v == have {
		return nil, v, fmt.Errorf("get %q: %w", key, ErrUnchanged)
	}
	return body, v, err
}

// GetNew implements Renewer.
func (c *Counter) GetNew(ctx context.Context, key string, limit int64, have Version) ([]byte, Version, error) {
	body, v, err := GetNew(ctx, c.Bucket, key, limit, have)
	c.note(&c.counts.Gets, err, int64(len(body)), 0)
	return body, v, err
}
