package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// stored returns the number of objects in the folder of round 0.
func (f *fixture) stored() (n int) {
	for _, err := range f.bucket.List(f.t.Context(), layout.RoundDir("2026-11", 0)) {
		if err != nil {
			f.t.Fatal(err)
		}
		n++
	}
	return n
}

// fullStore is a store with room for a number of further objects.
type fullStore struct {
	store.Bucket
	room int
}

func (b *fullStore) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if !strings.HasPrefix(key, "crawl=") {
		return b.Bucket.Create(ctx, key, body, size) // store.Probe makes this write
	}
	if b.room--; b.room < 0 {
		return "", fmt.Errorf("%s: %w", key, store.ErrFull)
	}
	return b.Bucket.Create(ctx, key, body, size)
}

// TestAPlanOnAFullDiskLeavesNoPart has room for a few objects. The plan fails, and removes what it stored of itself,
// but never the objects of a plan that the ledger names.
func TestAPlanOnAFullDiskLeavesNoPart(t *testing.T) {
	f, removed := newFixture(t), 0
	b := f.bucket
	var p *manifest.Plan
	for room := 0; p == nil; room++ {
		f.bucket = &fullStore{b, room}
		made, _, err := f.plan(false, someURLs...)
		if err == nil {
			p = made
			break
		}
		if files := f.stored(); !errors.Is(err, store.ErrFull) || files > 0 {
			t.Errorf("room for %d objects: %v leaves %d objects", room, err, files)
		}
		if strings.Contains(err.Error(), "is removed") {
			removed++
		}
	}
	if removed < 3 {
		t.Errorf("%d plans removed what they stored", removed)
	}
	files := f.stored()
	if err := b.Delete(t.Context(), layout.PlanManifest(p.Crawl, p.Round, p.ID)); err != nil {
		t.Fatal(err)
	}
	f.bucket = &fullStore{b, 0}
	if _, _, err := f.plan(true, someURLs...); !errors.Is(err, store.ErrFull) || strings.Contains(err.Error(), "is removed") {
		t.Errorf("a plan that the ledger names: %v", err)
	}
	if left := f.stored(); left != files-1 {
		t.Errorf("%d objects remain of a plan that the ledger names, not %d", left, files-1)
	}
}
