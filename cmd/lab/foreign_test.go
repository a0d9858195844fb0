//go:build lab

package lab

import (
	"path/filepath"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// demoStore is the store of a complete demo crawl, for other programs to read.
type demoStore struct {
	dir    string
	bucket store.Bucket
	sealed []*manifest.Sealed
	told   string // output of the demo on stdout
}

// crawlDemo runs two rounds of the demo into the test's own directory.
func crawlDemo(t *testing.T) *demoStore {
	t.Helper()
	d := &demoStore{dir: filepath.Join(t.TempDir(), "store")}
	d.told = mustRun(t, "demo", "--store", d.dir)
	b, err := dirstore.Open(d.dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.bucket = b
	if d.sealed, err = crawltest.SealedFiles(t.Context(), b, demo.Crawl); err != nil {
		t.Fatal(err)
	}
	if len(d.sealed) != 2 {
		t.Fatalf("%d rounds are sealed, the demo crawls 2", len(d.sealed))
	}
	return d
}
