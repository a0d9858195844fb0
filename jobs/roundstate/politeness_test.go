package roundstate

import (
	"errors"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
)

func TestEachChangeOfPolitenessIsARevisionOfItsOwn(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"})
	ledgertest.Make(t, b, "2026-11")
	if _, revision, err := NewestPoliteness(t.Context(), b, "2026-11"); err != nil || revision != 0 {
		t.Fatalf("before any: revision %d, %v", revision, err)
	}
	p := config.Default().Politeness
	slow := p
	slow.Domains = map[string]config.Domain{"example.org": {Stop: "asked by the owner, ticket 17"}}
	slow.Delay = config.Duration(7 * time.Second)
	for n, step := range []struct {
		p    config.Politeness
		want int
	}{{p, 1}, {p, 1}, {slow, 2}, {slow, 2}, {p, 3}, {slow, 4}} {
		if got, err := PublishPoliteness(t.Context(), b, "2026-11", step.p, ledgertest.Writer()); err != nil || got != step.want {
			t.Errorf("step %d: revision %d, %v; want %d", n, got, err, step.want)
		}
	}
	got, revision, err := NewestPoliteness(t.Context(), b, "2026-11")
	if err != nil || revision != 4 || got.Delay != slow.Delay || got.Domains["example.org"] != slow.Domains["example.org"] {
		t.Errorf("newest: %+v, revision %d, %v", got, revision, err)
	}

	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			mine := p
			mine.Delay = config.Duration(time.Duration(n+10) * time.Second)
			if _, err := PublishPoliteness(t.Context(), b, "2026-11", mine, ledgertest.Writer()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, revision, err := NewestPoliteness(t.Context(), b, "2026-11"); err != nil || revision != 12 {
		t.Errorf("eight at once: revision %d, %v; want 12", revision, err)
	}
}

func TestADamagedPolitenessIsLostUntilItIsPublishedAgain(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"})
	ledgertest.Make(t, b, "2026-11")
	p := config.Default().Politeness
	if _, err := PublishPoliteness(t.Context(), b, "2026-11", p, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	key := layout.Politeness("2026-11")
	for n, keep := range []int{0, 40} {
		body, v, err := b.Get(t.Context(), key, manifest.MaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.SwapBytes(t.Context(), b, key, body[:keep], v); err != nil {
			t.Fatal(err)
		}
		if _, _, err := NewestPoliteness(t.Context(), b, "2026-11"); !errors.Is(err, ledger.ErrLost) {
			t.Errorf("%d bytes left: %v", keep, err)
		}
		want := 3 + 2*n // the damaged revision may have been newer than the ledger's entry
		if got, err := PublishPoliteness(t.Context(), b, "2026-11", p, ledgertest.Writer()); err != nil || got != want {
			t.Errorf("%d bytes left: revision %d, %v; want %d", keep, got, err, want)
		}
		if _, revision, err := NewestPoliteness(t.Context(), b, "2026-11"); err != nil || revision != want {
			t.Errorf("published again: revision %d, %v", revision, err)
		}
	}
}
