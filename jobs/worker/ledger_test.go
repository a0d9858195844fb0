package worker

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

func TestATaskRefusesToFetchBesideAnotherCrawl(t *testing.T) {
	r, p := startedStore(t)
	create(t, r.Bucket, layout.CrawlManifest("2026-12"), &manifest.Crawl{Crawl: "2026-12"})
	ledgertest.Make(t, r.Bucket, "2026-12")
	other := *p
	other.Crawl = "2026-12"
	l, err := ledger.Load(t.Context(), r.Bucket, other.Crawl)
	if err == nil {
		err = roundstate.Claim(t.Context(), r.Bucket, l, &other, ledgertest.Writer())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), task(stages.Fetch, 0)); !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "--month 2026-12") {
		t.Errorf("beside another crawl: %v", err)
	}
	if err := roundstate.Release(t.Context(), r.Bucket, &other, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	// The task may fetch now, and fails only because the file of the plan is missing.
	if err := r.Run(t.Context(), task(stages.Fetch, 0)); errors.Is(err, roundstate.ErrBusy) || !errors.Is(err, store.ErrKey) {
		t.Errorf("alone: %v", err)
	}
}

func TestATaskFetchesNothingWhenTheNewestPolitenessIsLost(t *testing.T) {
	r, _ := startedStore(t)
	slow := config.Default().Politeness
	slow.Domains = map[string]config.Domain{"example.org": {Stop: "asked by the owner"}}
	for range 2 {
		if _, err := roundstate.PublishPoliteness(t.Context(), r.Bucket, "2026-11", slow, ledgertest.Writer()); err != nil {
			t.Fatal(err)
		}
	}
	key := layout.Politeness("2026-11")
	body, _, err := r.Bucket.Get(t.Context(), key, manifest.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(string(body), "asked by the owner", "", 1)
	for name, lose := range map[string]func() error{
		"gone":  func() error { return r.Bucket.Delete(t.Context(), key) },
		"other": func() error { replace(t, r.Bucket, key, []byte(older)); return nil },
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		err := r.Run(t.Context(), task(stages.Fetch, 0))
		if !errors.Is(err, ledger.ErrLost) || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "--config FILE") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := roundstate.PublishPoliteness(t.Context(), r.Bucket, "2026-11", slow, ledgertest.Writer()); err != nil || n != 2 {
		t.Errorf("published again: revision %d, %v", n, err)
	}
	if err := r.Run(t.Context(), task(stages.Fetch, 0)); errors.Is(err, ledger.ErrLost) || !errors.Is(err, store.ErrKey) {
		t.Errorf("published again: %v", err)
	}
}

func TestALostFetchResultIsNotFetchedAgain(t *testing.T) {
	r, p := startedStore(t)
	for n := range 2 {
		commitResult(t, r.Bucket, task(stages.Fetch, n))
	}
	if _, err := roundstate.Freeze(t.Context(), r.Bucket, p, stages.Merge, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	if err := r.Bucket.Delete(t.Context(), roundstate.ResultKey(task(stages.Fetch, 1))); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), task(stages.Fetch, 1)); !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), "fetch@2026-11.0:1") {
		t.Errorf("%v", err)
	}
}

func TestGivingUpDoesNotHideThatWhatWasFetchedIsLost(t *testing.T) {
	r, _ := startedStore(t)
	ledgertest.Edit(t, r.Bucket, "2026-11", func(all []manifest.Entry) []manifest.Entry {
		return append(all, ledger.Named(manifest.EntryFetching, 0, layout.StageDir("2026-11", 0, "fetch"), ""))
	})
	r.GiveUp = true
	if err := r.Run(t.Context(), task(stages.Fetch, 0)); !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), "restore it") {
		t.Errorf("%v", err)
	}
}
