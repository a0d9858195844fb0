package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// rounds is a clock for the loop of Follow. Each sleep lasts until the test starts the next round
// of the loop.
type rounds struct {
	slept chan time.Duration
	next  chan struct{}
}

func (r *rounds) Now() time.Time { return time.Unix(0, 0) }

func (r *rounds) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case r.slept <- d:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.next:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failingSwaps is a store in which a given number of swaps fail.
type failingSwaps struct {
	store.Bucket
	swaps int
}

func (b *failingSwaps) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if b.swaps--; b.swaps >= 0 {
		return "", store.ErrUnavailable
	}
	return b.Bucket.Swap(ctx, key, body, size, old)
}

func TestAPolitenessFileIsFollowed(t *testing.T) {
	dir, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, dir, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"})
	ledgertest.Make(t, dir, "2026-11")
	b := &failingSwaps{Bucket: dir}
	file := filepath.Join(t.TempDir(), "politeness.yaml")
	clock := &rounds{slept: make(chan time.Duration), next: make(chan struct{})}
	var log bytes.Buffer
	u := &PolitenessUpdates{Bucket: b, Crawl: "2026-11", Clock: clock, Log: slog.New(slog.NewTextHandler(&log, nil))}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		u.Follow(ctx, file)
		close(ended)
	}()
	first := true
	look := func() {
		t.Helper()
		if !first {
			clock.next <- struct{}{}
		}
		first = false
		if d := <-clock.slept; d > 5*time.Second {
			t.Errorf("Follow looks again after %s", d)
		}
	}
	for _, step := range []struct {
		name     string
		write    string // new content of the file; "" leaves the file unchanged
		away     int    // number of swaps that fail
		revision int
		delay    time.Duration
		errors   int // expected number of logged errors so far
	}{
		{name: "there is no file", revision: 0},
		{name: "it comes", write: "politeness: {delay: 3s}", revision: 1, delay: 3 * time.Second},
		{name: "nothing changes", revision: 1, delay: 3 * time.Second},
		{name: "it changes", write: "politeness: {delay: 5s}", revision: 2, delay: 5 * time.Second},
		{name: "it is wrong", write: "politeness: {delay: fast}", revision: 2, delay: 5 * time.Second, errors: 1},
		{name: "it is wrong still", revision: 2, delay: 5 * time.Second, errors: 1},
		{name: "it says what is not politeness", write: "fetch: {slots: 1}", revision: 2, delay: 5 * time.Second, errors: 2},
		{name: "the store is away", write: "politeness: {delay: 7s}", away: 2, revision: 2, delay: 5 * time.Second, errors: 3},
		{name: "the store is away still", revision: 2, delay: 5 * time.Second, errors: 3},
		{name: "the store is back", revision: 3, delay: 7 * time.Second, errors: 3},
	} {
		if step.write != "" {
			if err := os.WriteFile(file, []byte(step.write), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if step.away > 0 {
			b.swaps = step.away
		}
		look()
		p, revision, err := roundstate.NewestPoliteness(t.Context(), b, "2026-11")
		if err != nil || revision != step.revision || revision > 0 && p.Delay.Std() != step.delay {
			t.Errorf("%s: revision %d, delay %s, %v", step.name, revision, p.Delay.Std(), err)
		}
		if n := strings.Count(log.String(), StillInForce); n != step.errors {
			t.Errorf("%s: %d errors logged, want %d", step.name, n, step.errors)
		}
	}
	if want := fmt.Sprintf("revision=%d", 3); !strings.Contains(log.String(), want) {
		t.Errorf("the running task was not given %s", want)
	}
	stop()
	<-ended
}
