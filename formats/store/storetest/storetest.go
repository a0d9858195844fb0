// Package storetest is the contract of store.Bucket as a test suite that every
// implementation and every wrapper runs, so that they can stand in for each other.
//
// In: a function that opens a bucket. Out: test failures. It imports store and
// the standard library.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Run runs the contract against the buckets that open returns; each must be
// empty when it is returned. Subtests run one after the other.
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
		{"swaps count without losing one", swapCounter},
		{"get refuses more than its limit", getLimit},
		{"ranges are read concurrently and end as io.ReaderAt says", readAt},
		{"list goes in key order below a prefix", listOrder},
		{"list stops when told and names bad prefixes", listStops},
		{"delete removes and forgives absence", deleteObject},
		{"keys of the layout and odd ones work", oddKeys},
		{"keys that are not clean are refused everywhere", badKeys},
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

func createAndRead(t *testing.T, b store.Bucket) {
	for _, body := range []string{"", "x", "one\x00two\r\n\xff"} {
		key := fmt.Sprintf("dir/%d", len(body))
		want(t, b, key, body, create(t, b, key, body))
		object, err := b.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(object, 0, object.Size()))
		if err != nil || string(got) != body || object.Size() != int64(len(body)) {
			t.Fatalf("object %q of %d bytes, %v; want %q", got, object.Size(), err, body)
		}
		if err := object.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

func createAgain(t *testing.T, b store.Bucket) {
	v := create(t, b, "k", "same")
	if again := create(t, b, "k", "same"); again != v {
		t.Fatalf("the same object has the versions %q and %q", v, again)
	}
	for _, other := range []string{"", "diff", "same and more", "sam"} {
		_, err := store.CreateBytes(t.Context(), b, "k", []byte(other))
		wantErr(t, "Create of other bytes", err, store.ErrExists)
	}
	want(t, b, "k", "same", v)
}

// pattern is an endless body that no block of repeats at another offset.
type pattern byte

func (p pattern) ReadAt(buf []byte, off int64) (int, error) {
	for i := range buf {
		at := off + int64(i)
		buf[i] = byte(at) ^ byte(at>>8)*31 ^ byte(at>>16)*7 ^ byte(p)
	}
	return len(buf), nil
}

// largeSize is above the size from which s3store uploads in parts.
const largeSize = 70<<20 + 12345

func createLarge(t *testing.T, b store.Bucket) {
	if testing.Short() {
		t.Skip("70 MiB, not with -short")
	}
	for range 2 { // the second finds the same bytes
		if _, err := b.Create(t.Context(), "big", pattern(0), largeSize); err != nil {
			t.Fatalf("Create: %v", err)
		}
	}
	_, err := b.Create(t.Context(), "big", pattern(1), largeSize)
	wantErr(t, "Create of other bytes", err, store.ErrExists)
	object, err := b.Open(t.Context(), "big")
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	if object.Size() != largeSize {
		t.Fatalf("size %d, want %d", object.Size(), int64(largeSize))
	}
	same, err := store.SameBytes(io.NewSectionReader(object, 0, object.Size()), pattern(0), largeSize)
	if err != nil || !same {
		t.Fatalf("bytes read are those written: %t, %v", same, err)
	}
}

func createRace(t *testing.T, b store.Bucket) {
	const writers = 12
	for round := range 5 {
		key := fmt.Sprintf("race/%d", round)
		errs := together(writers, func(i int) error {
			_, err := store.CreateBytes(t.Context(), b, key, []byte(strconv.Itoa(i)))
			return err
		})
		winner := onlyWinner(t, errs, store.ErrExists)
		want(t, b, key, strconv.Itoa(winner), create(t, b, key, strconv.Itoa(winner)))
	}
}

// together runs n calls at once and returns their errors.
func together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func onlyWinner(t *testing.T, errs []error, lost error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("both %d and %d won", winner, i)
		case err == nil:
			winner = i
		default:
			wantErr(t, "a loser", err, lost)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	return winner
}

func createShortBody(t *testing.T, b store.Bucket) {
	_, err := b.Create(t.Context(), "short", bytes.NewReader([]byte("abc")), 10)
	wantErr(t, "Create of a body of 3 bytes as 10", err, io.ErrUnexpectedEOF)
	if got := keys(t, b, ""); len(got) != 0 {
		t.Fatalf("left behind: %q", got)
	}
}

func swapChain(t *testing.T, b store.Bucket) {
	v0 := create(t, b, "s", "state 0")
	v1, err := b.Swap(t.Context(), "s", []byte("state 1"), v0)
	if err != nil {
		t.Fatal(err)
	}
	want(t, b, "s", "state 1", v1)
	v2, err := b.Swap(t.Context(), "s", []byte("state 2"), v1)
	if err != nil {
		t.Fatal(err)
	}
	for _, stale := range []store.Version{"", v0, v1} {
		_, err = b.Swap(t.Context(), "s", []byte("state 3"), stale)
		wantErr(t, fmt.Sprintf("Swap of %q", stale), err, store.ErrConflict)
	}
	want(t, b, "s", "state 2", v2)
	if err := b.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, err = b.Swap(t.Context(), "s", []byte("state 3"), v2)
	wantErr(t, "Swap of a deleted object", err, store.ErrConflict)
}

func swapZero(t *testing.T, b store.Bucket) {
	v, err := b.Swap(t.Context(), "new/z", []byte("first"), "")
	if err != nil {
		t.Fatal(err)
	}
	want(t, b, "new/z", "first", v)
	_, err = b.Swap(t.Context(), "new/z", []byte("second"), "")
	wantErr(t, "Swap of the zero version over an object", err, store.ErrConflict)
	_, err = store.CreateBytes(t.Context(), b, "new/z", []byte("third"))
	wantErr(t, "Create over an object", err, store.ErrExists)
}

func swapRepeated(t *testing.T, b store.Bucket) {
	v0 := create(t, b, "s", "state 0")
	for range 3 {
		v, err := b.Swap(t.Context(), "s", []byte("state 1"), v0)
		if err != nil {
			t.Fatal(err)
		}
		want(t, b, "s", "state 1", v)
	}
}

func swapRace(t *testing.T, b store.Bucket) {
	const writers = 12
	v := create(t, b, "s", "start")
	for round := range 5 {
		versions := make([]store.Version, writers)
		body := func(i int) []byte { return fmt.Appendf(nil, "round %d writer %d", round, i) }
		errs := together(writers, func(i int) (err error) {
			versions[i], err = b.Swap(t.Context(), "s", body(i), v)
			return err
		})
		winner := onlyWinner(t, errs, store.ErrConflict)
		v = versions[winner]
		want(t, b, "s", string(body(winner)), v)
	}
}

// swapCounter shows that concurrent read-change-write loops lose nothing.
func swapCounter(t *testing.T, b store.Bucket) {
	const writers, each = 4, 8
	for _, err := range together(writers, func(i int) error {
		return Increment(t.Context(), b, "n", strconv.Itoa(i), each)
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := Counter(t.Context(), b, "n")
	if err != nil || n != writers*each {
		t.Fatalf("the counter stands at %d (%v), want %d", n, err, writers*each)
	}
}

// Increment adds 1 to the counter under key, times times, by swaps. who makes
// the bodies unique among writers.
func Increment(ctx context.Context, b store.Bucket, key, who string, times int) error {
	for done := 0; done < times; {
		n, v, err := counter(ctx, b, key)
		if err != nil {
			return err
		}
		_, err = b.Swap(ctx, key, fmt.Appendf(nil, "%d %s", n+1, who), v)
		switch {
		case err == nil:
			done++
		case !errors.Is(err, store.ErrConflict):
			return err
		}
	}
	return nil
}

// Counter reads what Increment counted.
func Counter(ctx context.Context, b store.Bucket, key string) (int, error) {
	n, _, err := counter(ctx, b, key)
	return n, err
}

func counter(ctx context.Context, b store.Bucket, key string) (n int, v store.Version, err error) {
	body, v, err := b.Get(ctx, key, 100)
	if errors.Is(err, store.ErrNotFound) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	var who string
	_, err = fmt.Sscanf(string(body), "%d %s", &n, &who)
	return n, v, err
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

func readAt(t *testing.T, b store.Bucket) {
	const size = 1<<20 + 3
	if _, err := b.Create(t.Context(), "k", pattern(9), size); err != nil {
		t.Fatal(err)
	}
	object, err := b.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	for _, err := range together(8, func(i int) error {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for range 8 {
			off := random.Int64N(size)
			p := make([]byte, 1+random.Int64N(size-off))
			expect := make([]byte, len(p))
			_, _ = pattern(9).ReadAt(expect, off)
			n, err := object.ReadAt(p, off)
			if err == io.EOF && off+int64(n) == size {
				err = nil // allowed when the range ends where the object does
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

func deleteObject(t *testing.T, b store.Bucket) {
	create(t, b, "d/e/f", "x")
	create(t, b, "d/g", "y")
	for range 2 {
		if err := b.Delete(t.Context(), "d/e/f"); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := b.Get(t.Context(), "d/e/f", 10)
	wantErr(t, "Get of a deleted object", err, store.ErrNotFound)
	if err := b.Delete(t.Context(), "d"); err != nil {
		t.Fatalf("Delete of a folder's name: %v", err)
	}
	if got := keys(t, b, ""); !slices.Equal(got, []string{"d/g"}) {
		t.Fatalf("left: %q", got)
	}
	want(t, b, "d/e/f", "again", create(t, b, "d/e/f", "again"))
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
		_, err = b.Swap(t.Context(), key, []byte("x"), "")
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
	object, err := b.Open(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	cancel()
	_, err = object.ReadAt(make([]byte, 1), 0)
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
