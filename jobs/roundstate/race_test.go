package roundstate

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

// makeCrawl makes a crawl, its ledger, and a plan with the ID "p" for round 0.
func makeCrawl(t *testing.T, b store.Bucket, crawl, continues string) *manifest.Plan {
	t.Helper()
	create(t, b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl, Continues: continues})
	if err := ledgertest.Writer().Found(t.Context(), b, crawl); err != nil {
		t.Fatal(err)
	}
	return choose(t, b, crawl, "p")
}

// choose stores a plan for round 0 and appends the plan's entry to the ledger.
func choose(t *testing.T, b store.Bucket, crawl, id string) *manifest.Plan {
	t.Helper()
	p := &manifest.Plan{ID: id, Crawl: crawl, Buckets: 1, Partitions: []manifest.PlanPartition{{}}}
	create(t, b, layout.PlanManifest(crawl, 0, id), p)
	none := func(*ledger.Ledger) ([]manifest.Entry, error) { return nil, nil }
	if err := Choose(t.Context(), b, p, "2026-11-01T00:00:00Z", ledgertest.Writer(), none); err != nil {
		t.Fatal(err)
	}
	return p
}

func begin(t *testing.T, b store.Bucket, crawl string) {
	t.Helper()
	if _, err := Begin(t.Context(), b, crawl, 0, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAnotherProcessDoesMeanwhileIsNoLoss(t *testing.T) {
	const crawl = "2026-11"
	for name, test := range map[string]struct {
		key     string // the other process acts just after the command reads this object
		act     func(t *testing.T, b store.Bucket)
		command func(ctx context.Context, b store.Bucket) error
	}{
		"the round starts and a partition is taken": {
			key: layout.PlanManifest(crawl, 0, "p"),
			act: func(t *testing.T, b store.Bucket) {
				begin(t, b, crawl)
				create(t, b, layout.Checkpoint(crawl, 0, 0), &manifest.Checkpoint{Plan: "p", Epoch: 1})
			},
			command: func(ctx context.Context, b store.Bucket) error {
				_, err := Begin(ctx, b, crawl, 0, ledgertest.Writer())
				return err
			},
		},
		"the plan is replaced and the round starts": {
			key: layout.Ledger(crawl),
			act: func(t *testing.T, b store.Bucket) {
				choose(t, b, crawl, "q")
				begin(t, b, crawl)
			},
			command: func(ctx context.Context, b store.Bucket) error {
				_, err := Begin(ctx, b, crawl, 0, ledgertest.Writer())
				return err
			},
		},
		"another crawl is planned": {
			key: layout.Crawls(),
			act: func(t *testing.T, b store.Bucket) { makeCrawl(t, b, "2026-12", "") },
			command: func(ctx context.Context, b store.Bucket) error {
				_, err := Ready(ctx, b, "2026-12")
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := emptyStore(t)
			makeCrawl(t, b, crawl, "")
			other := &ledgertest.Overtaken{Bucket: b, Key: test.key, Act: func() { test.act(t, b) }}
			if err := test.command(t.Context(), other); err != nil {
				t.Error(err)
			}
			if other.Act != nil {
				t.Errorf("%s was not read", test.key)
			}
		})
	}
}

func TestAChangedCrawlIsMissedByTheCrawlsThatContinueIt(t *testing.T) {
	b := emptyStore(t)
	before := ""
	for _, crawl := range []string{"2026-09", "2026-10", "2026-11"} {
		makeCrawl(t, b, crawl, before)
		begin(t, b, crawl)
		create(t, b, layout.Sealed(crawl, 0), &manifest.Sealed{Crawl: crawl, Plan: "p"})
		if err := RecordSeal(t.Context(), b, crawl, 0, ledgertest.Writer()); err != nil {
			t.Fatal(err)
		}
		before = crawl
	}
	if all, err := History(t.Context(), b, "2026-11"); err != nil || len(all) != 3 {
		t.Fatalf("%d rounds, %v", len(all), err)
	}
	_, v, err := b.Get(t.Context(), layout.CrawlManifest("2026-10"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Swap(t.Context(), b, layout.CrawlManifest("2026-10"), &manifest.Crawl{Crawl: "2026-10"}, v); err != nil {
		t.Fatal(err)
	}
	if all, err := History(t.Context(), b, "2026-11"); !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), layout.CrawlManifest("2026-10")) {
		t.Errorf("%d rounds, %v", len(all), err)
	}
	named := false
	for lost, err := range ledger.HeadLosses(t.Context(), b, "2026-11") {
		if err != nil {
			t.Fatal(err)
		}
		named = named || lost.Object == layout.CrawlManifest("2026-10")
	}
	if !named {
		t.Error("the losses of the store do not name the changed document")
	}
}

func TestAResultThatChangedAfterItWasFrozenIsNotSealed(t *testing.T) {
	b := emptyStore(t)
	p := makeCrawl(t, b, "2026-11", "")
	begin(t, b, "2026-11")
	result := func(stage stages.Stage, rows int64) *manifest.Result {
		return &manifest.Result{
			Task: stages.Task{Stage: stage, Crawl: "2026-11"}.String(), Stage: string(stage), Plan: "p",
			Files: []manifest.File{{Dataset: "text", Key: "tables/text/" + string(stage), Rows: rows, Bytes: 7, SHA256: "aa"}},
		}
	}
	for _, stage := range stages.Order {
		if stage != stages.Fetch {
			if _, err := Freeze(t.Context(), b, p, stage, ledgertest.Writer()); err != nil {
				t.Fatal(stage, err)
			}
		}
		create(t, b, ResultKey(stages.Task{Stage: stage, Crawl: "2026-11"}), result(stage, 10))
	}
	key := ResultKey(stages.Task{Stage: stages.Merge, Crawl: "2026-11"})
	_, v, err := b.Get(t.Context(), key, 1<<20)
	if err == nil {
		_, err = manifest.Swap(t.Context(), b, key, result(stages.Merge, 11), v)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "merge@2026-11.0:0") {
		t.Error(err)
	}
}

func TestAChangedInputsDocumentIsNamedBeforeTheRoundIsSealed(t *testing.T) {
	b := emptyStore(t)
	p := makeCrawl(t, b, "2026-11", "")
	begin(t, b, "2026-11")
	for _, stage := range stages.Order {
		if stage != stages.Fetch {
			if _, err := Freeze(t.Context(), b, p, stage, ledgertest.Writer()); err != nil {
				t.Fatal(stage, err)
			}
		}
		create(t, b, ResultKey(stages.Task{Stage: stage, Crawl: "2026-11"}),
			&manifest.Result{Task: stages.Task{Stage: stage, Crawl: "2026-11"}.String(), Stage: string(stage), Plan: "p"})
	}
	key := layout.Inputs("2026-11", 0, string(stages.Rank))
	body, v, err := b.Get(t.Context(), key, 1<<20)
	if err == nil {
		_, err = store.SwapBytes(t.Context(), b, key, bytes.Replace(body, []byte(`"plan"`), []byte(`"Plan"`), 1), v)
	}
	if err != nil {
		t.Fatal(err)
	}
	var lost *ledger.Lost
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); !errors.As(err, &lost) || lost.Object != key {
		t.Errorf("the seal's error is %v, want one that names %s", err, key)
	}
}

func TestASealKeepsTheBlocksThatLaterRoundsReadAndIsRebuilt(t *testing.T) {
	b, p := sealable(t)
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); err != nil {
		t.Fatal(err)
	}
	sealed, err := Sealed(t.Context(), b, "2026-11")
	if err == nil {
		sealed, err = WithFiles(t.Context(), b, sealed, Selection{})
	}
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, f := range sealed[0].Files {
		if f.Blocks == "QUJD" {
			kept = append(kept, f.Dataset)
		}
	}
	if want := []string{stages.FileLinks, stages.FileRepresentatives, stages.FileURLs}; !slices.Equal(kept, want) {
		t.Errorf("blocks are kept of %q, want %q", kept, want)
	}
	key := layout.Sealed("2026-11", 0)
	body, _, err := b.Get(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if made, err := rebuildSeal(t, b, p); err != nil || !slices.Equal(made, []string{key}) {
		t.Errorf("made %q, %v", made, err)
	}
	if again, _, err := b.Get(t.Context(), key, 1<<20); err != nil || !bytes.Equal(again, body) {
		t.Errorf("rebuilt as\n%s\n%v, want\n%s", again, err, body)
	}
}

func TestAClaimOfACrawlThatTheStoreLacksIsMadeAnew(t *testing.T) {
	b := emptyStore(t)
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"})
	if err := ledgertest.Writer().Found(t.Context(), b, "2026-11"); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []*manifest.Active{{Crawl: "2025-01", Round: 3, Nonce: "x"}, {Crawl: "2026-11", Round: 3, Nonce: "y"}} {
		_, v, err := ledger.LoadActive(t.Context(), b, "2026-11")
		if err == nil {
			_, err = manifest.Swap(t.Context(), b, layout.Active(), foreign, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := &manifest.Plan{ID: "p", Crawl: "2026-11", Partitions: []manifest.PlanPartition{{}}}
		if err := Claim(t.Context(), b, l, p, ledgertest.Writer()); !errors.Is(err, ledger.ErrLost) {
			t.Errorf("%s: %v", foreign.Crawl, err)
		}
		made, err := ledgertest.Writer().Rebuild(t.Context(), b, "2026-11", []string{"2026-11"}, ledgertest.NoCopy)
		if err != nil || len(made) != 1 || made[0] != layout.Active() {
			t.Errorf("%s: made %q, %v", foreign.Crawl, made, err)
		}
		if err := Claim(t.Context(), b, l, p, ledgertest.Writer()); err != nil {
			t.Errorf("%s, made anew: %v", foreign.Crawl, err)
		}
	}
}

// Without the error, the results that were not read would look like missing ones.
func TestMissingFailsIfItsContextHasEnded(t *testing.T) {
	b, p := sealable(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if missing, err := Missing(ctx, b, p, Tasks(p, stages.Fetch)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", missing, err)
	}
}
