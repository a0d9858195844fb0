package worker

import (
	"testing"

	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

func TestAResultThatAnotherAttemptCommitsMeanwhileIsNotLost(t *testing.T) {
	r, p := startedStore(t)
	b := r.Bucket
	r.Bucket = &ledgertest.Overtaken{Bucket: b, Key: roundstate.ResultKey(task(stages.Merge, 0)), Act: func() {
		for n := range 2 {
			commitResult(t, b, task(stages.Merge, n))
		}
		if _, err := roundstate.Freeze(t.Context(), b, p, stages.Dedup, ledgertest.Writer()); err != nil {
			t.Fatal(err)
		}
	}}
	if err := r.Run(t.Context(), task(stages.Merge, 0)); err != nil {
		t.Error(err)
	}
}
