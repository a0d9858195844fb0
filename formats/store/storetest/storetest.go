// Package storetest is the contract of store.Bucket as a test suite. Every implementation and every
// wrapper runs it, so that they can replace each other.
//
// In: a function that opens a bucket. Out: test failures. It imports store and the standard library.
package storetest

import (
	"errors"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Run checks the contract on the buckets that open returns, which must be empty. Subtests
// run one after the other.
func Run(t *testing.T, open func(t *testing.T) store.Bucket) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Bucket)
	}{
		{"an absent object is not found", absent},
		{"create stores bytes that get and open return", createAndRead},
		{"create of the same bytes succeeds, of others does not", createAgain},
		{"create of a large object is whole", createLarge},
		{"create has one winner among many", createRace},
		{"create fails on a body that ends early and leaves nothing", createShortBody},
		{"swap goes from version to version", swapChain},
		{"swap of the zero version creates", swapZero},
		{"swap repeated with its own body succeeds", swapRepeated},
		{"swap has one winner among many", swapRace},
		{"swaps that append lose nothing", swapAppend},
		{"get refuses more than its limit", getLimit},
		{"ranges are read concurrently and end as io.ReaderAt says", readAt},
		{"list goes in key order below a prefix", listOrder},
		{"list stops when told and names bad prefixes", listStops},
		{"delete removes and forgives absence", deleteObject},
		{"writers and deleters of one folder do not disturb each other", comeAndGo},
		{"keys of the layout and odd ones work", oddKeys},
		{"keys that are not clean are refused everywhere", badKeys},
		{"a lock, if it has locks, has one holder until its release", locks},
		{"a context that has ended ends calls", endedContext},
		{"probe finds it fit and leaves nothing", probe},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
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

func want(t *testing.T, b store.Bucket, key, body string, v store.Version) {
	t.Helper()
	got, gotVersion, err := b.Get(t.Context(), key, 1<<20)
	if err != nil || string(got) != body || gotVersion != v {
		t.Fatalf("Get(%q) = %.60q, %q, %v; want %.60q, %q", key, got, gotVersion, err, body, v)
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
