package store_test

import (
	"context"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/faultstore"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
)

// TestWrappersKeepTheContract runs the contract suite through a stack of all wrappers, over a store
// whose reads sometimes fail.
func TestWrappersKeepTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Bucket {
		flaky := faultstore.New(dir(t), faultstore.Faults{
			Seed: 5, Before: 0.05, After: 0.05, Short: 0.05,
			Ops: []faultstore.Op{faultstore.Get, faultstore.Open, faultstore.Read, faultstore.List, faultstore.Delete},
		})
		hedged := store.WithHedge(flaky, store.Hedge{Samples: 1, Share: 1})
		return store.Count(store.WithLimit(store.WithRetry(hedged, store.Retry{
			Tries: 20, Sleep: func(context.Context, time.Duration) error { return nil },
		}), time.Minute))
	})
}
