package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

func absent(t *testing.T, b store.Bucket) {
	_, _, err := b.Get(t.Context(), "a/b", 10)
	wantErr(t, "Get", err, store.ErrNotFound)
	_, err = b.Open(t.Context(), "a/b")
	wantErr(t, "Open", err, store.ErrNotFound)
	if got := keys(t, b, ""); len(got) != 0 {
		t.Fatalf("List of an empty store: %q", got)
	}
	if err := b.Delete(t.Context(), "a/b"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	create(t, b, "a/b/c", "x")
	_, _, err = b.Get(t.Context(), "a/b", 10)
	wantErr(t, "Get of a folder", err, store.ErrNotFound)
	_, err = b.Open(t.Context(), "a/b")
	wantErr(t, "Open of a folder", err, store.ErrNotFound)
}

func getLimit(t *testing.T, b store.Bucket) {
	v := create(t, b, "k", "12345")
	for _, limit := range []int64{0, 4} {
		_, _, err := b.Get(t.Context(), "k", limit)
		wantErr(t, fmt.Sprintf("Get of 5 bytes with limit %d", limit), err, store.ErrTooLarge)
	}
	if body, got, err := b.Get(t.Context(), "k", 5); err != nil || string(body) != "12345" || got != v {
		t.Fatalf("Get with limit 5: %q, %q, %v", body, got, err)
	}
}

func getNew(t *testing.T, b store.Bucket) {
	ctx := t.Context()
	_, _, err := renewed(ctx, b, "k", 10, "")
	wantErr(t, "GetNew of an absent object", err, store.ErrNotFound)
	one := create(t, b, "k", "one")
	for _, have := range []store.Version{"", "never"} {
		if body, v, err := renewed(ctx, b, "k", 10, have); err != nil || string(body) != "one" || v != one {
			t.Errorf("GetNew of the version %q: %q, %q, %v", have, body, v, err)
		}
	}
	body, v, err := renewed(ctx, b, "k", 10, one)
	if wantErr(t, "GetNew of the version that exists", err, store.ErrUnchanged); body != nil || v != one {
		t.Errorf("GetNew of the version that exists: %q, %q", body, v)
	}
	two := swap(t, b, "k", "two", one)
	if body, v, err := renewed(ctx, b, "k", 10, one); err != nil || string(body) != "two" || v != two {
		t.Errorf("GetNew after a swap: %q, %q, %v", body, v, err)
	}
	_, _, err = renewed(ctx, b, "k", 2, one)
	wantErr(t, "GetNew beyond the limit", err, store.ErrTooLarge)
	if err := b.Delete(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	_, _, err = renewed(ctx, b, "k", 10, two)
	wantErr(t, "GetNew of a deleted object", err, store.ErrNotFound)
}

// renewed calls store.GetNew until the store answers, because GetNew does not repeat failed reads.
func renewed(ctx context.Context, b store.Bucket, key string, limit int64, have store.Version) (body []byte, v store.Version, err error) {
	for range 20 {
		if body, v, err = store.GetNew(ctx, b, key, limit, have); !errors.Is(err, store.ErrUnavailable) {
			break
		}
	}
	return body, v, err
}

func readAt(t *testing.T, b store.Bucket) {
	const size = 1<<20 + 3
	body := newPattern(9)
	if _, err := b.Create(t.Context(), "k", body, size); err != nil {
		t.Fatal(err)
	}
	object := open(t.Context(), t, b, "k")
	for _, err := range runConcurrently(8, func(i int) error {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for range 8 {
			off := random.Int64N(size)
			p := make([]byte, 1+random.Int64N(size-off))
			expect := make([]byte, len(p))
			_, _ = body.ReadAt(expect, off)
			n, err := object.ReadAt(p, off)
			if err == io.EOF && off+int64(n) == size {
				err = nil // io.EOF is allowed if the range ends at the end of the object
			}
			if err != nil || n != len(p) || !bytes.Equal(p, expect) {
				return fmt.Errorf("ReadAt(%d bytes, %d) = %d, %w", len(p), off, n, err)
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		len int
		off int64
		n   int
		err error
	}{{10, size - 3, 3, io.EOF}, {10, size, 0, io.EOF}, {10, size + 99, 0, io.EOF}, {0, 5, 0, nil}} {
		n, err := object.ReadAt(make([]byte, c.len), c.off)
		if n != c.n || err != c.err {
			t.Errorf("ReadAt(%d bytes, %d) = %d, %v; want %d, %v", c.len, c.off, n, err, c.n, c.err)
		}
	}
	if n, err := object.ReadAt(make([]byte, 1), -1); n != 0 || err == nil {
		t.Errorf("ReadAt(1 byte, -1) = %d, %v; want an error", n, err)
	}
}

func listOrder(t *testing.T, b store.Bucket) {
	all := []string{
		"a-b/x", "a.json", "a/1", "a/10", "a/2", "a/b/c", "a/b.c", "a0", "ab/c",
		"crawl=2026-11/crawl.json", "crawl=2026-11/round=0/fetch/part-00017.json", "z",
	}
	for i, key := range all {
		create(t, b, key, string(make([]byte, i)))
	}
	slices.Sort(all)
	for _, prefix := range []string{"", "a", "a/", "a/1", "a/b", "a/b/", "crawl=2026-11/round=", "crawl=2026-11/round=0/", "zz", "none/x", "a.json", "a/b/c/d"} {
		expect := []string{}
		for _, key := range all {
			if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
				expect = append(expect, key)
			}
		}
		if got := keys(t, b, prefix); !slices.Equal(got, expect) {
			t.Errorf("List(%q) = %q\nwant %q", prefix, got, expect)
		}
	}
	for info, err := range b.List(t.Context(), "z") {
		if err != nil || info.Size != 11 {
			t.Errorf("List: %+v, %v; want 11 bytes", info, err)
		}
	}
}

func listStops(t *testing.T, b store.Bucket) {
	for i := range 5 {
		create(t, b, fmt.Sprintf("p/%d/x", i), "x")
	}
	seen := 0
	for _, err := range b.List(t.Context(), "p/") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Fatalf("saw %d objects, wanted to stop at 2", seen)
	}
	for _, prefix := range []string{"/", "../", "a//b", "a/../b"} {
		n := 0
		for _, err := range b.List(t.Context(), prefix) {
			wantErr(t, fmt.Sprintf("List(%q)", prefix), err, store.ErrKey)
			n++
		}
		if n != 1 {
			t.Errorf("List(%q) yielded %d pairs, want one error", prefix, n)
		}
	}
}

func oddKeys(t *testing.T, b store.Bucket) {
	odd := []string{
		"crawl=2026-11/part-00017.json",
		"tables/captures/crawl=2026-11/subset=warc/round=0/part-00017.parquet",
		"a b+c&d?e#f%2F;g,h@i$j!k'(l)*m~n", "ünï/cødé/日本", "x/.hidden", "x/...", `back\slash`, "tab-less:colon|pipe<>\"",
		"long/" + string(bytes.Repeat([]byte("n"), 255)),
	}
	for _, key := range odd {
		want(t, b, key, "body of "+key, create(t, b, key, "body of "+key))
	}
	slices.Sort(odd)
	if got := keys(t, b, ""); !slices.Equal(got, odd) {
		t.Fatalf("List = %q\nwant %q", got, odd)
	}
	for _, key := range odd {
		if got := keys(t, b, key); !slices.Equal(got, []string{key}) {
			t.Errorf("List(%q) = %q", key, got)
		}
		if err := b.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if got := keys(t, b, ""); len(got) != 0 {
		t.Fatalf("left: %q", got)
	}
}

func badKeys(t *testing.T, b store.Bucket) {
	for _, key := range []string{"", "/", "/etc/passwd", "a/", "a//b", ".", "..", "a/../b", "../up", "a/./b",
		"nul\x00", "line\nfeed", "bad\xffutf8", store.Reserved + "/x", string(bytes.Repeat([]byte("n"), 256)), string(bytes.Repeat([]byte("n/"), 500)) + "n"} {
		_, err := store.CreateBytes(t.Context(), b, key, []byte("x"))
		wantErr(t, fmt.Sprintf("Create(%.40q)", key), err, store.ErrKey)
		_, err = store.SwapBytes(t.Context(), b, key, []byte("x"), "")
		wantErr(t, fmt.Sprintf("Swap(%.40q)", key), err, store.ErrKey)
		_, _, err = b.Get(t.Context(), key, 1)
		wantErr(t, fmt.Sprintf("Get(%.40q)", key), err, store.ErrKey)
		_, err = b.Open(t.Context(), key)
		wantErr(t, fmt.Sprintf("Open(%.40q)", key), err, store.ErrKey)
		wantErr(t, fmt.Sprintf("Delete(%.40q)", key), b.Delete(t.Context(), key), store.ErrKey)
	}
}

func endedContext(t *testing.T, b store.Bucket) {
	create(t, b, "k", "x")
	ctx, cancel := context.WithCancel(t.Context())
	object := open(ctx, t, b, "k")
	cancel()
	_, err := object.ReadAt(make([]byte, 1), 0)
	wantErr(t, "ReadAt", err, context.Canceled)
	_, err = store.CreateBytes(ctx, b, "new", []byte("x"))
	wantErr(t, "Create", err, context.Canceled)
	_, _, err = b.Get(ctx, "k", 1)
	wantErr(t, "Get", err, context.Canceled)
	for _, err := range b.List(ctx, "") {
		wantErr(t, "List", err, context.Canceled)
	}
}

func probe(t *testing.T, b store.Bucket) {
	result, err := store.Probe(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if result.Skew.Abs() > store.MaxSkew {
		t.Errorf("clocks of one machine differ by %v", result.Skew)
	}
	if got := keys(t, b, ""); len(got) != 0 {
		t.Fatalf("probe left %q", got)
	}
}
