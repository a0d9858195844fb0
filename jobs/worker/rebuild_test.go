package worker

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

func TestComputeLeavesNoResultAndFetchesNothing(t *testing.T) {
	r, _ := startedStore(t)
	if _, err := r.Compute(t.Context(), task(stages.Fetch, 0)); !errors.Is(err, stages.ErrPermanent) {
		t.Errorf("a fetch task was computed: %v", err)
	}
	for n := range 2 {
		commitResult(t, r.Bucket, task(stages.Merge, n))
	}
	var before []string
	for o, err := range r.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, o.Key)
	}
	result, made, release, err := r.Recompute(t.Context(), task(stages.Dedup, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if result.Task != "dedup@2026-11.0:0" || result.Plan != "p" || len(result.Files) == 0 {
		t.Fatalf("%+v", result)
	}
	for _, f := range result.Files {
		o, err := made.OpenWritten(t.Context(), f.Key)
		if err != nil {
			t.Fatal(err)
		}
		o.Close()
	}
	n := 0
	for o, err := range r.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if n == len(before) || o.Key != before[n] {
			t.Fatalf("%s was written", o.Key)
		}
		n++
	}
	// A later attempt must commit the same result that Compute returned.
	if err := r.Run(t.Context(), task(stages.Dedup, 0)); err != nil {
		t.Fatal(err)
	}
	_, committed, err := roundstate.LoadResult(t.Context(), r.Bucket, task(stages.Dedup, 0))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := manifest.Encode(result); err != nil || manifest.Digest(body) != committed {
		t.Errorf("computed %s, committed %s: %v", manifest.Digest(body), committed, err)
	}
}

func TestRebuildOfATaskWithoutAResultDoesNothing(t *testing.T) {
	r, _ := startedStore(t)
	if keys, err := r.Rebuild(t.Context(), task(stages.Merge, 0)); err != nil || len(keys) > 0 {
		t.Errorf("%v, %v", keys, err)
	}
}

func TestAnErrorNamesSomeOfManyLostFiles(t *testing.T) {
	r, _ := startedStore(t)
	var lost []manifest.File
	for n := range 12 {
		lost = append(lost, manifest.File{Key: layout.WARC("2026-11", 0, "p", 0, 1, n)})
	}
	commitResult(t, r.Bucket, task(stages.Fetch, 0), lost...)
	_, err := r.Rebuild(t.Context(), task(stages.Fetch, 0))
	if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "e1-00004") || !strings.Contains(err.Error(), "and 7 more") {
		t.Errorf("%v", err)
	}
}
