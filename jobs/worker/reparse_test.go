package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// reparsedStore makes a store with a crawl whose fetch tasks are complete, and a reparse of this
// crawl.
func reparsedStore(t *testing.T, of manifest.Reparse) (Runner, stages.Task) {
	t.Helper()
	r, p := startedStore(t)
	for n := range 2 {
		commitResult(t, r.Bucket, task(stages.Fetch, n))
	}
	q := *p
	q.Crawl, q.ID = "2026-11r1", "q"
	create(t, r.Bucket, layout.PlanManifest("2026-11r1", 0, "q"), &q)
	create(t, r.Bucket, layout.CrawlManifest("2026-11r1"), &manifest.Crawl{Crawl: "2026-11r1", Reparse: &of})
	ledgertest.Make(t, r.Bucket, "2026-11", "2026-11r1")
	return r, stages.Task{Stage: stages.Fetch, Crawl: "2026-11r1"}
}

func TestAReparseOfAnotherParserIsNotGoneOnWith(t *testing.T) {
	r, fetch := reparsedStore(t, manifest.Reparse{Of: "2026-11", Parser: ParserVersion + 1})
	err := r.Run(t.Context(), fetch)
	if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "reparse under another name") {
		t.Errorf("%v", err)
	}
}

func TestAReparseReadsWhatItsInputsFroze(t *testing.T) {
	r, fetch := reparsedStore(t, manifest.Reparse{Of: "2026-11", Parser: ParserVersion})
	if err := r.Run(t.Context(), fetch); err != nil { // the task has no URLs
		t.Fatal(err)
	}
	var in manifest.Inputs
	if _, _, err := manifest.Load(t.Context(), r.Bucket, layout.Inputs("2026-11r1", 0, "fetch"), &in); err != nil || len(in.Tasks) != 2 {
		t.Fatalf("inputs %+v, %v", in, err)
	}
	key := layout.Result("2026-11", 0, "fetch", 1)
	if err := r.Bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	commitResult(t, r.Bucket, task(stages.Fetch, 1), manifest.File{Key: "forged"})
	fetch.Partition = 1
	err := r.Run(t.Context(), fetch)
	if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "fetch@2026-11.0:1") {
		t.Errorf("the task's input was replaced after it was frozen: %v", err)
	}
}

func TestWARCFilesOfOthersNeedAStoreThatCanBeOpened(t *testing.T) {
	r, fetch := reparsedStore(t, manifest.Reparse{Archive: "s3://others", Parser: ParserVersion})
	if err := r.Run(t.Context(), fetch); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "s3://others") {
		t.Errorf("%v", err)
	}
	r.Archive = func(context.Context, string) (store.Bucket, error) { return nil, store.ErrDenied }
	if err := r.Run(t.Context(), fetch); !errors.Is(err, store.ErrDenied) {
		t.Errorf("%v", err)
	}
}

func TestReparsesAreFoundBesideTheirMonths(t *testing.T) {
	r, _ := startedStore(t)
	want := []string{"2025-01r3", "2026-11", "2026-11r1", "2026-11r12", "2026-11r2", "2026-12"}
	for _, crawl := range want {
		if crawl != "2026-11" {
			create(t, r.Bucket, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
		}
	}
	got, err := roundstate.Crawls(t.Context(), r.Bucket)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
