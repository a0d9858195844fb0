package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// format1Store unpacks a store that the last crawlbatch of format 1 wrote. The store has a round with 8 URLs
// of simweb in 3 partitions. It lacks the WARC files, and the files that reduce tasks wrote, but has all
// manifests.
func format1Store(t *testing.T) string {
	t.Helper()
	return unpacked(t, "../../testdata/format1/store.tar.gz")
}

// unpacked unpacks a tar file into a directory.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(archive)
		path := filepath.Join(dir, h.Name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, body, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// format1Result returns the result of a task of the round in format1Store and checks the result's
// files.
func format1Result(t *testing.T, dir string, stage stages.Stage, partition int) *manifest.Result {
	t.Helper()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	task := stages.Task{Stage: stage, Crawl: "2026-10", Partition: partition}
	r, _, err := roundstate.LoadResult(t.Context(), b, task)
	if err != nil || r == nil {
		t.Fatalf("%s: result %v, %v", task, r, err)
	}
	for _, f := range r.Files {
		body, err := os.ReadFile(filepath.Join(dir, f.Key))
		if err != nil {
			t.Error(err)
		} else if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("%s has other bytes than its result says", f.Key)
		}
	}
	return r
}

func TestRebuildGivesPartsOfFormat1TheirOldBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := format1Store(t)
	told := mustRun(t, "retry", "--month", "2026-10", "--rebuild", "--store", dir)
	if !strings.Contains(told, "tables/captures/") || !strings.Contains(told, "tables/pages/") {
		t.Errorf("rebuilt:\n%s", told)
	}
	for _, stage := range stages.Order[1:] {
		tasks := 1
		switch stage {
		case stages.Merge, stages.Publish:
			tasks = 3
		case stages.Digest, stages.Similar, stages.Cluster:
			tasks = 0 // format 1 did not have these stages
		}
		for n := range tasks {
			format1Result(t, dir, stage, n)
		}
	}
}

// Before the test, a crawlbatch of format 1 has frozen the inputs of merge and completed two of the three
// merge tasks.
func TestAStageThatFormat1FrozeEndsInFormat1AndTheNextBeginsInFormat2(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := format1Store(t)
	want := format1Merge(t, dir)
	round := filepath.Join(dir, "crawl=2026-10/round=0")
	mustRun(t, "retry", "--month", "2026-10", "--rebuild", "--store", dir)
	for _, f := range want.Files {
		if err := os.Remove(filepath.Join(dir, f.Key)); err != nil {
			t.Fatal(err)
		}
	}
	gone := []string{filepath.Join(round, "merge/part-00002.json"), filepath.Join(round, "sealed.json")}
	for _, later := range []string{"dedup", "rank", "frontier", "publish"} {
		gone = append(gone, filepath.Join(round, later))
	}
	for _, dataset := range []string{"duplicates", "hosts", "urls", "skips", "pages"} {
		gone = append(gone, filepath.Join(dir, "tables", dataset))
	}
	for _, path := range gone {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Make(t, b, "2026-10") // Make builds the ledger from the remaining documents
	mustRun(t, "run", "--month", "2026-10", "--rounds", "1", "--store", dir)
	got := format1Result(t, dir, stages.Merge, 2)
	for i, f := range want.Files {
		if got.Files[i] != f {
			t.Errorf("merge:2 of the stage that format 1 froze has %+v, with format 1 it had %+v", got.Files[i], f)
		}
	}
	if e := encodings(t, dir, format1Result(t, dir, stages.Merge, 2)); !e[format.DeltaLengthByteArray] {
		t.Errorf("encodings of a stage that format 1 froze: %v", e)
	}
	if e := encodings(t, dir, format1Result(t, dir, stages.Publish, 2)); e[format.DeltaLengthByteArray] || e[format.DeltaByteArray] || !e[format.Plain] {
		t.Errorf("encodings of a stage that format 2 froze: %v", e)
	}
}

// format1Merge returns the result of merge:2. Parts of the result may be missing.
func format1Merge(t *testing.T, dir string) *manifest.Result {
	t.Helper()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := roundstate.LoadResult(t.Context(), b, stages.Task{Stage: stages.Merge, Crawl: "2026-10", Partition: 2})
	if err != nil || r == nil {
		t.Fatalf("merge:2: %v, %v", r, err)
	}
	return r
}

// encodings returns the encodings used in the published parts of a result.
func encodings(t *testing.T, dir string, r *manifest.Result) map[format.Encoding]bool {
	t.Helper()
	found := map[format.Encoding]bool{}
	for _, f := range r.Files {
		if !strings.HasPrefix(f.Key, "tables/") {
			continue
		}
		file, err := os.Open(filepath.Join(dir, f.Key))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		pf, err := parquet.OpenFile(file, f.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range pf.Metadata().RowGroups {
			for _, c := range g.Columns {
				for _, e := range c.MetaData.Encoding {
					found[e] = true
				}
			}
		}
	}
	return found
}
