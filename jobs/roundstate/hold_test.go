package roundstate

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
)

// A quarantine does not begin while a round is fetched. A fetch stage takes over its hold, that of the same round too,
// and a quarantine that is alive learns that.
func TestAFetchStageIsNotDisturbedByAQuarantine(t *testing.T) {
	for name, crawl := range map[string]string{"of the round": "2026-11", "of another crawl": "2026-12"} {
		t.Run(name, func(t *testing.T) {
			b := emptyStore(t)
			p := makeCrawl(t, b, "2026-11", "")
			makeCrawl(t, b, "2026-12", "")
			l, err := ledger.Load(t.Context(), b, p.Crawl)
			if err != nil {
				t.Fatal(err)
			}
			h, err := HoldForQuarantine(t.Context(), b, crawl, 0, ledgertest.Writer())
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if err := Claim(t.Context(), b, l, p, ledgertest.Writer()); err != nil {
				t.Fatal(err)
			}
			if err := h.Check(t.Context()); !errors.Is(err, ErrBusy) {
				t.Errorf("the quarantine does not learn that a fetch stage runs: %v", err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if a, _, err := ledger.LoadActive(t.Context(), b, p.Crawl); err != nil || a.Done || a.Crawl != p.Crawl {
				t.Errorf("the quarantine ended the claim of the fetch stage: %+v, %v", a, err)
			}
			if _, err := HoldForQuarantine(t.Context(), b, crawl, 0, ledgertest.Writer()); !errors.Is(err, ErrBusy) {
				t.Errorf("a quarantine begins while a round is fetched: %v", err)
			}
		})
	}
}

// Whoever asks for the status learns that a command changes objects, or was killed while it did.
func TestAHoldIsToldOf(t *testing.T) {
	b := emptyStore(t)
	makeCrawl(t, b, "2026-11", "")
	if held, err := Held(t.Context(), b); held != "" || err != nil {
		t.Errorf("before: %q, %v", held, err)
	}
	h, err := HoldForQuarantine(t.Context(), b, "2026-11", 0, ledgertest.Writer())
	if err != nil {
		t.Fatal(err)
	}
	if held, err := Held(t.Context(), b); !strings.Contains(held, "crawlbatch verify --month 2026-11 --quarantine --yes") || err != nil {
		t.Errorf("meanwhile: %q, %v", held, err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held, err := Held(t.Context(), b); held != "" || err != nil {
		t.Errorf("after: %q, %v", held, err)
	}
}

// A command may hold active.json with the crawl and round of a fetch stage that ended before. A driver that records the
// end of that stage late leaves the hold alone.
func TestALateDriverDoesNotEndAHold(t *testing.T) {
	for name, held := range map[string]*manifest.Active{
		holdPrune:      {Prune: true, Nonce: "prune-1"},
		holdTakedown:   {Prune: true, Takedown: true, Nonce: "takedown-1"},
		holdQuarantine: {Nonce: "quarantine-1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := emptyStore(t)
			p := makeCrawl(t, b, "2026-11", "")
			held.Crawl, held.Round = p.Crawl, p.Round
			h, err := TakeHold(t.Context(), b, held)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(Release(t.Context(), b, p, ledgertest.Writer()), h.Check(t.Context())); err != nil {
				t.Error(err)
			}
			if held, err := Held(t.Context(), b); held == "" || err != nil {
				t.Errorf("the hold has ended: %q, %v", held, err)
			}
		})
	}
}
