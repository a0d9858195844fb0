package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// slow is a bucket that delays its n-th read by the n-th delay. The last delay repeats.
type slow struct {
	store.Bucket
	content []byte

	mu     sync.Mutex
	delays []time.Duration
	errs   map[int]error // errors of reads by number, counted from 0
	reads  int
	ended  int // number of ended reads
	closed int // number of ended reads at the time of Close
}

func (s *slow) wait(ctx context.Context) error {
	s.mu.Lock()
	n := s.reads
	s.reads++
	d := s.delays[min(n, len(s.delays)-1)]
	err := s.errs[n]
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.ended++
		s.mu.Unlock()
	}()
	if serr := store.Sleep(ctx, d); serr != nil {
		return fmt.Errorf("get: %w", serr)
	}
	return err
}

func (s *slow) Get(ctx context.Context, _ string, _ int64) ([]byte, store.Version, error) {
	if err := s.wait(ctx); err != nil {
		return nil, "", err
	}
	return s.content, "v", nil
}

func (s *slow) Open(ctx context.Context, _ string) (store.Object, error) {
	return &slowObject{s, ctx}, nil
}

type slowObject struct {
	*slow
	ctx context.Context
}

func (o *slowObject) Size() int64                     { return int64(len(o.content)) }
func (o *slowObject) Version() (store.Version, error) { return "v", nil }

func (o *slowObject) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = o.ended
	return nil
}

func (o *slowObject) ReadAt(p []byte, off int64) (int, error) {
	if err := o.wait(o.ctx); err != nil {
		return 0, err
	}
	return bytes.NewReader(o.content).ReadAt(p, off)
}

const (
	usual = 100 * time.Millisecond
	late  = 110 * time.Millisecond // time until the second request is sent
)

// warm returns a list of delays. It begins with enough usual delays to measure the p95 and to save
// budget for a few hedges. The given delays follow.
func warm(then ...time.Duration) []time.Duration {
	var d []time.Duration
	for range 100 {
		d = append(d, usual)
	}
	return append(d, then...)
}

func get(t *testing.T, b store.Bucket) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	body, _, err := b.Get(t.Context(), "k", 100)
	if err == nil && string(body) != "content" {
		t.Errorf("read %q", body)
	}
	return time.Since(began), err
}

func TestASlowReadIsAskedTwiceAndTheFirstAnswerTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{content: []byte("content"), delays: warm(time.Minute, usual, usual)}
		h := store.WithHedge(s, store.Hedge{})
		for range 100 {
			if _, err := get(t, h); err != nil {
				t.Fatal(err)
			}
		}
		if sent, _ := h.Hedges(); sent != 0 {
			t.Fatalf("%d reads of the usual time were hedged", sent)
		}
		took, err := get(t, h)
		if sent, won := h.Hedges(); err != nil || took != late+usual || sent != 1 || won != 1 {
			t.Errorf("took %v (%v), %d sent, %d won; want the time of a second request, 1 sent and 1 won", took, err, sent, won)
		}
		synctest.Wait()
		if s.ended != s.reads {
			t.Errorf("%d of %d requests have ended: the losing request was not cancelled", s.ended, s.reads)
		}
	})
}

func TestTheFirstAnswerOfTwoIsTakenWhicheverItIs(t *testing.T) {
	away := fmt.Errorf("get: %w", store.ErrUnavailable)
	absent := fmt.Errorf("get: %w", store.ErrNotFound)
	for _, c := range []struct {
		name          string
		first, second time.Duration
		errs          map[int]error
		took          time.Duration
		want          error
		sent, won     int64
	}{
		{"the first in time", usual, usual, nil, usual, nil, 0, 0},
		{"the first, late", 150 * time.Millisecond, time.Minute, nil, 150 * time.Millisecond, nil, 1, 0},
		{"the second", time.Minute, 10 * time.Millisecond, nil, 120 * time.Millisecond, nil, 1, 1},
		{"a failure at once is not waited on", 0, usual, map[int]error{100: away}, 0, store.ErrUnavailable, 0, 0},
		{"the first fails, the second does not", 150 * time.Millisecond, usual, map[int]error{100: away}, late + usual, nil, 1, 1},
		{"the second fails, the first does not", 300 * time.Millisecond, usual, map[int]error{101: away}, 300 * time.Millisecond, nil, 1, 0},
		{"both fail", 300 * time.Millisecond, usual, map[int]error{100: away, 101: away}, 300 * time.Millisecond, store.ErrUnavailable, 1, 0},
		{"absence is an answer", time.Minute, usual, map[int]error{101: absent}, late + usual, store.ErrNotFound, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{content: []byte("content"), delays: warm(c.first, c.second), errs: c.errs}
				h := store.WithHedge(s, store.Hedge{})
				for range 100 {
					_, _ = get(t, h)
				}
				took, err := get(t, h)
				sent, won := h.Hedges()
				if took != c.took || !errors.Is(err, c.want) || sent != c.sent || won != c.won {
					t.Errorf("took %v (%v), %d sent, %d won; want %v (%v), %d, %d", took, err, sent, won, c.took, c.want, c.sent, c.won)
				}
			})
		})
	}
}

func TestHedgesStayWithinTheirShareOfReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// From the 100th read on, the first request is always slow. The measured p95 rises only
		// gradually.
		delays := warm()
		for range 1000 {
			delays = append(delays, time.Second, 10*time.Millisecond)
		}
		s := &slow{content: []byte("content"), delays: delays}
		h := store.WithHedge(s, store.Hedge{})
		for range 600 {
			_, _ = get(t, h)
		}
		if sent, _ := h.Hedges(); sent == 0 || sent > 600/20 {
			t.Errorf("%d of 600 reads were hedged, at most 5 %% may be", sent)
		}
	})
}

func TestReadsAreNotHedgedBeforeEnoughAreKnownAndNeverBelowTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{content: []byte("content"), delays: []time.Duration{usual}}
		h := store.WithHedge(s, store.Hedge{Share: 1})
		for range 31 {
			_, _ = get(t, h)
		}
		s.delays = []time.Duration{time.Hour}
		if took, _ := get(t, h); took != time.Hour {
			t.Errorf("hedged after 31 reads: took %v", took)
		}

		quick := &slow{content: []byte("content"), delays: []time.Duration{time.Millisecond}}
		h = store.WithHedge(quick, store.Hedge{Share: 1})
		for range 100 {
			_, _ = get(t, h)
		}
		quick.delays = []time.Duration{40 * time.Millisecond}
		if took, _ := get(t, h); took != 40*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if sent, _ := h.Hedges(); sent != 0 {
			t.Errorf("hedged %d times below the floor", sent)
		}
	})
}

func TestAHedgedReadOfAnObjectLeavesTheCallersBufferAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{content: []byte("0123456789"), delays: warm(time.Minute, usual)}
		h := store.WithHedge(s, store.Hedge{MaxBytes: 8})
		o, err := h.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 4)
		for range 100 {
			if n, err := o.ReadAt(p, 8); n != 2 || err != io.EOF || string(p[:2]) != "89" {
				t.Fatalf("read %q, %v", p[:n], err)
			}
		}
		began := time.Now()
		if n, err := o.ReadAt(p, 2); n != 4 || err != nil || string(p) != "2345" || time.Since(began) != late+usual {
			t.Errorf("read %q, %v after %v", p[:n], err, time.Since(began))
		}
		copy(p, "mine")
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		if s.closed != 0 {
			t.Error("the object was closed before the last read ended")
		}
		s.mu.Unlock()
		time.Sleep(2 * time.Minute) // after two minutes of virtual time, the first request has ended
		synctest.Wait()
		if string(p) != "mine" || s.closed != s.reads {
			t.Errorf("%q is in the caller's buffer; closed after %d of %d reads", p, s.closed, s.reads)
		}
		if _, err := o.ReadAt(p, 0); err == nil {
			t.Error("a closed object was read")
		}
	})
}

func TestLongReadsAreNotHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{content: []byte("0123456789"), delays: warm(time.Minute)}
		h := store.WithHedge(s, store.Hedge{MaxBytes: 4})
		o, err := h.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 101 {
			_, _ = o.ReadAt(make([]byte, 5), 0)
		}
		if sent, _ := h.Hedges(); sent != 0 || time.Since(began) < time.Minute {
			t.Errorf("%d hedged, took %v", sent, time.Since(began))
		}
	})
}
