// Package storetest is a test suite for the contract of store.Bucket. Every implementation and every
// wrapper runs the suite, so that each can replace the others.
//
// The input is a function that opens a bucket. The output is test failures. Package storetest
// imports store and the standard library.
package storetest

import (
	"context"
	"errors"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Run checks the contract. Each call of bucket must open an empty bucket. The subtests run one after
// the other.
func Run(t *testing.T, bucket func(t *testing.T) store.Bucket) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Bucket)
	}{
		{"an absent object is not found", absent},
		{"create stores bytes that get and open return", createAndRead},
		{"create of the same bytes succeeds, of others does not", createAgain},
		{"a large object is whole after create and swap", createLarge},
		{"create has one winner among many", createRace},
		{"create and swap fail on a body that ends early and change nothing", createShortBody},
		{"swap goes from version to version", swapChain},
		{"swap of the zero version creates", swapZero},
		{"swap repeated with its own body succeeds", swapRepeated},
		{"swap has one winner among many", swapRace},
		{"swaps that append lose nothing", swapAppend},
		{"get refuses more than its limit", getLimit},
		{"getting what is new returns nothing else", getNew},
		{"ranges are read concurrently and end as io.ReaderAt says", readAt},
		{"list goes in key order below a prefix", listOrder},
		{"list stops when its consumer stops, and refuses bad prefixes", listStops},
		{"delete removes an object and accepts a missing one", deleteObject},
		{"writers and deleters of one folder do not disturb each other", comeAndGo},
		{"keys of the layout and odd ones work", oddKeys},
		{"keys that are not clean are refused everywhere", badKeys},
		{"a lock, if the store has locks, has one holder until its release", locks},
		{"a context that has ended ends calls", endedContext},
		{"probe accepts the store and leaves nothing", probe},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, bucket(t)) })
	}
}

func create(t *testing.T, b store.Bucket, key, body string) store.Version {
	t.Helper()
	v, err := store.CreateBytes(t.Context(), b, key, []byte(body))
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	if v == "" {
		t.Fatalf("Create(%q) returned the zero version", key)
	}
	return v
}

func swap(t *testing.T, b store.Bucket, key, body string, old store.Version) store.Version {
	t.Helper()
	v, err := store.SwapBytes(t.Context(), b, key, []byte(body), old)
	if err != nil {
		t.Fatalf("Swap: %v", err)
	}
	return v
}

// open opens an object and closes it at the end of the test.
func open(ctx context.Context, t *testing.T, b store.Bucket, key string) store.Object {
	t.Helper()
	object, err := b.Open(ctx, key)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = object.Close() })
	return object
}

func want(t *testing.T, b store.Bucket, key, body string, v store.Version) {
	t.Helper()
	got, gotVersion, err := b.Get(t.Context(), key, 1<<20)
	if err != nil || string(got) != body || gotVersion != v {
		t.Fatalf("Get(%q) = %.60q, %q, %v; want %.60q, %q", key, got, gotVersion, err, body, v)
	}
	if opened, err := open(t.Context(), t, b, key).Version(); err != nil || opened != v {
		t.Fatalf("the opened %q has version %q, %v; want %q", key, opened, err, v)
	}
}

func wantErr(t *testing.T, what string, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("%s: error %v, want %v", what, err, sentinel)
	}
}

func keys(t *testing.T, b store.Bucket, prefix string) []string {
	t.Helper()
	got := []string{}
	for info, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("List(%q): %v", prefix, err)
		}
		got = append(got, info.Key)
	}
	return got
}
