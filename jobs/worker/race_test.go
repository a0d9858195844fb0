package worker

import (
	"context"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// The type overtaken is a bucket on which another process acts once. The process acts right after
// the first Get of a key.
type overtaken struct {
	store.Bucket
	key string
	act func()
}

func (o *overtaken) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	body, v, err := o.Bucket.Get(ctx, key, limit)
	if act := o.act; act != nil && key == o.key {
		o.act = nil
		act()
	}
	return body, v, err
}

func TestAResultThatAnotherAttemptCommitsMeanwhileIsNotLost(t *testing.T) {
	r, p := started(t)
	b := r.Bucket
	r.Bucket = &overtaken{Bucket: b, key: roundstate.ResultKey(task(stages.Merge, 0)), act: func() {
		for n := range 2 {
			done(t, b, task(stages.Merge, n))
		}
		if _, err := roundstate.Freeze(t.Context(), b, p, stages.Dedup, ledgertest.Writer()); err != nil {
			t.Fatal(err)
		}
	}}
	if err := r.Run(t.Context(), task(stages.Merge, 0)); err != nil {
		t.Error(err)
	}
}
