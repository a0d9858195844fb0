package show

import (
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
)

// A partition of 500,000 URLs and 2.5 hours makes 204 checkpoints.
func TestCostSaysWhatAManagerPays(t *testing.T) {
	m := &cost.Model{Config: config.Default(), Pods: func(*manifest.Plan, stages.Stage) cost.Pod { return cost.Pod{Cores: 0.25, GiB: 1.125} }}
	p := &manifest.Plan{Buckets: 500, URLs: 1_000_000_000}
	for range 2000 {
		p.Partitions = append(p.Partitions, manifest.PlanPartition{URLs: 500_000, EstimatedSeconds: 9000})
	}
	var past cost.Past
	var out strings.Builder
	if err := Cost(&out, m, p, past); err != nil {
		t.Fatal(err)
	}
	m.Learn(&past, p, m.Predict(p, past))
	if err := Cost(&out, m, p, past); err != nil {
		t.Fatal(err)
	}
	want := `estimated cost: $96.61, and $1,359 for each month of storage, at prices of 2025 and by the figures of other crawls
  fetch: 5000.00 pod-hours of 0.25 cores and 1.1 GiB, $61.72
  other stages: 351.96 pod-hours, $4.34
  store: 4.43M PUT, 20.9M GET, 12k LIST, $30.55; 59.1TB written
`
	if got := out.String(); got != want+strings.Replace(want, "the figures of other crawls", "what 1 earlier round used", 1) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for d, want := range map[float64]string{0: "$0", 0.004: "<$0.01", 12.345: "$12.35", 1357.6: "$1,358"} {
		if got := dollars(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestStatusComparesAPredictionWithWhatWasUsed(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 1, 18, 0, time.Local)
	s := someStatus(now)
	r := &s.Rounds[0]
	r.Prices = "2026-11"
	for i := range r.Stages {
		r.Stages[i].Predicted = &jobs.PredictedUsage{Usage: manifest.Usage{WallMS: 3_600_000, Puts: 400_000, Gets: 1, BytesWritten: 4_000_000_000}, Dollars: cost.Dollars{Machines: 1, Requests: 2, Monthly: 0.046}}
		r.Stages[i].Dollars = cost.Dollars{Machines: 60}
	}
	var out strings.Builder
	if err := Status(&out, s, now, 80); err != nil {
		t.Fatal(err)
	}
	const rows = `
  whole round     PUT GET LIST written    time dollars a month
  predicted      800k   2    0     8GB   2h00m   $6.00   $0.09
  ended attempts 712k   8    1   2.5MB 100h17m    $120      $0
`
	if !strings.Contains(out.String(), rows) {
		t.Errorf("%s\nlacks%s", out.String(), rows)
	}
	r.Stages[0].Usage = manifest.Usage{}
	out.Reset()
	if err := Status(&out, s, now, 80); err != nil || !strings.Contains(out.String(), "  what it used is not known before the first attempt ends\n") || strings.Contains(out.String(), "ended attempts") {
		t.Errorf("%v before an attempt ends:\n%s", err, out.String())
	}
	out.Reset()
	if err := Status(&out, s, now, fullTable-1); err != nil || strings.Contains(out.String(), "predicted") {
		t.Errorf("%v on a narrow terminal:\n%s", err, out.String())
	}
}
