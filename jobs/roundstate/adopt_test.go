package roundstate

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

// withoutLocks hides the locks of a store, so that waiting attempts depend on leases alone.
type withoutLocks struct{ store.Bucket }

// quick is a clock whose sleeps take no time. It counts the sleeps.
type quick struct {
	stages.SystemClock
	slept time.Duration
}

func (c *quick) Now() time.Time { return time.Unix(1_800_000_000, 0).Add(c.slept) }

func (c *quick) Sleep(_ context.Context, d time.Duration) error {
	c.slept += d
	return nil
}

// TestAdoptionWaitsForManyDeadAttemptsAtOnce adopts a store in which attempts at many partitions
// were killed. All leases run out at the same time, so the adoption waits only once.
func TestAdoptionWaitsForManyDeadAttemptsAtOnce(t *testing.T) {
	const crawl, lease = "2026-11", 3 * time.Minute
	b := withoutLocks{emptyStore(t)}
	older := func(key string, d manifest.Document) {
		t.Helper()
		body, err := manifest.EncodeAs(d, 2)
		if err != nil {
			t.Fatal(err)
		}
		if before, _, proven := bytes.Cut(body, []byte(",\n \"proof\":")); proven { // checkpoints of format 2 have no proof
			body = append(before, "\n}\n"...)
		}
		if _, err := store.CreateBytes(t.Context(), b, key, body); err != nil {
			t.Fatal(err)
		}
	}
	p := &manifest.Plan{ID: "p0", Crawl: crawl, Buckets: 1, Partitions: make([]manifest.PlanPartition, 20)}
	older(layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
	older(layout.Active(), &manifest.Active{Crawl: crawl})
	older(layout.PlanManifest(crawl, 0, p.ID), p)
	older(layout.Start(crawl, 0), &manifest.Start{Plan: p.ID})
	for n := range p.Partitions {
		older(layout.Checkpoint(crawl, 0, n), &manifest.Checkpoint{Plan: p.ID, Partition: n, Epoch: 1, LeaseMS: lease.Milliseconds()})
	}
	clock := &quick{}
	if _, err := Ready(t.Context(), b, crawl, ledger.Writer{Version: "test", Clock: clock}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if clock.slept < lease || clock.slept > 2*lease {
		t.Errorf("adopted after %s, the lease is %s", clock.slept, lease)
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
