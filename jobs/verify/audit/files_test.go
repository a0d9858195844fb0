package audit

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// When tasks are recomputed, they rely on the audit's comparison of digests. The audit must therefore
// compare the digests of blocks too, because a task that reads a part of a file uses these.
func TestTheDigestsOfBlocksAreCompared(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 3*manifest.BlockBytes)
	if _, err := io.ReadFull(rand.Reader, body); err != nil {
		t.Fatal(err)
	}
	const key = "tables/part"
	if _, err := store.CreateBytes(t.Context(), b, key, body); err != nil {
		t.Fatal(err)
	}
	sum := manifest.NewSum()
	_, _ = sum.Write(body) // a Sum never fails
	sound := sum.File()
	sound.Key = key
	other := sound
	other.Blocks = other.Blocks[:22] + strings.Repeat("A", 22) + other.Blocks[44:]
	if bytes.Equal([]byte(other.Blocks), []byte(sound.Blocks)) {
		t.Fatal("the digests of the blocks are the same")
	}
	for _, c := range []struct {
		file  manifest.File
		found int64
	}{{sound, 0}, {other, 1}} {
		a := New(Options{Bucket: b, Sample: 1})
		if err := a.compareDigest(t.Context(), &Round{}, &listedFile{File: c.file}); err != nil {
			t.Fatal(err)
		}
		if got := a.Report().Found(); got != c.found {
			t.Errorf("%d violations, want %d: %+v", got, c.found, a.Report().Violations)
		}
	}
}
