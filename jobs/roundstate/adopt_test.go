package roundstate

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// without wraps a store and hides the locks of the store.
type without struct{ store.Bucket }

// quick is a clock whose sleeps take no time. quick counts the sleeps.
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
	b := without{emptyStore(t)}
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
