package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// MaxSkew is the largest accepted difference between this machine's clock and the store's clock. A
// table holds times of several machines, so the clocks of all machines must agree.
const MaxSkew = time.Minute

const (
	probeWriters = 8
	probeRounds  = 3
)

// ProbeResult is what Probe has found out about a usable store.
type ProbeResult struct {
	Skew  time.Duration // store's time minus this machine's time
	Dated bool          // the store has its own clock, so Skew is valid
}

// Probe checks that b keeps the promises of Bucket. Several goroutines write the same scratch key
// under probe/ at the same time, and Probe deletes the key. It returns ErrUnsupported if two writers
// win, if the store accepts an outdated version, or if a read misses the last write. It returns
// ErrClock if the clocks differ by more than MaxSkew. A store that rarely breaks a promise may pass.
// A dry run must not call Probe, because Probe writes.
func Probe(ctx context.Context, b Bucket) (result ProbeResult, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("probe %s: %w", b, err)
		}
	}()
	key := "probe/" + rand.Text()
	// Probe reads first. If the store cannot be reached, a read fails soon, but a write is repeated
	// until ctx ends.
	if _, _, err := b.Get(ctx, key, 1); !errors.Is(err, ErrNotFound) {
		if err == nil {
			err = fmt.Errorf("%w: an object exists that was never written", ErrUnsupported)
		}
		return result, err
	}
	if d, ok := As[Dater](b); ok {
		result.Skew, err = d.Skew(ctx)
		result.Dated = err == nil
		switch {
		case errors.Is(err, ErrUnsupported): // the store has no clock
		case err != nil:
			return result, err
		case result.Skew.Abs() > MaxSkew:
			return result, fmt.Errorf("%w by %v, more than %v: set the clock of this machine (NTP)", ErrClock, result.Skew.Round(time.Second), MaxSkew)
		}
	}
	for range probeRounds {
		if err := probeRound(ctx, b, "probe/"+rand.Text()); err != nil {
			return result, err
		}
	}
	return result, nil
}

func probeRound(ctx context.Context, b Bucket, key string) (err error) {
	defer func() {
		// The scratch key is deleted even if ctx has ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		deleted := b.Delete(ctx, key)
		if err == nil && !errors.Is(deleted, ErrUnavailable) && !errors.Is(deleted, context.DeadlineExceeded) {
			err = deleted // if the store is unavailable, the scratch key stays, which does no harm
		}
	}()
	created, first, err := race(ctx, b, key, "create-only writes", ErrExists, func(body []byte) (Version, error) {
		return CreateBytes(ctx, b, key, body)
	})
	if err != nil {
		return err
	}
	swapped, second, err := race(ctx, b, key, "compare-and-swap", ErrConflict, func(body []byte) (Version, error) {
		return SwapBytes(ctx, b, key, body, first)
	})
	if err != nil {
		return err
	}
	if bytes.Equal(created, swapped) || first == second {
		return fmt.Errorf("%w: two states of one object have the same version", ErrUnsupported)
	}
	switch _, err := SwapBytes(ctx, b, key, []byte(rand.Text()), first); {
	case err == nil:
		return fmt.Errorf("%w: a swap of a stale version was accepted (compare-and-swap)", ErrUnsupported)
	case !errors.Is(err, ErrConflict):
		return err
	}
	return nil
}

// race calls write for several bodies at the same time, and returns the body and version of the call
// that succeeded. All other calls must fail with the error lost, and a read must return the winner's
// body.
func race(ctx context.Context, b Bucket, key, what string, lost error, write func([]byte) (Version, error)) ([]byte, Version, error) {
	bodies := make([][]byte, probeWriters)
	versions := make([]Version, probeWriters)
	errs := make([]error, probeWriters)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range probeWriters {
		bodies[i] = []byte(rand.Text())
		wg.Go(func() {
			<-start
			versions[i], errs[i] = write(bodies[i])
		})
	}
	close(start)
	wg.Wait()
	winners := 0
	for _, err := range errs {
		switch {
		case err == nil:
			winners++
		case !errors.Is(err, lost):
			return nil, "", err
		}
	}
	if winners != 1 {
		return nil, "", fmt.Errorf("%w: %d of %d racing writers won, but exactly one must win (%s)", ErrUnsupported, winners, probeWriters, what)
	}
	winner := slices.Index(errs, nil)
	body, v, err := b.Get(ctx, key, 1<<10)
	if err != nil {
		return nil, "", err
	}
	if bytes.Equal(body, bodies[winner]) && v != versions[winner] {
		return nil, "", fmt.Errorf("%w: a read gives the version (ETag) %.100q to an object that was written as %.100q; a proxy that compresses responses may do so: turn this off, or go to the store itself",
			ErrUnsupported, v, versions[winner])
	}
	if !bytes.Equal(body, bodies[winner]) {
		return nil, "", fmt.Errorf("%w: a read did not see the write before it (consistent reads)", ErrUnsupported)
	}
	return body, v, nil
}
