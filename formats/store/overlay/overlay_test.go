package overlay

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
)

func openBase(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "base"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Bucket { return New(openBase(t), t.TempDir()) })
}

// contents returns the bodies of all objects of a bucket by key.
func contents(t *testing.T, b store.Bucket) map[string]string {
	t.Helper()
	all := map[string]string{}
	var keys []string
	for i, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := b.Get(t.Context(), i.Key, 100)
		if err != nil || int64(len(body)) != i.Size {
			t.Fatalf("%s is listed with %d bytes and has %d: %v", i.Key, i.Size, len(body), err)
		}
		keys = append(keys, i.Key)
		all[i.Key] = string(body)
	}
	if !slices.IsSorted(keys) {
		t.Errorf("listed in the order %q", keys)
	}
	return all
}

func TestWhatIsWrittenHidesWhatIsBelowAndChangesNothingThere(t *testing.T) {
	base := openBase(t)
	below := map[string]string{"a": "1", "b/x": "2", "b/y": "3", "c": "4", "d": "5"}
	for key, body := range below {
		if _, err := store.CreateBytes(t.Context(), base, key, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	b := New(base, t.TempDir())
	for key, body := range map[string]string{"b/x": "other", "b/x2": "new", "a0": "new"} {
		if _, err := store.CreateBytes(t.Context(), b, key, []byte(body)); err != nil {
			t.Fatalf("Create(%s): %v", key, err)
		}
	}
	if _, err := store.CreateBytes(t.Context(), b, "b/x", []byte("2")); !errors.Is(err, store.ErrExists) {
		t.Errorf("a second Create of other bytes: %v", err)
	}
	if err := b.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	_, version, err := b.Get(t.Context(), "d", 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.SwapBytes(t.Context(), b, "d", []byte("lost"), "another"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Swap of a version that never was: %v", err)
	}
	if _, err := store.SwapBytes(t.Context(), b, "d", []byte("swapped"), version); err != nil {
		t.Errorf("Swap of the version below: %v", err)
	}
	if _, err := store.SwapBytes(t.Context(), b, "c", []byte("again"), ""); err != nil {
		t.Errorf("Swap of a deleted object: %v", err)
	}
	want := map[string]string{"a": "1", "a0": "new", "b/x": "other", "b/x2": "new", "b/y": "3", "c": "again", "d": "swapped"}
	if d := cmp.Diff(want, contents(t, b)); d != "" {
		t.Error(d)
	}
	if err := b.Delete(t.Context(), "b/x"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), "b/x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Open of a deleted object: %v", err)
	}
	if _, err := b.OpenWritten(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("OpenWritten of an object below: %v", err)
	}
	if d := cmp.Diff(below, contents(t, base)); d != "" {
		t.Error(d)
	}
}
