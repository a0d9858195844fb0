package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

func TestALargePlanNeedsASmallDistance(t *testing.T) {
	for _, tt := range []struct {
		distance int
		round    int
		urls     int64
		want     string // part of the expected error; "" if the plan is allowed
	}{
		{3, 0, 2_000_000_000, ""},
		{7, 0, 100_000_000, ""},
		{4, 0, 100_000_001, "dedup.max_distance is 4, and 100000001 URLs are planned: comparing their texts would take about 4m0s of CPU, and 1m0s at a distance of 3; " +
			"set dedup.max_distance to 3, or plan at most 100000000 URLs with plan.budgets.total"},
		{6, 0, 1_000_000_000, "dedup.max_distance is 6, and 1000000000 URLs are planned: comparing their texts would take about 6h31m0s of CPU, and 19m0s at a distance of 3; "},
		{6, 1, 1_000_000_000, "with plan.budgets.total for the next month: a month keeps both settings"},
	} {
		err := checkDistance(tt.distance, tt.round, tt.urls)
		if tt.want == "" {
			if err != nil {
				t.Errorf("distance %d, %d URLs: %v", tt.distance, tt.urls, err)
			}
			continue
		}
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("distance %d, %d URLs: %v, want %s", tt.distance, tt.urls, err, tt.want)
		}
	}
}

// A month that is planned again without earlier months forgets the months that its first plan continues.
func TestAReplacedPlanMayLeaveEarlierMonths(t *testing.T) {
	f := newFixture(t)
	f.mustPlan()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(name, []byte("http://new.test/"), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := source.Files(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(change func(*PlanRequest)) []string {
		t.Helper()
		c := f.driver.Config.Clone()
		r := PlanRequest{
			Bucket: f.bucket, Crawl: "2026-12", Sources: []source.Source{list}, Config: c,
			Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
		}
		change(&r)
		p, _, err := Plan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return p.Sources
	}
	alone := func(r *PlanRequest) { r.Config.Plan.History = false }
	for name, first := range map[string]func(*PlanRequest){
		"with history":      func(*PlanRequest) {},
		"from the frontier": func(r *PlanRequest) { alone(r); r.Frontier = true },
	} {
		plan(func(r *PlanRequest) { first(r); r.Replace = true })
		m, _, err := ledger.LoadCrawl(t.Context(), f.bucket, "2026-12")
		if err != nil || m.Continues != "2026-11" {
			t.Fatalf("%s: continues %q, %v", name, m.Continues, err)
		}
		for _, again := range []func(*PlanRequest){
			func(r *PlanRequest) { alone(r); r.Replace, r.DryRun = true, true },
			func(r *PlanRequest) { alone(r); r.Replace = true },
		} {
			if sources := plan(again); len(sources) != 1 || sources[0] == source.FrontierName {
				t.Errorf("%s, then alone: sources %q", name, sources)
			}
		}
		if m, _, err = ledger.LoadCrawl(t.Context(), f.bucket, "2026-12"); err != nil || m.Continues != "" || len(m.Continued) > 0 || m.Listed {
			t.Errorf("%s, then alone: %+v, %v", name, m, err)
		}
	}
}
