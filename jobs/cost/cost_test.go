package cost

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// planned returns a plan of equal partitions of 500,000 URLs that take 2.5 hours each.
func planned(partitions, buckets int) *manifest.Plan {
	p := &manifest.Plan{Buckets: buckets, URLs: int64(partitions) * 500_000}
	for i := range partitions {
		p.Partitions = append(p.Partitions, manifest.PlanPartition{Partition: i, URLs: 500_000, EstimatedSeconds: 9000})
	}
	return p
}

func model() *Model {
	c := config.Default()
	c.Prices = config.Prices{Date: "2026-11", CPU: 0.04, Memory: 0.01, Puts: 0.005, Gets: 0.0004, Stored: 0.023}
	return &Model{Config: c, Pods: func(*manifest.Plan, stages.Stage) Pod { return Pod{Cores: 0.25, GiB: 2} }}
}

// A page adds 110,000 bytes to a checkpoint of 256 MiB, so 500,000 pages make 204 checkpoints. The
// lease is renewed 150 times in 2.5 hours, and the task looks at the ledger 900 times.
func TestTwoPartitionsByHand(t *testing.T) {
	want := Usages{
		stages.Fetch:    {WallMS: 18_000_000, Puts: 2*6 + 408*10 + 300, Gets: 2*12 + 1800, Lists: 2 * 6, BytesWritten: 50_034_680_000},
		stages.Merge:    {WallMS: 940_200, Puts: 28, Gets: 2*8 + 408*28, BytesWritten: 8_000_230_000},
		stages.Dedup:    {WallMS: 6100, Puts: 3, Gets: 8 + 14 + 285, BytesWritten: 100_005_000},
		stages.Rank:     {WallMS: 110_100, Puts: 8, Gets: 4 + 16 + 6 + 61, BytesWritten: 150_010_000},
		stages.Frontier: {WallMS: 150_100, Puts: 4, Gets: 15 + 20 + 6 + 1 + 321, BytesWritten: 250_015_000},
		stages.Publish:  {WallMS: 50_200, Puts: 4, Gets: 40 + 260, BytesWritten: 500_056_000},
	}
	got := model().Predict(planned(2, 1), Past{})
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	known := planned(2, 1)
	known.Known = 1
	if gets := model().Predict(known, Past{})[stages.Fetch].Gets; gets != 24+1800+25*2*2 {
		t.Errorf("%d GETs of a fetch stage with a history", gets)
	}
}

// jobs/README.md derives these calls for a billion pages.
func TestABillionPagesNeedTheCallsOfTheDocument(t *testing.T) {
	got := model().Predict(planned(2000, 500), Past{})
	for name, c := range map[string]struct{ got, want float64 }{
		"fetch PUT":    {float64(got[stages.Fetch].Puts), 4.4e6}, // the document adds 90 swaps an hour more, at most
		"fetch GET":    {float64(got[stages.Fetch].Gets), 1.8e6},
		"merge PUT":    {float64(got[stages.Merge].Puts), 30_000},
		"merge GET":    {float64(got[stages.Merge].Gets), 11.5e6},
		"dedup PUT":    {float64(got[stages.Dedup].Puts), 1500},
		"dedup GET":    {float64(got[stages.Dedup].Gets), 0.21e6},
		"rank GET":     {float64(got[stages.Rank].Gets), 3.1e6},
		"frontier GET": {float64(got[stages.Frontier].Gets), 3.6e6},
		"publish GET":  {float64(got[stages.Publish].Gets), 0.3e6},
		"pod-hours":    {got[stages.Fetch].Wall().Hours(), 5000},
		"bytes":        {float64(got.Total().BytesWritten), 59e12},
	} {
		if r := c.got / c.want; r < 0.93 || r > 1.07 {
			t.Errorf("%s: %.4g, want %.4g", name, c.got, c.want)
		}
	}
}

func TestASlowFetchTaskMakesFewCheckpoints(t *testing.T) {
	for _, c := range []struct {
		urls    int64
		seconds float64
		want    float64
	}{
		{100, 5, 1},          // the checkpoint at the end
		{100, 6000, 10},      // one URL a minute: after ten intervals
		{12_000, 6000, 19},   // 120 a minute: after a quarter of 256 MiB, which takes 305 s
		{300_000, 3000, 122}, // 6,000 a minute: after 256 MiB, which takes 24.4 s
	} {
		if got := model().segments(&manifest.PlanPartition{URLs: c.urls, EstimatedSeconds: c.seconds}); got != c.want {
			t.Errorf("%d URLs in %v s: %v checkpoints, want %v", c.urls, c.seconds, got, c.want)
		}
	}
}

func TestAUsageHasThePriceOfTheTable(t *testing.T) {
	m := model()
	u := manifest.Usage{WallMS: 18_000_000, Puts: 4392, Lists: 12, Gets: 24_000, BytesWritten: 50e9}
	got := m.Price(planned(2, 1), stages.Fetch, u)
	// 5 h × (0.25 × $0.04 + 2 × $0.01); 4.404 × $0.005 + 24 × $0.0004; 50 × $0.023
	want := Dollars{Machines: 0.15, Requests: 0.03162, Monthly: 1.15}
	if math.Abs(got.Machines-want.Machines) > 1e-9 || math.Abs(got.Requests-want.Requests) > 1e-9 || math.Abs(got.Monthly-want.Monthly) > 1e-9 || math.Abs(got.Once()-0.18162) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	m.Config.Prices = config.Prices{}
	if got := m.Price(planned(2, 1), stages.Fetch, u); got != (Dollars{}) {
		t.Errorf("%+v without prices", got)
	}
}

func TestEarlierRoundsCorrectThePrediction(t *testing.T) {
	m, first, next := model(), planned(2, 1), planned(4, 1)
	var past Past
	m.Learn(&past, first, Usages{}) // records that were deleted tell nothing
	if past.Rounds != 0 {
		t.Fatalf("%d rounds", past.Rounds)
	}
	used := m.Predict(first, Past{})
	merge := used[stages.Merge]
	merge.Gets, merge.BytesWritten, merge.WallMS = merge.Gets*2, merge.BytesWritten/4, merge.WallMS*3
	fetch := used[stages.Fetch]
	fetch.WallMS, fetch.Lists = fetch.WallMS*3, 0
	used[stages.Merge], used[stages.Fetch] = merge, fetch
	m.Learn(&past, first, used)
	before := past.Clone()
	plain, got := m.Predict(next, Past{}), m.Predict(next, past)
	want := plain[stages.Merge]
	want.Gets, want.BytesWritten, want.WallMS = want.Gets*2, got[stages.Merge].BytesWritten, want.WallMS*3
	if d := cmp.Diff(want, got[stages.Merge]); d != "" {
		t.Error(d)
	}
	if r := float64(got[stages.Merge].BytesWritten) / float64(plain[stages.Merge].BytesWritten); math.Abs(r-0.25) > 1e-6 {
		t.Errorf("bytes: %v of the arithmetic's", r)
	}
	// The planner itself predicts the time of fetch from earlier rounds. A figure of 0 tells nothing.
	if d := cmp.Diff(plain[stages.Fetch], got[stages.Fetch]); d != "" {
		t.Error(d)
	}
	m.Learn(&past, first, m.Predict(first, Past{}))
	if past.Rounds != 2 || before.Rounds != 1 || m.Predict(next, before)[stages.Merge].Gets != want.Gets {
		t.Errorf("a copy changed with its original: %+v", before)
	}
	if got, want := m.Predict(next, past)[stages.Merge].Gets, int64(float64(plain[stages.Merge].Gets)*1.5+0.5); got != want {
		t.Errorf("%d GETs after rounds of 2 and 1 times the arithmetic, want %d", got, want)
	}
}
