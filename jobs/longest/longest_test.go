package longest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// ms is a millisecond.
const ms schema.Time = 1000

// finished makes a round of two partitions, whose last host got the given requests.
func finished(t *testing.T, robots string, requests []schema.Request) (store.Bucket, *manifest.Plan, *manifest.Sealed, map[int][]*manifest.Attempt) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &manifest.Plan{Crawl: "2026-11", Partitions: make([]manifest.PlanPartition, 2)}
	hosts := []schema.Host{{Host: "quick.test", LastRequest: 5 * ms}, {Host: "last.test", Planned: 3, RobotsState: robots, FirstRequest: 1000 * ms, LastRequest: requests[len(requests)-1].Start}, {Host: "never.test"}}
	for i := range requests {
		requests[i].Host = "last.test"
	}
	requests = append(requests, schema.Request{Host: "quick.test", Start: 5 * ms, DelayMS: 99_000})
	fetch, predicted := 3.0, 1.0
	tabletest.Write(t, b, stages.FileRuns, publish.AccountKey(p, stages.FileRuns), []schema.Run{{FetchHours: &fetch, PredictedFetch: &predicted}})
	sealed := &manifest.Sealed{Files: []manifest.File{tabletest.Write(t, b, stages.FileHosts, "hosts", hosts), tabletest.Write(t, b, stages.FileRequests, "requests", requests)}}
	return b, p, sealed, map[int][]*manifest.Attempt{
		0: {{Class: manifest.ClassDone, At: "2026-11-01T10:00:00.9Z"}},
		1: {{Class: manifest.ClassFailed, At: "2026-11-01T09:00:00Z"}, {Class: manifest.ClassDone, At: "2026-11-01T10:00:00.95Z"}},
	}
}

func TestTheLastHostSaysWhereItsTimeWent(t *testing.T) {
	for name, c := range map[string]struct {
		robots   string
		requests []schema.Request
		cause    string
		spent    []Time
	}{
		"a Crawl-delay, and a pause of the crawl": {"rules", []schema.Request{
			{Purpose: schema.ForRobots, Start: 1000 * ms, DelayMS: 2000, Status: 200, Epoch: 1},
			{Purpose: schema.ForPage, Start: 21_000 * ms, DelayMS: 20_000, Status: 200, Epoch: 1},
			{Purpose: schema.ForPage, Start: 91_000 * ms, DelayMS: 20_000, Status: 200, Epoch: 2},
		}, "Crawl-delay", []Time{{onAttempts, 50_000}, {OnDelay, 40_000}}},
		"a robots.txt that answers 503": {"unreachable", []schema.Request{
			{Purpose: schema.ForRobots, Start: 1000 * ms, DelayMS: 2000, Status: 503, Epoch: 1},
			{Purpose: schema.ForRobots, Start: 31_000 * ms, DelayMS: 4000, Status: 503, Epoch: 1},
		}, "it answered 429 or 503 to 2 of its requests", []Time{{onLimited, 26_000}, {OnDelay, 4000}}},
		"errors": {"none", []schema.Request{
			{Purpose: schema.ForRobots, Start: 1000 * ms, DelayMS: 2000, Status: 404, Epoch: 1},
			{Purpose: schema.ForPage, Start: 3500 * ms, DelayMS: 2000, Status: 500, Epoch: 1},
			{Purpose: schema.ForPage, Start: 16_500 * ms, DelayMS: 2000, Epoch: 1},
			{Purpose: schema.ForPage, Start: 33_500 * ms, DelayMS: 2000, Status: 200, Epoch: 1},
		}, "", []Time{{onNoAnswer, 15_000}, {onServer, 11_000}, {OnDelay, 6000}, {onOther, 500}}},
		"slow answers": {"none", []schema.Request{
			{Purpose: schema.ForRobots, Start: 1000 * ms, DelayMS: 2000, Status: 404, TotalMS: 3000, Epoch: 1},
			{Purpose: schema.ForPage, Start: 9000 * ms, DelayMS: 8000, Status: 200, TotalMS: 5000, Epoch: 1},
		}, "it answers slowly, after 4s on average", []Time{{OnDelay, 8000}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, p, sealed, attempts := finished(t, c.robots, c.requests)
			got, err := Of(t.Context(), b, p, sealed, attempts, nil)
			if err != nil || got == nil || got.Host == nil {
				t.Fatalf("%+v, %v", got, err)
			}
			if got.Partition != 1 || got.FetchHours != 3 || got.PredictedHours != 1 {
				t.Errorf("the round: %+v", got)
			}
			h := got.Host
			if h.Host != "last.test" || h.URLs != 3 || h.Requests != int64(len(c.requests)) || h.First != 1000 || h.Cause != c.cause || h.Unreachable != (c.robots == "unreachable") {
				t.Errorf("the host: %+v", h)
			}
			if d := cmp.Diff(c.spent, h.Spent); d != "" {
				t.Error(d)
			}
			var sum int64
			for _, s := range h.Spent {
				sum += s.MS
			}
			if sum != h.Last-h.First {
				t.Errorf("the parts add up to %d ms, not %d", sum, h.Last-h.First)
			}
		})
	}
}

// A pause by people, and a process that was killed, take time of the round. Neither is the host's fault.
func TestPausesAndKilledAttemptsAreNamedWithTheirTimes(t *testing.T) {
	b, p, sealed, attempts := finished(t, "none", []schema.Request{
		{Purpose: schema.ForRobots, Start: 1000 * ms, DelayMS: 2000, Status: 404, Epoch: 1},
		{Purpose: schema.ForPage, Start: 63_000 * ms, DelayMS: 2000, Status: 200, Epoch: 2},  // after a kill
		{Purpose: schema.ForPage, Start: 165_000 * ms, DelayMS: 2000, Status: 200, Epoch: 3}, // after a pause of 80 s
		{Purpose: schema.ForPage, Start: 200_000 * ms, DelayMS: 2000, Status: 200, Epoch: 4}, // after a kill that left no epoch
	})
	tabletest.Write(t, b, stages.FileStages, publish.AccountKey(p, stages.FileStages), []schema.StageAttempt{
		{Stage: "fetch", Task: 0, Outcome: "killed", BeganAt: 1 * ms, EndedAt: 900_000 * ms},
		{Stage: "fetch", Task: 1, Outcome: "killed", BeganAt: 500 * ms}, // it left no record of its end, and its epoch is unknown
		{Stage: "fetch", Task: 1, Outcome: "interrupted", BeganAt: 61_000 * ms, EndedAt: 75_000 * ms, Epoch: new(int32(2))},
		{Stage: "fetch", Task: 1, Outcome: "killed", BeganAt: 180_000 * ms},
		{Stage: "fetch", Task: 1, Outcome: "done", BeganAt: 199_000 * ms, EndedAt: 210_000 * ms, Epoch: new(int32(4))},
		{Stage: "merge", Task: 1, Outcome: "killed", BeganAt: 220_000 * ms},
	})
	got, err := Of(t.Context(), b, p, sealed, attempts, []ledger.Pause{
		{Since: "1970-01-01T00:01:10Z", Ended: "1970-01-01T00:02:30Z"},
		{Since: "1970-01-01T01:00:00Z"}, // after the round
	})
	if err != nil || got == nil || got.Host == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.PausedMS != 80_000 || got.Killed != 3 {
		t.Errorf("the round: %+v", got)
	}
	if d := cmp.Diff([]Time{{onLost, 500}}, got.Host.Before); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Time{{onKilled, 93_000}, {onPause, 80_000}, {onAttempts, 20_000}, {OnDelay, 6000}}, got.Host.Spent); d != "" {
		t.Error(d)
	}
}

// Fetch tasks notice a pause within ten seconds. A shorter one, or one just before the end of the round, may
// have stopped no request.
func TestAPauseThatNoTaskNoticedIsNotCounted(t *testing.T) {
	b, p, sealed, attempts := finished(t, "none", []schema.Request{
		{Purpose: schema.ForRobots, Start: 1000 * ms, DelayMS: 2000, Status: 404, Epoch: 1},
		{Purpose: schema.ForPage, Start: 9000 * ms, DelayMS: 2000, Status: 200, Epoch: 1},
		{Purpose: schema.ForPage, Start: 29_000 * ms, DelayMS: 2000, Status: 200, Epoch: 2}, // the task noticed this pause, though it was short
		{Purpose: schema.ForPage, Start: 39_000 * ms, DelayMS: 2000, Status: 200, Epoch: 2},
	})
	tabletest.Write(t, b, stages.FileStages, publish.AccountKey(p, stages.FileStages), []schema.StageAttempt{
		{Stage: "fetch", Task: 1, Outcome: "done", BeganAt: 100 * ms, EndedAt: 41_000 * ms, Epoch: new(int32(2))},
	})
	pauses := []ledger.Pause{
		{Since: "1970-01-01T00:00:00.2Z", Ended: "1970-01-01T00:00:00.7Z"},
		{Since: "1970-01-01T00:00:02Z", Ended: "1970-01-01T00:00:06Z"},
		{Since: "1970-01-01T00:00:10Z", Ended: "1970-01-01T00:00:18Z"},
		{Since: "1970-01-01T00:00:33Z"},
	}
	got, err := Of(t.Context(), b, p, sealed, attempts, pauses)
	if err != nil || got == nil || got.Host == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := cmp.Diff([]Time{{onTurn, 900}}, got.Host.Before); got.PausedMS != 0 || Paused(pauses, 100*ms, 41_000*ms) != 0 || d != "" {
		t.Errorf("the round: %+v, %s", got, d)
	}
	if d := cmp.Diff([]Time{{onOther, 14_000}, {onAttempts, 10_000}, {onPause, 8000}, {OnDelay, 6000}}, got.Host.Spent); d != "" {
		t.Error(d)
	}
}

// What was deleted or damaged must not hide the rest of the status.
func TestALostTableMakesTheLengthUnknown(t *testing.T) {
	b, p, sealed, attempts := finished(t, "rules", []schema.Request{{Purpose: schema.ForRobots, Start: 1000 * ms, Status: 200}})
	if err := b.Delete(t.Context(), "requests"); err != nil {
		t.Fatal(err)
	}
	if got, err := Of(t.Context(), b, p, sealed, attempts, nil); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// The record of the begin of the only attempt is lost, so nobody knows how much of the fetch a pause covers.
func TestAPauseOfARoundWithoutABeginIsNotCounted(t *testing.T) {
	b, p, sealed, attempts := finished(t, "none", []schema.Request{{Purpose: schema.ForRobots, Start: 1000 * ms, Status: 404}})
	tabletest.Write(t, b, stages.FileStages, publish.AccountKey(p, stages.FileStages), []schema.StageAttempt{{Stage: "fetch", Task: 1, Outcome: "killed", EndedAt: 41_000 * ms}})
	got, err := Of(t.Context(), b, p, sealed, attempts, []ledger.Pause{{Since: "1970-01-01T00:00:02Z"}})
	if err != nil || got == nil || got.PausedMS != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
