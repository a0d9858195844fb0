package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// TestARoundThatFormat3MergedEndsInItsOwnShape continues a crawl in a store of format 3 that the script
// testdata/format3/make made. Round 1 is merged but not ranked. It must end in format 3, and only round 2
// may have the files of a newer format.
func TestARoundThatFormat3MergedEndsInItsOwnShape(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := unpacked(t, "../../testdata/format3/halfway.tar.gz")
	mustRun(t, "verify", "--month", "2026-11", "--round", "0", "--store", dir)
	lost := []string{
		layout.Working("2026-11", 0, "merge", stages.FileEdges, 1), layout.Working("2026-11", 0, "rank", stages.FileInlinks, 0),
		layout.Table(stages.FileLinks, "2026-11", 0, 0), layout.Table(stages.FileHosts, "2026-11", 0, 0),
	}
	before := map[string][]byte{}
	for _, key := range lost {
		path := filepath.Join(dir, filepath.FromSlash(key))
		body, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		before[key] = body
	}
	mustRun(t, "retry", "--month", "2026-11", "--rebuild", "--store", dir)
	for key, want := range before {
		if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(key))); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s was rebuilt with other bytes: %v", key, err)
		}
	}
	addr, stop := serve(t, "--hosts", "6", "--pages", "12", "--seed", "8", "--faults", "0")
	mustRun(t, "run", "--month", "2026-11", "--rounds", "3", "--store", dir, "--connect-to", "::"+addr)
	stop()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range []string{stages.FileEdges, stages.FileEdges, stages.FileTargets} {
		r, _, err := roundstate.LoadResult(t.Context(), b, stages.Task{Stage: stages.Merge, Crawl: "2026-11", Round: round})
		if err != nil || r == nil {
			t.Fatalf("merge of round %d: %v, %v", round, r, err)
		}
		has := func(dataset string) bool {
			return slices.ContainsFunc(r.Files, func(f manifest.File) bool { return f.Dataset == dataset })
		}
		if has(stages.FileEdges) == has(stages.FileTargets) || !has(want) {
			t.Errorf("round %d has edges: %t, targets: %t", round, has(stages.FileEdges), has(stages.FileTargets))
		}
	}
	for round, want := range []bool{false, false, true} {
		for _, dataset := range append([]string{stages.FileDomains, stages.FileTerms}, publish.Accounts...) {
			there, err := manifest.Exists(t.Context(), b, layout.Table(dataset, "2026-11", round, 0))
			if err != nil || there != want {
				t.Errorf("round %d has %s: %t, %v", round, dataset, there, err)
			}
		}
	}
	mustRun(t, "verify", "--month", "2026-11", "--store", dir)
}
