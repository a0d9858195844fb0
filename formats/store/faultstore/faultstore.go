// Package faultstore makes the calls of a store.Bucket fail on purpose, for tests.
//
// The input is a bucket, a seed and probabilities. The output is the same bucket with faults. A call
// may fail before or after its effect, take a long time, or end half-way. For a time, all calls may
// fail. Each error is store.ErrUnavailable, as with a real store. Calls from a single goroutine get
// the same faults for the same seed. Package faultstore imports store and the standard library.
package faultstore

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Op is a kind of call to a bucket.
type Op string

// The kinds of calls.
const (
	Create Op = "create"
	Swap   Op = "swap"
	Get    Op = "get"
	Open   Op = "open"
	Read   Op = "read" // a call of ReadAt of an opened object
	List   Op = "list"
	Delete Op = "delete"
)

// Fault is a kind of fault of one call.
type Fault int

// The kinds of faults.
const (
	None   Fault = iota
	Before       // the call fails without effect
	After        // the call takes effect, but its response is lost
	Short        // a read or a list ends half-way; other calls succeed
)

// Faults configures how a store fails. The zero value never fails.
type Faults struct {
	Seed                 uint64
	Before, After, Short float64       // probability of each fault per call, 0 to 1
	Latency              time.Duration // longest latency of a call; latencies are uniformly distributed
	Ops                  []Op          // kinds of calls that fail; empty means all kinds

	// Choose, if set, returns the fault of each call, in place of chance. Calls of Choose may be
	// concurrent.
	Choose func(op Op, key string) Fault
	// Sleep and Now are the store's clock. A nil function means the real clock.
	Sleep func(context.Context, time.Duration) error
	Now   func() time.Time
}

// Store is a Bucket that fails.
type Store struct {
	store.Bucket
	faults   Faults
	injected atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
	back   time.Time // time until which the store is unavailable
}

// New wraps b in a store that fails as f says.
func New(b store.Bucket, f Faults) *Store {
	if f.Sleep == nil {
		f.Sleep = store.Sleep
	}
	if f.Now == nil {
		f.Now = time.Now
	}
	return &Store{Bucket: b, faults: f, random: rand.New(rand.NewPCG(f.Seed, 0))}
}

// Unwrap returns the wrapped bucket, which has no injected faults.
func (s *Store) Unwrap() store.Bucket { return s.Bucket }

// Injected returns the number of failed calls so far.
func (s *Store) Injected() int64 { return s.injected.Load() }

// AwayFor makes all calls fail for d from now, regardless of Ops.
func (s *Store) AwayFor(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = s.faults.Now().Add(d)
}

// meet sleeps for the latency of a call, and chooses the fault of the call. For the fault Before, it
// returns the error. For the fault Short, it returns the part of the call that takes place, 0 to 1.
func (s *Store) meet(ctx context.Context, op Op, key string) (f Fault, part float64, err error) {
	s.mu.Lock()
	chance, wait, part := s.random.Float64(), s.random.Float64(), s.random.Float64()
	away := s.faults.Now().Before(s.back)
	s.mu.Unlock()
	if s.faults.Latency > 0 {
		if err := s.faults.Sleep(ctx, time.Duration(wait*float64(s.faults.Latency))); err != nil {
			return None, 0, fmt.Errorf("%s %q: %w", op, key, err)
		}
	}
	switch {
	case away:
		f = Before
	case len(s.faults.Ops) > 0 && !slices.Contains(s.faults.Ops, op):
	case s.faults.Choose != nil:
		f = s.faults.Choose(op, key)
	case chance < s.faults.Before:
		f = Before
	case chance < s.faults.Before+s.faults.After:
		f = After
	case chance < s.faults.Before+s.faults.After+s.faults.Short:
		f = Short
	}
	if f == Before {
		return f, part, s.fail(op, key, "request lost")
	}
	return f, part, nil
}

func (s *Store) fail(op Op, key, how string) error {
	s.injected.Add(1)
	return fmt.Errorf("%s %q: %w: %s on purpose", op, key, store.ErrUnavailable, how)
}

// answer returns err, or an error in place of nil if the fault f is After.
func (s *Store) answer(f Fault, op Op, key string, err error) error {
	if f == After && err == nil {
		return s.fail(op, key, "response lost")
	}
	return err
}

// call calls do, with the fault that the store chooses for this call, if any.
func call[T any](ctx context.Context, s *Store, op Op, key string, do func() (T, error)) (T, error) {
	var v, none T
	f, _, err := s.meet(ctx, op, key)
	if err == nil {
		v, err = do()
		err = s.answer(f, op, key, err)
	}
	if err != nil {
		return none, err
	}
	return v, nil
}

// Create implements store.Bucket.
func (s *Store) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	return call(ctx, s, Create, key, func() (store.Version, error) { return s.Bucket.Create(ctx, key, body, size) })
}

// Swap implements store.Bucket.
func (s *Store) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	return call(ctx, s, Swap, key, func() (store.Version, error) { return s.Bucket.Swap(ctx, key, body, size, old) })
}

// Get implements store.Bucket.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	return s.GetNew(ctx, key, limit, "")
}

// GetNew implements store.Renewer, with the faults of Get.
func (s *Store) GetNew(ctx context.Context, key string, limit int64, have store.Version) ([]byte, store.Version, error) {
	var v store.Version
	body, err := call(ctx, s, Get, key, func() (body []byte, err error) {
		body, v, err = store.GetNew(ctx, s.Bucket, key, limit, have)
		return body, err
	})
	return body, v, err
}

// Open implements store.Bucket. Reads of the opened object have faults too.
func (s *Store) Open(ctx context.Context, key string) (store.Object, error) {
	f, _, err := s.meet(ctx, Open, key)
	if err != nil {
		return nil, err
	}
	o, err := s.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := s.answer(f, Open, key, nil); err != nil {
		_ = o.Close()
		return nil, err
	}
	return store.ReadBy(o, func(p []byte, off int64) (int, error) {
		f, part, err := s.meet(ctx, Read, key)
		if err != nil {
			return 0, err
		}
		if f == Short {
			n, err := o.ReadAt(p[:int(part*float64(len(p)))], off)
			if err == nil {
				err = s.fail(Read, key, "connection broken")
			}
			return n, err
		}
		n, err := o.ReadAt(p, off)
		if err = s.answer(f, Read, key, err); err != nil && err != io.EOF {
			return 0, err
		}
		return n, err
	}), nil
}

// List implements store.Bucket. With the fault Short, the list fails after a few keys. With the
// fault After, the list fails at its end.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		f, part, err := s.meet(ctx, List, prefix)
		if err != nil {
			yield(store.Info{}, err)
			return
		}
		left := int(part * 10)
		for info, err := range s.Bucket.List(ctx, prefix) {
			if f == Short && left == 0 {
				yield(store.Info{}, s.fail(List, prefix, "connection broken"))
				return
			}
			left--
			if !yield(info, err) || err != nil {
				return
			}
		}
		if err := s.answer(f, List, prefix, nil); err != nil {
			yield(store.Info{}, err)
		}
	}
}

// Delete implements store.Bucket.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := call(ctx, s, Delete, key, func() (struct{}, error) { return struct{}{}, s.Bucket.Delete(ctx, key) })
	return err
}
