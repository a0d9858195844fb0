package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"
)

// Backoff computes the pauses between tries. Each pause is twice as long as the previous one, up to
// Max. Delay shortens each pause at random, by at most half, so that clients that failed at the same
// time try again at different times. The pauses of the zero Backoff grow from 200 ms to 20 s.
type Backoff struct {
	Base, Max time.Duration
	Rand      func() float64 // random number in [0,1); nil means math/rand/v2
}

// Delay returns the pause after a try. The first try has the number 0.
func (b Backoff) Delay(try int) time.Duration {
	base, limit, random := cmp.Or(b.Base, 200*time.Millisecond), cmp.Or(b.Max, 20*time.Second), b.Rand
	if random == nil {
		random = rand.Float64
	}
	d := limit
	if try < 30 && base<<try < limit && base<<try > 0 {
		d = base << try
	}
	return d - time.Duration(random()*float64(d)/2)
}

// Sleep waits for d. It returns the error of ctx if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Retry configures how WithRetry repeats calls.
type Retry struct {
	Tries   int // number of tries, including the first; zero means 8 tries, which take about a minute with the zero Backoff
	Backoff Backoff
	// Burst and Share define a budget of retries, so that retries do not flood a failing store. The
	// budget begins at Burst, which is also its maximum. Each call adds Share to it, and each retry
	// takes 1 from it. When the budget is used up, a retry waits for Backoff.Max. A zero Burst means
	// 64, and a zero Share means 0.2.
	Burst int
	Share float64
	Sleep func(context.Context, time.Duration) error // function that waits between tries; nil means Sleep
	// OnRetry, if set, is called before each pause with the number of failed tries, the pause and
	// the error.
	OnRetry func(tried int, wait time.Duration, err error)
}

// WithRetry returns a bucket that repeats calls while the store is unavailable: Get, Open, reads of
// opened objects, List and Delete. A repeated List continues after the last yielded key. Create and
// Swap are not repeated here: only the store itself can tell whether another writer has won, or the
// response to a successful write was lost.
func WithRetry(b Bucket, r Retry) Bucket {
	r.Tries = cmp.Or(r.Tries, 8)
	r.Burst = cmp.Or(r.Burst, 64)
	r.Share = cmp.Or(r.Share, 0.2)
	if r.Sleep == nil {
		r.Sleep = Sleep
	}
	return &retrying{Bucket: b, retry: r, tokens: float64(r.Burst)}
}

type retrying struct {
	Bucket
	retry Retry

	mu     sync.Mutex
	tokens float64 // number of retries that remain in the budget
}

func (b *retrying) Unwrap() Bucket { return b.Bucket }

// addShare adds Share to the budget of retries. Each call to the store calls addShare once.
func (b *retrying) addShare() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.retry.Share, float64(b.retry.Burst))
}

// delay returns the pause after a failed try: a short one while the budget lasts.
func (b *retrying) delay(try int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return b.retry.Backoff.Delay(longest)
	}
	b.tokens--
	return b.retry.Backoff.Delay(try)
}

// longest is the number of a try that is so high that every Backoff returns its longest pause.
const longest = 1 << 10

// wait sleeps after a failed try, and returns nil if the caller must try again. If not, wait returns
// the error for the caller of the bucket.
func (b *retrying) wait(ctx context.Context, try int, failed error) error {
	if !errors.Is(failed, ErrUnavailable) || errors.Is(failed, context.Canceled) || errors.Is(failed, context.DeadlineExceeded) {
		return failed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w (tried %d times: %w)", failed, try+1, err)
	}
	if try+1 >= b.retry.Tries {
		return fmt.Errorf("%w (tried %d times)", failed, b.retry.Tries)
	}
	d := b.delay(try)
	if b.retry.OnRetry != nil {
		b.retry.OnRetry(try+1, d, failed)
	}
	if err := b.retry.Sleep(ctx, d); err != nil {
		return fmt.Errorf("%w (tried %d times: %w)", failed, try+1, err)
	}
	return nil
}

func (b *retrying) do(ctx context.Context, op func() error) error {
	b.addShare()
	for try := 0; ; try++ {
		err := op()
		if err == nil {
			return nil
		}
		if err = b.wait(ctx, try, err); err != nil {
			return err
		}
	}
}

func (b *retrying) Get(ctx context.Context, key string, limit int64) (body []byte, v Version, err error) {
	err = b.do(ctx, func() (err error) {
		body, v, err = b.Bucket.Get(ctx, key, limit)
		return err
	})
	return body, v, err
}

func (b *retrying) Delete(ctx context.Context, key string) error {
	return b.do(ctx, func() error { return b.Bucket.Delete(ctx, key) })
}

func (b *retrying) Open(ctx context.Context, key string) (Object, error) {
	var object Object
	err := b.do(ctx, func() (err error) {
		object, err = b.Bucket.Open(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ReadBy(object, func(p []byte, off int64) (n int, err error) {
		err = b.do(ctx, func() error { // a repeated read continues after the bytes of the failed try
			var m int
			m, err = object.ReadAt(p[n:], off+int64(n))
			n += m
			return err
		})
		return n, err
	}), nil
}

func (b *retrying) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		b.addShare()
		last, try := "", 0 // the empty text sorts before all keys, because no key is empty
		for {
			var failed error
			for info, err := range b.Bucket.List(ctx, prefix) {
				if err != nil {
					failed = err
					break
				}
				if info.Key <= last {
					continue
				}
				last, try = info.Key, 0
				if !yield(info, nil) {
					return
				}
			}
			if failed == nil {
				return
			}
			if err := b.wait(ctx, try, failed); err != nil {
				yield(Info{}, err)
				return
			}
			try++
		}
	}
}
