package jobs

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// listedAccounts returns the parts of stages and runs that the seal of round 0 lists.
func (f *fixture) listedAccounts() (files []manifest.File) {
	f.t.Helper()
	s, err := roundstate.Sealed(f.t.Context(), f.bucket, "2026-11")
	if err != nil || len(s) != 1 {
		f.t.Fatalf("%d seals, %v", len(s), err)
	}
	s, err = roundstate.WithFiles(f.t.Context(), f.bucket, s, roundstate.Selection{})
	if err != nil {
		f.t.Fatal(err)
	}
	return append(s[0].FilesOf(stages.FileStages), s[0].FilesOf(stages.FileRuns)...)
}

func TestASealListsWhatTheRoundTookAndCost(t *testing.T) {
	f := newFixture(t)
	p := f.mustPlan()
	f.driver.Costs = &cost.Model{Config: f.driver.Config, Pods: func(*manifest.Plan, stages.Stage) cost.Pod { return cost.Pod{Cores: 1} }}
	f.put(layout.Begun("2026-11", 0, "fetch", 1, 1), &manifest.Begun{At: "2026-11-01T00:00:00Z", Machine: "lost"})
	f.put(layout.Attempt("2026-11", 0, "fetch", 1, 1), &manifest.Attempt{At: "2026-11-01T03:00:00Z", Began: "2026-11-01T01:00:00Z", Class: manifest.ClassDone, Usage: &manifest.Usage{WallMS: 7_200_000}})
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	files := f.listedAccounts()
	if len(files) != 2 || files[0].Rows != 2 || files[1].Rows != 1 {
		t.Fatalf("the seal lists %+v", files)
	}
	run := tabletest.Read[schema.Run](t, f.bucket, files[1].Key)[0]
	if run.Plan != p.ID || run.Attempts != 2 || run.Failed != 1 || *run.Hours != 3 || run.URLsPlanned != 6 || run.PredictedPuts == nil || *run.PredictedPuts <= 0 || *run.Dollars <= 0 || run.PricesDate != f.driver.Config.Prices.Date {
		t.Errorf("%+v", run)
	}
	// The driver has learned from the round for the prediction of the next one.
	if f.driver.learned.rounds != 1 || f.driver.learned.past.Rounds != 1 {
		t.Errorf("%+v", f.driver.learned)
	}
	// A lost seal is made again from the parts.
	if err := f.bucket.Delete(t.Context(), layout.Sealed("2026-11", 0)); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(t.Context(), f.bucket, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := roundstate.RebuildSeal(t.Context(), f.bucket, p, l, f.driver.ledgers()); err != nil || len(keys) != 1 || len(f.listedAccounts()) != 2 {
		t.Errorf("rebuilt %q, %v", keys, err)
	}
}

func TestADriverSealsThePartsThatADeadDriverWrote(t *testing.T) {
	f := newFixture(t)
	p := f.mustPlan()
	dead := *f.driver
	dead.Version = "dead"
	if err := dead.account(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	files := f.listedAccounts()
	if run := tabletest.Read[schema.Run](t, f.bucket, files[1].Key)[0]; len(files) != 2 || run.Version != "dead" || run.Dollars != nil {
		t.Errorf("%+v of %+v", run, files)
	}
}
