package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/faultstore"
)

func dir(t *testing.T) *dirstore.Store {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBackoffDoublesUpToItsLimitWithJitter(t *testing.T) {
	for _, c := range []struct {
		random float64
		want   []time.Duration
	}{
		{0, []time.Duration{100, 200, 400, 800, 1000, 1000}},
		{0.5, []time.Duration{75, 150, 300, 600, 750, 750}},
	} {
		b := store.Backoff{Base: 100, Max: 1000, Rand: func() float64 { return c.random }}
		for try, want := range c.want {
			if got := b.Delay(try); got != want {
				t.Errorf("random %v: Delay(%d) = %d, want %d", c.random, try, got, want)
			}
		}
		for _, try := range []int{29, 30, 62, 63, 64, 1 << 30} {
			if got := b.Delay(try); got != c.want[5] {
				t.Errorf("Delay(%d) = %d, want %d", try, got, c.want[5])
			}
		}
	}
	if d := (store.Backoff{}).Delay(0); d < 100*time.Millisecond || d > 200*time.Millisecond {
		t.Errorf("the first delay of the zero Backoff is %v", d)
	}
}

func TestRetryWaitsAndGivesUp(t *testing.T) {
	var waits []time.Duration
	retry := store.Retry{
		Tries: 4, Backoff: store.Backoff{Base: time.Second, Rand: func() float64 { return 0 }},
		Sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
	}
	away := faultstore.New(dir(t), faultstore.Faults{Before: 1})
	_, _, err := store.WithRetry(away, retry).Get(t.Context(), "k", 1)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "tried 4 times") {
		t.Errorf("Get from an unavailable store: %v", err)
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	waits = nil
	if _, _, err := store.WithRetry(dir(t), retry).Get(t.Context(), "k", 1); !errors.Is(err, store.ErrNotFound) || len(waits) != 0 {
		t.Errorf("Get of an absent object: %v after %v", err, waits)
	}
	if _, err := store.CreateBytes(t.Context(), store.WithRetry(away, retry), "k", nil); !errors.Is(err, store.ErrUnavailable) || len(waits) != 0 {
		t.Errorf("Create was repeated: %v after %v", err, waits)
	}
}

func TestRetriesBeyondTheBudgetWaitLongest(t *testing.T) {
	var waits []time.Duration
	told := 0
	away := faultstore.New(dir(t), faultstore.Faults{Before: 1})
	b := store.WithRetry(away, store.Retry{
		Tries: 3, Burst: 4, Share: 0.5, Backoff: store.Backoff{Base: 1, Max: 1000, Rand: func() float64 { return 0 }},
		Sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
		OnRetry: func(_ int, d time.Duration, err error) {
			if d != 0 && errors.Is(err, store.ErrUnavailable) {
				told++
			}
		},
	})
	for range 5 {
		_, _, _ = b.Get(t.Context(), "k", 1)
	}
	// The budget begins with four retries. After these four retries, every two calls allow one
	// more.
	if want := []time.Duration{1, 2, 1, 2, 1, 1000, 1000, 1000, 1, 1000}; !slices.Equal(waits, want) || told != len(waits) {
		t.Errorf("waits %v, want %v; OnRetry was called %d times", waits, want, told)
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	away := faultstore.New(dir(t), faultstore.Faults{Before: 1})
	retry := store.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }}
	for _, err := range store.WithRetry(away, retry).List(ctx, "") {
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("List: %v", err)
		}
	}
}

func TestCountCounts(t *testing.T) {
	c := store.Count(dir(t))
	ctx := t.Context()
	v, err := store.CreateBytes(ctx, c, "a", []byte("12345"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = store.CreateBytes(ctx, c, "a", []byte("other")) // loses the race, so it counts as a call that wrote no bytes
	if _, err := store.SwapBytes(ctx, c, "a", []byte("123"), v); err != nil {
		t.Fatal(err)
	}
	_, _, _ = c.Get(ctx, "a", 100)
	_, _, _ = c.Get(ctx, "absent", 100)
	_, _, _ = c.Get(ctx, "a", 1) // fails, because the object is above the limit
	o, err := c.Open(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = o.ReadAt(make([]byte, 10), 1) // reads two bytes and the end of file
	_ = o.Close()
	for range c.List(ctx, "") {
	}
	_ = c.Delete(ctx, "a")
	want := store.Counts{Puts: 3, Gets: 5, Lists: 1, Deletes: 1, Failed: 1, BytesIn: 5, BytesOut: 8}
	if got := c.Counts(); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func TestAsFindsAspectsBelowWrappers(t *testing.T) {
	d := dir(t)
	wrapped := store.WithRetry(store.Count(faultstore.New(d, faultstore.Faults{})), store.Retry{})
	if got, ok := store.As[store.Locker](wrapped); !ok || got != store.Locker(d) {
		t.Errorf("As[Locker] = %v, %t", got, ok)
	}
	if _, ok := store.As[*store.Counter](wrapped); !ok {
		t.Error("As[*Counter] does not find the Counter")
	}
	if _, ok := store.As[store.Dater](wrapped); ok {
		t.Error("As[Dater] finds a Dater in a directory store")
	}
}

func TestCheckKeyAndPrefix(t *testing.T) {
	for key, ok := range map[string]bool{
		"a": true, "a/b": true, "crawl=2026-11/round=0/plan-ID/part-00017.parquet": true, ".a": true, "a/.tmp": true, "...": true,
		"": false, "/": false, "a/": false, "/a": false, "a//b": false, ".": false, "a/../b": false, ".tmp": false, ".tmp/x": false,
		"a\x00": false, "a\x7f": false, "\xff": false, strings.Repeat("n", 256): false,
	} {
		if err := store.CheckKey(key); (err == nil) != ok || err != nil && !errors.Is(err, store.ErrKey) {
			t.Errorf("CheckKey(%.20q): %v", key, err)
		}
	}
	for prefix, ok := range map[string]bool{
		"": true, "a": true, "a/": true, "a/.": true, "a/..": true, ".": true, ".t": true,
		"/": false, "a//": false, "../": false, "./": false, "a/../": false, ".tmp/": false, "a\n": false,
	} {
		if err := store.CheckPrefix(prefix); (err == nil) != ok {
			t.Errorf("CheckPrefix(%q): %v", prefix, err)
		}
	}
}

func TestSameBytes(t *testing.T) {
	long := strings.Repeat("0123456789", 50_000)
	for _, c := range []struct {
		stored, body string
		same         bool
		err          error
	}{
		{"", "", true, nil}, {"a", "a", true, nil}, {"a", "b", false, nil}, {long, long, true, nil},
		{long[:len(long)-1] + "x", long, false, nil}, {long[:300_000], long, false, io.ErrUnexpectedEOF}, {"", "a", false, io.ErrUnexpectedEOF},
	} {
		same, err := store.SameBytes(strings.NewReader(c.stored), strings.NewReader(c.body), int64(len(c.body)))
		if same != c.same || err != c.err {
			t.Errorf("%d and %d bytes: %t, %v; want %t, %v", len(c.stored), len(c.body), same, err, c.same, c.err)
		}
	}
	if _, err := store.SameBytes(strings.NewReader("abc"), strings.NewReader("a"), 3); err != io.ErrUnexpectedEOF {
		t.Errorf("a body that ends early: %v", err)
	}
}

// liar is a store that breaks one promise.
type liar struct {
	store.Bucket
	swapsAll bool // Swap accepts any old version
	staleGet bool // Get always returns the first state of the object
	first    []byte
}

func (l *liar) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	for l.swapsAll {
		_, now, err := l.Get(ctx, key, 1000)
		if err != nil {
			return "", err
		}
		if v, err := l.Bucket.Swap(ctx, key, body, size, now); !errors.Is(err, store.ErrConflict) {
			return v, err
		}
	}
	return l.Bucket.Swap(ctx, key, body, size, old)
}

func (l *liar) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	body, v, err := l.Bucket.Get(ctx, key, limit)
	if l.staleGet && err == nil {
		if l.first == nil {
			l.first = body
		}
		body = l.first
	}
	return body, v, err
}

func TestProbeCatchesLiarsAndCleansUp(t *testing.T) {
	for says, l := range map[string]*liar{
		"compare-and-swap": {swapsAll: true},
		"consistent reads": {staleGet: true},
	} {
		d := dir(t)
		l.Bucket = d
		_, err := store.Probe(t.Context(), l)
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "probe "+d.String()) {
			t.Errorf("%s: %v", says, err)
		}
		for info, err := range d.List(t.Context(), "") {
			t.Errorf("%s: left %+v, %v", says, info, err)
		}
	}
}

// lateLister is a bucket whose lists break off, except the last list.
type lateLister struct {
	store.Bucket
	fail []int // number of keys after which each list breaks off
}

func (l *lateLister) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		after := -1
		if len(l.fail) > 0 {
			after, l.fail = l.fail[0], l.fail[1:]
		}
		for info, err := range l.Bucket.List(ctx, prefix) {
			if after == 0 {
				yield(store.Info{}, fmt.Errorf("list: %w", store.ErrUnavailable))
				return
			}
			after--
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestRetriedListGoesOnWhereItBroke(t *testing.T) {
	d := dir(t)
	var want []string
	for i := range 9 {
		key := fmt.Sprintf("k%d", i)
		want = append(want, key)
		if _, err := store.CreateBytes(t.Context(), d, key, nil); err != nil {
			t.Fatal(err)
		}
	}
	noWait := store.Retry{Tries: 2, Sleep: func(context.Context, time.Duration) error { return nil }}
	b := store.WithRetry(&lateLister{Bucket: d, fail: []int{0, 4, 6, 6}}, noWait)
	var got []string
	var failed error
	for info, err := range b.List(t.Context(), "k") {
		if err != nil {
			failed = err
			break
		}
		got = append(got, info.Key)
	}
	// The last try yielded no new key, so the second failure in a row ends the list.
	if !slices.Equal(got, want[:6]) || !errors.Is(failed, store.ErrUnavailable) {
		t.Errorf("got %q and %v, want the first six and %v", got, failed, store.ErrUnavailable)
	}
	b = store.WithRetry(&lateLister{Bucket: d, fail: []int{4, 6, 8}}, noWait)
	got = nil
	for info, err := range b.List(t.Context(), "k") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAProbeDoesNotFailForWhatItCannotDelete(t *testing.T) {
	flaky := faultstore.New(dir(t), faultstore.Faults{Before: 1, Ops: []faultstore.Op{faultstore.Delete}})
	if _, err := store.Probe(t.Context(), flaky); err != nil {
		t.Error(err)
	}
}
