// Package crawltest reads what whole crawls stored and compares it, and serves webs for them to crawl. The tests
// of the command line and the labs share it.
package crawltest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// ContentOf returns the content of the objects with a prefix.
func ContentOf(t *testing.T, b store.Bucket, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := b.Get(t.Context(), o.Key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		all[o.Key] = manifest.ContentDigest(body)
	}
	return all
}

// Write writes a file.
func Write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// OpenDir opens a store in a directory.
func OpenDir(t *testing.T, dir string) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// KeysBelow lists the objects of a directory store, except working state.
func KeysBelow(t *testing.T, dir string) []string {
	t.Helper()
	var keys []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == ".tmp" {
				return fs.SkipDir
			}
			return err
		}
		key, err := filepath.Rel(dir, path)
		// These documents and the records of attempts are left out, because they have times and costs,
		// which differ between two crawls.
		volatile := []string{"active.json", "crawls.json", "ledger.json"}
		if !slices.Contains(volatile, d.Name()) && !strings.Contains(filepath.ToSlash(key), "/attempts/") {
			keys = append(keys, filepath.ToSlash(key))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Setenv sets the environment of a test. Each pair is NAME=value.
func Setenv(t *testing.T, pairs []string) {
	t.Helper()
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// SealedFiles returns the sealed rounds of a crawl with all their files.
func SealedFiles(ctx context.Context, b store.Bucket, crawl string) ([]*manifest.Sealed, error) {
	sealed, err := roundstate.Sealed(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	return roundstate.WithFiles(ctx, b, sealed, roundstate.Selection{})
}

// RowsOf reads the rows of a dataset in all sealed rounds.
func RowsOf[T any](t *testing.T, b store.Bucket, sealed []*manifest.Sealed, dataset string) []T {
	t.Helper()
	var rows []T
	for _, s := range sealed {
		rows = append(rows, tabletest.ReadFiles[T](t, b, s.FilesOf(dataset))...)
	}
	return rows
}
