package show

import (
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/longest"
	"crawlbatch.io/crawlbatch/stages"
)

// someStatus is a status with a value in every part.
func someStatus(now time.Time) *jobs.Status {
	fetch := jobs.StageStatus{
		Stage: stages.Fetch, Tasks: 23, Done: 1, Running: 1, Recorded: 12345,
		Counts: []manifest.Count{{Name: "outcome.ok", N: 2000}, {Name: "pages", N: 1990}},
		Usage:  manifest.Usage{WallMS: 361_061_000, Puts: 712_345, Gets: 8, Lists: 1, BytesWritten: 2_500_000, BytesRead: 999},
		Fetching: []jobs.FetchStatus{
			{Partition: 0, Planned: 50000, Recorded: 10345, Done: 11000, Epoch: 3, ElapsedMS: 61_200, GiveUp: "crawlbatch retry --month 2026-11 --give-up --partition 0", Stops: []jobs.HostStop{{Host: "h.test", URLs: 12, Command: `crawlbatch host h.test --month 2026-11 --stop "REASON"`}}, Outcomes: []manifest.Count{{Name: "ok", N: 10000}, {Name: "timeout", N: 345}}, Activity: &manifest.Activity{
				At: now.Add(-30 * time.Second).UnixMilli(), InFlight: 3, Ready: 1, Delayed: 40, More: 7, RemainingMS: 1_230_000,
				Waits:    []manifest.Wait{{Host: "h.test", Why: "robots.txt answered 503, asked again", Until: now.Add(112 * time.Second).UnixMilli(), URLs: 12}},
				Failures: []manifest.Failure{{Class: "timeout", N: 345, Host: "i.test", Text: "no answer\x1b[2J in 15s", At: now.Add(-time.Hour).UnixMilli()}},
			}},
			{Partition: 2, Planned: 2000, Recorded: 2000, Done: 2000, Epoch: 1, Released: true, Complete: true},
		},
	}
	for n := range 20 {
		fetch.Fetching = append(fetch.Fetching, jobs.FetchStatus{Partition: 3 + n, Planned: 10, Epoch: 1, Released: true})
	}
	merge := jobs.StageStatus{Stage: stages.Merge, Tasks: 23, Failed: []jobs.TaskStatus{{
		Task: "merge@2026-11.0:3", Attempts: 2, Class: "disk_full", Error: "no room left on the device at all", Rerun: "crawlbatch retry --month 2026-11 --stage merge --partition 3",
	}}}
	return &jobs.Status{Crawl: "2026-11", Store: "./crawl-data", Rounds: []jobs.RoundStatus{
		{State: "running", URLs: 1_050_000, Partitions: 23, Plan: "9fce3a81ab1c2d3e", Stages: []jobs.StageStatus{fetch, merge}},
	}}
}

func TestStatusSaysWhatIsWaitedForIn80Columns(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 1, 18, 0, time.Local)
	var out strings.Builder
	if err := Status(&out, someStatus(now), now, 80); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"round 0: running, 1,050,000 URLs in 23 partitions, plan 9fce3a81ab1c2d3e",
		"  stage tasks done running failed  PUT GET LIST written read    time",
		"  fetch    23    1       1      0 712k   8    1   2.5MB  999 100h17m",
		"  merge    23    0              1    0   0    0       0    0      0s",
		"fetch: 1,050,000 URLs planned = 13,000 done + 1,037,000 left, by the last",
		"  of the 13,000 done, a crash keeps the 12,345 in checkpoints: ok 12,000,",
		"  partition 0: 50,000 URLs = 11,000 done + 39,000 left, epoch 3, held, 1m1s of",
		"    as of 14:00:48, 3 requests in flight, 1 host due, 40 hosts between two",
		"      waits for h.test: robots.txt answered 503, asked again at 14:03:10, in",
		"        1m52s (12 URLs)",
		"      waits for 7 hosts more",
		"  not to wait for h.test:",
		"    `crawlbatch host h.test --month 2026-11 --stop \"REASON\"`; its 12 URLs left",
		"  to end all of partition 0: stop `run`, then",
		"    `crawlbatch retry --month 2026-11 --give-up --partition 0`, which defers its",
		"      failed requests: timeout 345; last at 13:01, i.test: no answer\\u001b[2J in",
		"  partition 2: 2,000 URLs = 2,000 done + 0 left, epoch 1, complete, result",
		"  and 2 more: -o json lists all",
		"merge@2026-11.0:3 failed 2 times, last (disk_full): no room left on the device",
		"  rerun: crawlbatch retry --month 2026-11 --stage merge --partition 3",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}
}

func TestStatusFitsTheTerminal(t *testing.T) {
	now := time.Now()
	for _, width := range []int{120, 80, 79, 40} {
		var out strings.Builder
		if err := Status(&out, someStatus(now), now, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); cells(line) > width && !strings.Contains(line, "rerun: ") && !strings.Contains(line, "`") {
				t.Errorf("%d cells in %d columns: %q", cells(line), width, line)
			}
		}
	}
}

func TestTheEndOfTheWindowIsSaidWhereItEndsTheFetching(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for _, c := range []struct {
		rest, closes time.Duration
		want         string
	}{
		{time.Hour, time.Hour, "the window closes at 15:00 and the rest is deferred"},
		{time.Hour, 20 * time.Hour, ""},
		{time.Hour, 0, ""},
	} {
		a := stages.Activity{Remaining: c.rest}
		if c.closes > 0 {
			a.Closes = now.Add(c.closes)
		}
		if got := closing(merge([]stages.Activity{{}, a}), now); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.rest, c.closes, got, c.want)
		}
	}
}

func TestFoldKeepsCommandsAndWordsWhole(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 10, "short"},
		{"one two three", 8, "one two|  three"},
		{"  one two three", 10, "  one two|    three"},
		{"go on with `a long command` now", 12, "go on with|  `a long command`|  now"},
		{"see https://example.org/a/long/path now", 12, "see|  https://example.org/a/long/path|  now"},
		{"as wide", 7, "as wide"},
		{"日本語 日本語", 8, "日本語|  日本語"},
		{"no  terminal", 0, "no  terminal"},
	} {
		if got := strings.Join(Fold(c.text, c.width), "|"); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestThousandsAreSetApart(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -123: "-123", -1234: "-1,234"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestAFinishedRoundSaysWhatDecidedItsLength(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	s := &jobs.Status{Crawl: "2026-11", Rounds: []jobs.RoundStatus{{State: "sealed", URLs: 5, Longest: &longest.Round{
		FetchHours: 3, PredictedHours: 1, PausedMS: 1_200_000, Killed: 2, Partition: 7, Host: &longest.Host{
			Host: "bad.test", URLs: 5, Requests: 6, First: now.Add(-3 * time.Hour).UnixMilli(), Last: now.UnixMilli(), DelayMS: 32_000, Cause: "Crawl-delay", Unreachable: true,
			Before: []longest.Time{{On: "killed attempts", MS: 3_600_000}, {On: "a pause by people", MS: 1000}},
			Spent:  []longest.Time{{On: "pauses", MS: 9_000_000}, {On: longest.OnDelay, MS: 1_790_000}, {On: "other", MS: 10_000}},
		},
	}}}}
	var out strings.Builder
	if err := Status(&out, s, now, 200); err != nil {
		t.Fatal(err)
	}
	want := `  fetched for 3h0m, predicted 1h0m (3.0 times as long), paused by people for 20m0s
  killed while they fetched: 2 attempts, whose requests after the last checkpoint are in no table
  the last host to end was bad.test in partition 7: 5 URLs and 6 requests in 3h0m, from 11:00 to 14:00:00
    before, 1h0m killed attempts
    2h30m pauses
    29m50s the delay between two requests, up to 32s (Crawl-delay)
    its robots.txt could not be fetched, so its URLs ended without a request
`
	if !strings.Contains(out.String(), want) {
		t.Errorf("no\n%s\nin\n%s", want, out.String())
	}
}

// All tasks of a process wait for the same network.
func TestAWaitOfAllTasksIsSaidOnce(t *testing.T) {
	away := stages.Wait{Why: "this machine has no network", Until: time.Unix(1_800_000_000, 0)}
	host := stages.Wait{Host: "h.test", Why: "answered 429, asked again", Until: away.Until}
	got := merge([]stages.Activity{{Waits: []stages.Wait{away, host}}, {Waits: []stages.Wait{away}}, {Waits: []stages.Wait{{Why: "the store does not answer"}}}})
	if len(got.Waits) != 3 {
		t.Errorf("%+v", got.Waits)
	}
}
