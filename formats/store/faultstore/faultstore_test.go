package faultstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
)

func dir(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestContractOfRetriedReads shows that store.WithRetry hides every kind of failed read from the
// callers of a store.
func TestContractOfRetriedReads(t *testing.T) {
	injected := int64(0)
	storetest.Run(t, func(t *testing.T) store.Bucket {
		failing := New(dir(t), Faults{Seed: 5, Before: 0.2, After: 0.1, Short: 0.3, Ops: []Op{Get, Open, Read, List, Delete}})
		t.Cleanup(func() { injected += failing.Injected() })
		return store.WithRetry(failing, store.Retry{Tries: 60, Sleep: func(context.Context, time.Duration) error { return nil }})
	})
	if injected < 50 {
		t.Errorf("only %d calls failed, which shows nothing", injected)
	}
}

func TestFaultsHappenBeforeOrAfterTheEffect(t *testing.T) {
	now := None
	s := New(dir(t), Faults{Choose: func(Op, string) Fault { return now }})
	now = Before
	if _, err := store.CreateBytes(t.Context(), s, "k", []byte("x")); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Create: %v", err)
	}
	now = None
	if _, _, err := s.Get(t.Context(), "k", 1); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Get after a Create that failed before its effect: %v", err)
	}
	now = After
	if _, err := store.CreateBytes(t.Context(), s, "k", []byte("x")); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Create: %v", err)
	}
	now = None
	body, v, err := s.Get(t.Context(), "k", 1)
	if err != nil || string(body) != "x" {
		t.Fatalf("Get after a Create that failed after its effect: %q, %v", body, err)
	}
	now = After
	if _, err := store.SwapBytes(t.Context(), s, "k", []byte("y"), v); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Swap: %v", err)
	}
	now = None
	if _, err := store.SwapBytes(t.Context(), s, "k", []byte("y"), v); err != nil {
		t.Fatalf("the same Swap again: %v", err)
	}
	if s.Injected() != 3 {
		t.Errorf("%d injected, want 3", s.Injected())
	}
}

func TestSameSeedSameFaults(t *testing.T) {
	run := func(seed uint64) string {
		s := New(dir(t), Faults{Seed: seed, Before: 0.3, After: 0.3})
		var log bytes.Buffer
		for i := range 40 {
			_, err := store.CreateBytes(t.Context(), s, fmt.Sprint("k", i), nil)
			fmt.Fprintln(&log, err)
		}
		return log.String()
	}
	first := run(1)
	if run(1) != first {
		t.Error("two runs of one seed differ")
	}
	if run(2) == first {
		t.Error("runs of two seeds are the same")
	}
}

func TestShortReadsGiveWhatCame(t *testing.T) {
	s := New(dir(t), Faults{Choose: func(op Op, _ string) Fault {
		if op == Read {
			return Short
		}
		return None
	}})
	if _, err := store.CreateBytes(t.Context(), s, "k", bytes.Repeat([]byte("abcdefgh"), 100)); err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	p := make([]byte, 800)
	n, err := o.ReadAt(p, 0)
	if !errors.Is(err, store.ErrUnavailable) || n == len(p) || !bytes.Equal(p[:n], bytes.Repeat([]byte("abcdefgh"), 100)[:n]) {
		t.Fatalf("ReadAt = %d, %v", n, err)
	}
}

func TestAwayAndLatencyFollowTheClock(t *testing.T) {
	now, slept := time.Unix(0, 0), time.Duration(0)
	s := New(dir(t), Faults{
		Latency: time.Second, Ops: []Op{List}, Now: func() time.Time { return now },
		Sleep: func(_ context.Context, d time.Duration) error { slept += d; return nil },
	})
	s.AwayFor(time.Minute)
	if err := s.Delete(t.Context(), "k"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("while away: %v", err)
	}
	now = now.Add(time.Minute)
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatalf("after it came back: %v", err)
	}
	if slept <= 0 || slept > 2*time.Second {
		t.Errorf("two calls took %v, want within two seconds", slept)
	}
}

func TestProbeSeesUnavailability(t *testing.T) {
	s := New(dir(t), Faults{Before: 1})
	if _, err := store.Probe(t.Context(), s); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Probe: %v", err)
	}
}
