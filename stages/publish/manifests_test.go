package publish

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages"
)

// manyFiles returns a plan and results that list files of each kind.
func manyFiles(partitions, buckets int) (*manifest.Plan, map[stages.Stage][]*manifest.Result) {
	p := &manifest.Plan{ID: "p", Crawl: "2026-11", Buckets: buckets, Partitions: make([]manifest.PlanPartition, partitions)}
	results := map[stages.Stage][]*manifest.Result{}
	add := func(from stages.Stage, n int, dataset, key, blocks string) {
		r := results[from][n]
		r.Files = append(r.Files, manifest.File{Dataset: dataset, Key: key, Bytes: 7, Rows: 1, SHA256: fmt.Sprintf("%064x", n), Blocks: blocks})
	}
	for _, from := range stages.Order {
		for range from.Tasks(p) {
			results[from] = append(results[from], &manifest.Result{})
		}
	}
	for n := range partitions {
		p.Partitions[n].Bucket = n * buckets / partitions
		add(stages.Fetch, n, stages.FileWARC, layout.WARC(p.Crawl, 0, p.ID, n, 1, 0), "")
		add(stages.Merge, n, stages.FileFetches, layout.Table("fetches", p.Crawl, 0, n), "AAAA")
		add(stages.Publish, n, stages.FilePages, layout.Table("pages", p.Crawl, 0, n), "AAAA")
	}
	for n := range buckets {
		add(stages.Dedup, 0, stages.FileRepresentatives, layout.Working(p.Crawl, 0, "dedup", "representatives", n), "AAAA")
		add(stages.Rank, 0, stages.FileHosts, layout.Table("hosts", p.Crawl, 0, n), "")
		add(stages.Frontier, n, stages.FileURLs, layout.Table("urls", p.Crawl, 0, n), "AAAA")
		add(stages.Frontier, n, stages.FileURLFilter, layout.URLFilter(p.Crawl, 0, n), "")
	}
	add(stages.Rank, 0, stages.FileWebGraph, layout.WebGraph(p.Crawl, 0, "host-edges"), "")
	return p, results
}

func TestManifestsListEveryFileOnceWithItsBucket(t *testing.T) {
	for _, size := range []struct{ partitions, buckets, manifests int }{{3, 2, 1}, {6000, 500, 3}} {
		p, results := manyFiles(size.partitions, size.buckets)
		b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		head, err := sealing(p, results).Seal(func(f manifest.File, body []byte) error {
			_, err := store.CreateBytes(t.Context(), b, f.Key, body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(head.Manifests) != size.manifests || len(head.Files) != 0 || head.Buckets != size.buckets {
			t.Errorf("%d manifests and %d files in the seal, want %d and 0", len(head.Manifests), len(head.Files), size.manifests)
		}
		var listed []manifest.File
		own := 0 // parts of urls in bucket 1, all of which must be in the first manifest
		for i := range head.Manifests {
			files, err := ReadManifest(t.Context(), b, &head.Manifests[i], func(string, int) bool { return true })
			if err != nil || int64(len(files)) != head.Manifests[i].Rows {
				t.Fatalf("%d files, %v", len(files), err)
			}
			listed = append(listed, files...)
			files, err = ReadManifest(t.Context(), b, &head.Manifests[i], func(dataset string, bucket int) bool { return bucket == 1 && dataset == stages.FileURLs })
			if own += len(files); err != nil || len(files) > 0 && i > 0 {
				t.Errorf("manifest %d lists %d parts of urls, %v", i, len(files), err)
			}
		}
		whole, err := sealing(p, results).Listed()
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(listed, func(a, b manifest.File) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
		if d := cmp.Diff(whole.Files, listed); d != "" || own != 1 {
			t.Errorf("%d parts of urls in bucket 1; %s", own, d)
		}
	}
}

func TestAManifestIsBounded(t *testing.T) {
	blocks := string(bytes.Repeat([]byte("A"), manifestBlocks/4))
	files := make([]sealedFile, 2*manifestFiles)
	if n := cutManifest(files); n != manifestFiles {
		t.Errorf("%d files, want %d", n, manifestFiles)
	}
	for i := range files {
		files[i].Blocks = blocks
	}
	if n := cutManifest(files); n != 4 {
		t.Errorf("%d files with many blocks, want 4", n)
	}
	files[0].Blocks += blocks + blocks + blocks + blocks
	if n := cutManifest(files); n != 1 {
		t.Errorf("%d files, the first of which has too many blocks, want 1", n)
	}
}

// Merge tasks of later rounds read parts of links in pieces.
func TestSealsKeepTheBlocksOfLinks(t *testing.T) {
	p := &manifest.Plan{Crawl: "2026-11", Partitions: make([]manifest.PlanPartition, 1)}
	s := NewSealing(p)
	s.Add(stages.Merge, 0, &manifest.Result{Files: []manifest.File{{Dataset: stages.FileLinks, Key: layout.Table("links", p.Crawl, 0, 0), Blocks: "AAAA"}}})
	if got := s.files[0].Blocks; got != "AAAA" {
		t.Errorf("blocks %q", got)
	}
}
