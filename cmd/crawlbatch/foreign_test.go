package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
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
	d.told = crawlbatch(t, "demo", "--store", d.dir)
	b, err := dirstore.Open(d.dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.bucket = b
	if d.sealed, err = sealedFiles(t.Context(), b, demo.Crawl); err != nil {
		t.Fatal(err)
	}
	if len(d.sealed) != 2 {
		t.Fatalf("%d rounds are sealed, the demo crawls 2", len(d.sealed))
	}
	return d
}

// crawlbatch runs a command that must succeed and returns its stdout.
func crawlbatch(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), args, nil, &out, &errs); code != 0 {
		t.Fatalf("crawlbatch %s: exit %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
	}
	return out.String()
}

// rowsOf reads the rows of a dataset in all sealed rounds.
func rowsOf[T any](t *testing.T, b store.Bucket, sealed []*manifest.Sealed, dataset string) []T {
	t.Helper()
	var rows []T
	for _, s := range sealed {
		rows = append(rows, tabletest.ReadFiles[T](t, b, s.FilesOf(dataset))...)
	}
	return rows
}
