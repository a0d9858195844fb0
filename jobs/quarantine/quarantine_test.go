package quarantine

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

func bucket(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, b store.Bucket, key, body string) {
	t.Helper()
	if _, err := store.CreateBytes(t.Context(), b, key, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, b store.Bucket, key string) string {
	t.Helper()
	body, _, err := b.Get(t.Context(), key, 1<<20)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestAnObjectIsMovedWholeAndNeverOverAnother(t *testing.T) {
	b := bucket(t)
	const key = "tables/text/crawl=2026-11/round=0/copy.parquet"
	for n, body := range []string{"one", "two", "one"} {
		put(t, b, key, body)
		to, err := Move(t.Context(), b, key)
		if err != nil || has(t, b, to) != body || has(t, b, key) != "" || !strings.HasPrefix(to, "quarantine/") {
			t.Errorf("move %d: %q has %q: %v", n, to, has(t, b, to), err)
		}
	}
	if a, z := has(t, b, layout.Quarantined(key, 1)), has(t, b, layout.Quarantined(key, 2)); a != "one" || z != "two" {
		t.Errorf("%q, %q", a, z)
	}
	if to, err := Move(t.Context(), b, key); to != "" || err != nil {
		t.Errorf("an object that is gone: %q, %v", to, err)
	}
}

// liar is a store that changes the bytes stored under quarantine/, or deletes nothing.
type liar struct {
	store.Bucket
	lies, keeps bool
}

func (l *liar) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if l.lies {
		return l.Bucket.Create(ctx, key, strings.NewReader("other"), 5)
	}
	return l.Bucket.Create(ctx, key, body, size)
}

func (l *liar) Delete(ctx context.Context, key string) error {
	if l.keeps {
		return store.ErrUnavailable
	}
	return l.Bucket.Delete(ctx, key)
}

func TestNothingIsDeletedBeforeItsCopyIsProven(t *testing.T) {
	b := &liar{Bucket: bucket(t), lies: true}
	put(t, b.Bucket, "a/b", "bytes")
	if _, err := Move(t.Context(), b, "a/b"); err == nil || !strings.Contains(err.Error(), "nothing was deleted") || has(t, b, "a/b") != "bytes" {
		t.Errorf("%v: %q is left", err, has(t, b, "a/b"))
	}
	b = &liar{Bucket: bucket(t), keeps: true}
	put(t, b, "a/b", "bytes")
	if _, err := Move(t.Context(), b, "a/b"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a move that was interrupted: %v", err)
	}
	b.keeps = false
	if to, err := Move(t.Context(), b, "a/b"); err != nil || to != layout.Quarantined("a/b", 1) || has(t, b, "a/b") != "" {
		t.Errorf("the same move again: %q, %v", to, err)
	}
}

func TestAMoverThatLostItsRightDeletesNothing(t *testing.T) {
	b, lost := bucket(t), errors.New("lost")
	put(t, b, "a/b", "bytes")
	if _, err := Move(t.Context(), b, "a/b", func(context.Context) error { return lost }); !errors.Is(err, lost) || has(t, b, "a/b") != "bytes" {
		t.Errorf("%v: %q is left", err, has(t, b, "a/b"))
	}
}
