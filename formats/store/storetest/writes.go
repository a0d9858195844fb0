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
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

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

// endlessBody is an endless body that repeats a block of random bytes. No size of a part or buffer
// is a multiple of the block's length, so tests detect misplaced parts.
type endlessBody [1<<20 - 3]byte

func newPattern(seed byte) *endlessBody {
	var p endlessBody
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(p[:])
	return &p
}

func (p *endlessBody) ReadAt(buf []byte, off int64) (int, error) {
	for i := 0; i < len(buf); {
		i += copy(buf[i:], p[(off+int64(i))%int64(len(p)):])
	}
	return len(buf), nil
}

// largeSize is the size, in bytes, of a body that s3store uploads in parts.
const largeSize = 70<<20 + 12345

func createLarge(t *testing.T, b store.Bucket) {
	body := newPattern(0)
	for range 2 { // the second Create finds the same bytes
		if _, err := b.Create(t.Context(), "big", body, largeSize); err != nil {
			t.Fatalf("Create: %v", err)
		}
	}
	_, err := b.Create(t.Context(), "big", newPattern(1), largeSize)
	wantErr(t, "Create of other bytes", err, store.ErrExists)
	object := open(t.Context(), t, b, "big")
	if object.Size() != largeSize {
		t.Fatalf("size %d, want %d", object.Size(), int64(largeSize))
	}
	same, err := store.SameBytes(io.NewSectionReader(object, 0, object.Size()), body, largeSize)
	if err != nil || !same {
		t.Fatalf("bytes read are those written: %t, %v", same, err)
	}
	v, err := object.Version()
	if err != nil {
		t.Fatal(err)
	}
	if v, err = b.Swap(t.Context(), "big", newPattern(1), largeSize, v); err != nil {
		t.Fatalf("Swap: %v", err)
	}
	swapped := open(t.Context(), t, b, "big")
	now, err := swapped.Version()
	if err != nil || now != v {
		t.Fatalf("after Swap returned version %q: %q, %v", v, now, err)
	}
	same, err = store.SameBytes(io.NewSectionReader(swapped, 0, swapped.Size()), newPattern(1), largeSize)
	if err != nil || !same {
		t.Fatalf("bytes read are those swapped in: %t, %v", same, err)
	}
}

func createRace(t *testing.T, b store.Bucket) {
	const writers = 12
	for round := range 5 {
		key := fmt.Sprintf("race/%d", round)
		errs := runConcurrently(writers, func(i int) error {
			_, err := store.CreateBytes(t.Context(), b, key, []byte(strconv.Itoa(i)))
			return err
		})
		winner := onlyWinner(t, errs, store.ErrExists)
		want(t, b, key, strconv.Itoa(winner), create(t, b, key, strconv.Itoa(winner)))
	}
}

// runConcurrently runs n calls concurrently and returns their errors.
func runConcurrently(n int, call func(i int) error) []error {
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
	v := create(t, b, "short", "whole")
	_, err = b.Swap(t.Context(), "short", bytes.NewReader([]byte("abc")), 10, v)
	wantErr(t, "Swap of a body of 3 bytes as 10", err, io.ErrUnexpectedEOF)
	want(t, b, "short", "whole", v)
}

func swapChain(t *testing.T, b store.Bucket) {
	v0 := create(t, b, "s", "state 0")
	v1 := swap(t, b, "s", "state 1", v0)
	want(t, b, "s", "state 1", v1)
	v2 := swap(t, b, "s", "state 2", v1)
	for _, stale := range []store.Version{"", v0, v1} {
		_, err := store.SwapBytes(t.Context(), b, "s", []byte("state 3"), stale)
		wantErr(t, fmt.Sprintf("Swap of %q", stale), err, store.ErrConflict)
	}
	want(t, b, "s", "state 2", v2)
	if err := b.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, err := store.SwapBytes(t.Context(), b, "s", []byte("state 3"), v2)
	wantErr(t, "Swap of a deleted object", err, store.ErrConflict)
}

func swapZero(t *testing.T, b store.Bucket) {
	want(t, b, "new/z", "first", swap(t, b, "new/z", "first", ""))
	_, err := store.SwapBytes(t.Context(), b, "new/z", []byte("second"), "")
	wantErr(t, "Swap of the zero version over an object", err, store.ErrConflict)
	_, err = store.CreateBytes(t.Context(), b, "new/z", []byte("third"))
	wantErr(t, "Create over an object", err, store.ErrExists)
}

func swapRepeated(t *testing.T, b store.Bucket) {
	v0 := create(t, b, "s", "state 0")
	for range 3 {
		want(t, b, "s", "state 1", swap(t, b, "s", "state 1", v0))
	}
}

func swapRace(t *testing.T, b store.Bucket) {
	const writers = 12
	v := create(t, b, "s", "start")
	for round := range 5 {
		versions := make([]store.Version, writers)
		body := func(i int) []byte { return fmt.Appendf(nil, "round %d writer %d", round, i) }
		errs := runConcurrently(writers, func(i int) (err error) {
			versions[i], err = store.SwapBytes(t.Context(), b, "s", body(i), v)
			return err
		})
		winner := onlyWinner(t, errs, store.ErrConflict)
		v = versions[winner]
		want(t, b, "s", string(body(winner)), v)
	}
}

// swapAppend shows that concurrent loops of Get and Swap lose no change.
func swapAppend(t *testing.T, b store.Bucket) {
	const writers, each = 4, 8
	for _, err := range runConcurrently(writers, func(i int) error {
		return Append(t.Context(), b, "marks", fmt.Sprintf("writer%d", i), each)
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	CheckMarks(t, b, "marks", writers*each)
}

// Append adds so many marks to the list of marks under key, one swap for each. Each mark contains the
// name who. A swap that took effect may still report a conflict (see store.Bucket), so each try
// first looks for its mark.
func Append(ctx context.Context, b store.Bucket, key, who string, times int) error {
	for i := range times {
		mark := fmt.Sprintf("%s.%d", who, i)
		for {
			body, v, err := b.Get(ctx, key, 1<<20)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if slices.Contains(strings.Fields(string(body)), mark) {
				break
			}
			_, err = store.SwapBytes(ctx, b, key, append(body, mark+"\n"...), v)
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
	}
	return nil
}

// CheckMarks checks that the object key holds the marks of n calls of Append, each once.
func CheckMarks(t *testing.T, b store.Bucket, key string, n int) {
	t.Helper()
	body, _, err := b.Get(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	marks := strings.Fields(string(body))
	slices.Sort(marks)
	if different := len(slices.Compact(slices.Clone(marks))); len(marks) != n || different != n {
		t.Fatalf("%d marks, %d different ones, want %d", len(marks), different, n)
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

// comeAndGo creates and removes the objects of one folder concurrently, so that a directory store
// creates and removes the folder too.
func comeAndGo(t *testing.T, b store.Bucket) {
	for _, err := range runConcurrently(8, func(i int) error {
		for n := range 15 {
			key := fmt.Sprintf("come/and/go/%d", i)
			body := fmt.Sprintf("%d.%d", i, n)
			if _, err := store.CreateBytes(t.Context(), b, key, []byte(body)); err != nil {
				return err
			}
			if got, _, err := b.Get(t.Context(), key, 100); err != nil || string(got) != body {
				return fmt.Errorf("Get(%q) = %q, %w; want %q", key, got, err, body)
			}
			if err := b.Delete(t.Context(), key); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := keys(t, b, ""); len(got) != 0 {
		t.Fatalf("left: %q", got)
	}
}

// locks checks the promises of store.Locker. Stores without locks pass.
func locks(t *testing.T, b store.Bucket) {
	locker, ok := store.As[store.Locker](b)
	if !ok {
		return
	}
	take := func(name string) store.Lock {
		t.Helper()
		l, ok, err := locker.Lock(name)
		if err != nil || !ok || !l.Stands() {
			t.Fatalf("Lock(%q) of a free lock: %t, %v", name, ok, err)
		}
		return l
	}
	first := take("fetch@2026-11.0:17")
	if _, ok, err := locker.Lock("fetch@2026-11.0:17"); ok || err != nil {
		t.Fatalf("Lock of a held lock: %t, %v", ok, err)
	}
	other := take("fetch@2026-11.0:18")
	first.Release()
	if first.Stands() || !other.Stands() {
		t.Errorf("after its release a lock stands: %t; another one: %t", first.Stands(), other.Stands())
	}
	second := take("fetch@2026-11.0:17")
	first.Release()
	if !second.Stands() {
		t.Error("a second release freed the next holder's lock")
	}
	second.Release()
	other.Release()
	if _, _, err := locker.Lock("not//clean"); !errors.Is(err, store.ErrKey) {
		t.Errorf("Lock of a name that is not clean: %v, want %v", err, store.ErrKey)
	}
	if got := keys(t, b, ""); len(got) != 0 {
		t.Errorf("locks are listed as objects: %q", got)
	}
}
