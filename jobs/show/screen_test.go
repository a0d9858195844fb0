package show

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// runningStatus is the status of a crawl whose two processes report. minutes is the age of the crawl.
func runningStatus(began time.Time, minutes int64) *jobs.Status {
	at := began.Add(time.Duration(minutes) * time.Minute)
	task := func(n int, wait *manifest.Wait) jobs.FetchStatus {
		a := &manifest.Activity{
			At: at.UnixMilli(), Delayed: 3, RemainingMS: 600_000, Left: 1000 - 60*minutes, Bytes: 600_000 * minutes, ElapsedMS: 60_000 * minutes, Machine: fmt.Sprintf("pod-%d", n),
			Failures: []manifest.Failure{{Class: "timeout", N: 3, Host: "slow.test", Text: "no answer in 15s", At: at.UnixMilli()}},
		}
		if wait != nil {
			a.Waits = []manifest.Wait{*wait}
		}
		return jobs.FetchStatus{Partition: n, Planned: 1000, Done: 60 * minutes, Epoch: 1, Activity: a}
	}
	fetch := jobs.StageStatus{Stage: stages.Fetch, Tasks: 4, Done: 1, Recorded: 1000, Running: 2, Fetching: []jobs.FetchStatus{
		task(1, nil),
		task(2, &manifest.Wait{Host: strings.Repeat("long.", 30) + "test", Why: "a page answered 429 with Retry-After, asked again", Until: at.Add(time.Minute).UnixMilli(), URLs: 12}),
	}}
	merge := jobs.StageStatus{Stage: stages.Merge, Tasks: 4, Failed: []jobs.TaskStatus{{Task: "merge@2026-11.0:3", Attempts: 2, Class: "disk_full", Error: "no room", Rerun: "crawlbatch retry"}}}
	return &jobs.Status{Crawl: "2026-11", Rounds: []jobs.RoundStatus{{
		State: "running", StartedAt: began.Format(time.RFC3339), URLs: 4000, Partitions: 4, Hours: 0.25, PodHours: 1, Stages: []jobs.StageStatus{fetch, merge},
	}}}
}

func TestTheScreenOfAStatusSaysWhyItIsSlow(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	var m Meter
	m.Screen(runningStatus(began, 5), began.Add(5*time.Minute))
	now := began.Add(6 * time.Minute)
	s := m.Screen(runningStatus(began, 6), now)
	// Each task records 60 URLs and 600,000 bytes a minute. The partition that nobody has taken is
	// predicted to take 15 minutes: two lanes need (10 + 10 + 15) / 2 minutes.
	if s.Done != 1000+2*360 || s.Now == nil || s.Now.URLs != 2 || s.Now.Bytes != 20_000 || s.Average.URLs != 2 || s.LeftMS != 17*60_000+30_000 || s.PredictedMS != 30*60_000 {
		t.Errorf("%+v, %+v, %+v", s, s.Now, s.Average)
	}
	got := strings.Join(s.lines(mostDetail, 99, now), "\n")
	for _, want := range []string{
		"fetch@2026-11.0: [========------------] 1,720 of 4,000 URLs (43%)\n",
		"  6m0s so far, about 18 min left, until 14:23, predicted 30m0s in all\n",
		"    2.0 URLs/s   20 kB/s now,   2.0 URLs/s   20 kB/s on average\n",
		"  tasks: fetch 1/4, merge 0/4\n",
		"  6 hosts between two requests\n",
		"…: a page answered 429 with Retry-After, asked again at 14:07:00, in 1m0s (12 URLs)\n",
		"  failed requests: timeout 6; last at 14:06:00, slow.test: no answer in 15s\n",
		"  partition 1 on pod-1: 360 of 1,000 URLs, about 10 min left, 3 hosts between two requests",
		"  merge@2026-11.0:3 failed 2 times (disk_full): no room\n",
		"  rerun: `crawlbatch retry`\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A partition whose hosts all wait names the first.
func TestAWorkerThatOnlyWaitsNamesTheHost(t *testing.T) {
	s := runningStatus(time.Now(), 5)
	s.Rounds[0].Stages[0].Fetching[1].Activity.Delayed = 0
	var m Meter
	if got := strings.Join(m.Screen(s, time.Now()).lines(mostDetail, 120, time.Now()), "\n"); !strings.Contains(got, "partition 2 on pod-2: 300 of 1,000 URLs, about 15 min left, waits for long.long.") {
		t.Error(got)
	}
}

func TestTheScreenSaysWhatTheAbsenceOfNewsMeans(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for want, change := range map[string]func(*jobs.RoundStatus){
		"1 partition without news": func(r *jobs.RoundStatus) { r.Stages[0].Fetching[0].Activity = nil },
		"no process fetches now":   func(r *jobs.RoundStatus) { r.Stages[0].Fetching = nil },
		"`run` begins it":          func(r *jobs.RoundStatus) { r.State = "planned" },
		"of 4 tasks": func(r *jobs.RoundStatus) { // the reduce stages make no reports
			r.Stages[0].Done, r.Stages[0].Fetching = 4, nil
		},
		"round 0 of 2026-11: sealed": func(r *jobs.RoundStatus) { r.State = "sealed" },
	} {
		s := runningStatus(began, 5)
		change(&s.Rounds[0])
		var m Meter
		if got := strings.Join(m.Screen(s, began.Add(5*time.Minute)).lines(mostDetail, 99, began), "\n"); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	var m Meter
	if got := strings.Join(m.Screen(runningStatus(began, 5), began.Add(25*time.Minute)).lines(mostDetail, 99, began), "\n"); strings.Contains(got, "URLs/s") || !strings.Contains(got, "no news for 20m0s, though a report is due every minute: the processes may have died") {
		t.Errorf("a crawl that died: %s", got)
	}
}

// The processes of a paused crawl hold no partitions. They may wait, so the screen does not call for another.
func TestTheScreenAndTheStatusOfAPausedCrawl(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for _, state := range []string{"running", "planned"} {
		s := runningStatus(began, 5)
		s.Rounds[0].State = state
		s.Paused = &ledger.Pause{By: "a@b", Since: "2026-11-22T14:00:00Z", Continue: "crawlbatch continue --month 2026-11"}
		for i := range s.Rounds[0].Stages[0].Fetching {
			s.Rounds[0].Stages[0].Fetching[i].Released = true
		}
		var m Meter
		screen := m.Screen(s, began.Add(5*time.Minute))
		if got := strings.Join(screen.lines(0, 99, began), "\n"); !strings.Contains(got, "paused since 2026-11-22T14:00:00Z by a@b: continue with") || strings.Contains(got, "`run`") {
			t.Errorf("%s: %s", state, got)
		}
		if screen.Activity != nil {
			t.Errorf("%s: an activity of nobody: %+v", state, screen.Activity)
		}
		var out bytes.Buffer
		if err := Status(&out, s, began.Add(5*time.Minute), 99); err != nil || strings.Count(out.String(), "paused since") != 1 || strings.Contains(out.String(), "`run`") {
			t.Errorf("%s: %v, %s", state, err, out.String())
		}
	}
}

// An attempt that has just begun has written no checkpoint of its own. Then only the listed outcomes count.
func TestAScreenBeforeTheFirstCheckpoint(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	s := runningStatus(began, 5)
	for i := range s.Rounds[0].Stages[0].Fetching {
		f := &s.Rounds[0].Stages[0].Fetching[i]
		f.Recorded, f.Done, f.Activity.Left, f.Activity.Bytes, f.Activity.ElapsedMS, f.Activity.Machine = 100, 100, 0, 0, 0, ""
	}
	s.Rounds[0].Stages[0].Recorded = 1200
	var m Meter
	got := m.Screen(s, began.Add(5*time.Minute))
	if got.Done != 1200 || got.Average != nil || got.Now != nil {
		t.Errorf("%+v", got)
	}
}

func TestTheScreenFitsEveryTerminal(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for _, size := range [][2]int{{200, 60}, {120, 30}, {80, 24}, {60, 15}, {40, 10}, {40, 6}, {20, 5}, {8, 3}} {
		var out bytes.Buffer
		b := &Block{W: &out, Size: func() (int, int) { return size[0], size[1] }}
		var m Meter
		if err := b.Draw(nil, m.Screen(runningStatus(began, 5), began).fitted(b, began)); err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, row := range rows {
			if cells(row) >= size[0] {
				t.Errorf("%v: %d cells: %q", size, cells(row), row)
			}
		}
		if len(rows) >= size[1] {
			t.Errorf("%v: %d rows", size, len(rows))
		}
		if text := out.String(); size[0] >= 40 && size[1] >= 10 && (!strings.Contains(text, "1,600 of 4,000 URLs") || !strings.Contains(text, "left")) {
			t.Errorf("%v:\n%s", size, text)
		}
	}
}

// Only the rows that changed are written, in one write. An unchanged block writes nothing.
func TestAFrameWritesOnlyTheRowsThatChanged(t *testing.T) {
	var writes writeLog
	away := false
	b := &Block{W: &writes, Size: func() (int, int) { return 80, 24 }, Away: func() bool { return away }}
	for _, step := range []struct {
		rows []string
		away bool
		want string
	}{
		{[]string{"one", "two", "three"}, false, "one\ntwo\nthree\n"},
		{[]string{"one", "two", "three"}, false, ""},
		{[]string{"one", "2", "three"}, false, "\r\x1b[2A2\x1b[K\n\n"},
		{[]string{"1", "2", "3"}, false, "\r\x1b[3A1\x1b[K\n\r\n3\x1b[K\n"},
		{[]string{"1", "2"}, false, "\r\x1b[3A\x1b[J1\n2\n"},
		{[]string{"1", "zwei"}, true, ""},           // after Ctrl-Z, the shell has the terminal
		{[]string{"1", "zwei"}, false, "1\nzwei\n"}, // after `fg`, the block is drawn below what the shell wrote
	} {
		writes, away = nil, step.away
		if err := b.Draw(nil, step.rows); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(writes, "|"); got != step.want {
			t.Errorf("%q wrote %q, want %q", step.rows, got, step.want)
		}
	}
}

type writeLog []string

func (w *writeLog) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestAStatusAsJSONHasTheFactsOfTheScreen(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	var m Meter
	for minutes := range int64(2) {
		if err := StatusJSON(&out, runningStatus(began, 1+minutes), &m, began.Add(time.Minute), true); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	var doc struct {
		Crawl string
		Live  struct {
			Done     int64
			Now      Rate
			Activity manifest.Activity
			Workers  []Worker
		}
	}
	if err := json.Unmarshal([]byte(lines[1]), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Crawl != "2026-11" || doc.Live.Done != 1240 || doc.Live.Now.URLs != 2 || len(doc.Live.Activity.Waits) != 1 || doc.Live.Workers[1].Machine != "pod-2" {
		t.Errorf("%+v", doc)
	}
}

// movedClock is a clock whose Sleep moves the time, and that ends after some time.
type movedClock struct {
	now time.Time
	end time.Time
}

func (c *movedClock) Now() time.Time { return c.now }
func (c *movedClock) Sleep(_ context.Context, d time.Duration) error {
	if c.now = c.now.Add(d); c.now.After(c.end) {
		return context.Canceled
	}
	return nil
}

// `status --watch` reads at each interval, and draws once a second, because waits come to their end.
func TestWatchStatusReadsAtItsIntervalOnly(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	clock := &movedClock{began.Add(5 * time.Minute), began.Add(5*time.Minute + 19*time.Second)}
	reads := 0
	var writes writeLog
	err := WatchStatus(t.Context(), &writes, clock, 5*time.Second, func(context.Context) (*jobs.Status, error) {
		reads++
		return runningStatus(began, 5), nil
	})
	if err != nil || reads != 4 || len(writes) != 20 {
		t.Errorf("%v, %d reads, %d frames", err, reads, len(writes))
	}
}

// After Ctrl-Z and `fg`, the block is not drawn over what the shell wrote.
func TestAProcessThatIsContinuedDrawsBelow(t *testing.T) {
	was := away(nil)
	if was() {
		t.Fatal("it was not stopped")
	}
	if err := unix.Kill(unix.Getpid(), unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !was(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it does not notice that it was continued")
		}
	}
	if was() {
		t.Error("it notices that twice")
	}
}

// With --log-format json, each line about the stage has the facts of the screen.
func TestALineOfAJSONLogHasTheFactsOfTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		p := New(t.Context(), Options{Err: &out, Clock: stages.SystemClock{}, Log: slog.New(slog.NewJSONHandler(&out, nil)), Structured: true, FetchTasks: 1})
		defer p.Close()
		begin(p, planOf(100))
		defer p.Watch(fetchTask(0), func() stages.Activity {
			return stages.Activity{Left: 40, Remaining: time.Minute, Waits: []stages.Wait{{Host: "h.test", Why: "answered 429, asked again", Until: time.Now().Add(time.Minute), URLs: 3}}}
		})()
		p.Add(stages.CountURLs, 60)
		p.Add(stages.CountBytes, 120_000)
		out.take()
		time.Sleep(61 * time.Second)
		var line struct{ Live Screen }
		for dec := json.NewDecoder(strings.NewReader(out.take())); dec.More(); {
			if err := dec.Decode(&line); err != nil {
				t.Fatal(err)
			}
		}
		s := line.Live
		if s.Done != 60 || s.Of != 100 || s.Average == nil || s.Average.URLs < 0.9 || s.Average.URLs > 1.1 || s.Average.Bytes < 1900 || s.LeftMS != 60_000 || s.PredictedMS != 60_000 ||
			len(s.Activity.Waits) != 1 || len(s.Workers) != 1 || s.Workers[0].Done != 60 {
			t.Errorf("%+v", s)
		}
	})
}

// Until the first report, a status says when, where and by when.
func TestAnAttemptWithoutAReportSaysWhenItBegan(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for age, want := range map[time.Duration]string{
		2 * time.Second:  "partition 1 was taken 2s ago on pod-1; its first report is due in 3s",
		20 * time.Second: "partition 1 was taken 20s ago on pod-1; its first report is due now: first it loads its URLs",
		6 * time.Minute:  "partition 1 was taken 6m0s ago on pod-1; its first report is 5m55s late: it loads many URLs, or it died; then `run` continues",
	} {
		s := runningStatus(began, 5)
		f := &s.Rounds[0].Stages[0].Fetching[0]
		f.Activity = &manifest.Activity{At: began.UnixMilli(), Began: began.UnixMilli(), Machine: "pod-1"}
		var m Meter
		if got := strings.Join(m.Screen(s, began.Add(age)).lines(mostDetail, 200, began), "\n"); !strings.Contains(got, "1 partition without news: "+want) {
			t.Errorf("%s: no %q in\n%s", age, want, got)
		}
		var out bytes.Buffer
		if err := Status(&out, s, began.Add(age), 200); err != nil || !strings.Contains(out.String(), "    "+strings.TrimPrefix(want, "partition 1 was ")+"\n") {
			t.Errorf("%s: %v\n%s", age, err, out.String())
		}
	}
}

// A robots.txt that may go on failing makes the end uncertain. Both ends are shown, and how to stop its host.
func TestTheEndIsARangeWhileARobotsTxtFails(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	now := began.Add(5 * time.Minute)
	s := runningStatus(began, 5)
	f := &s.Rounds[0].Stages[0].Fetching[1]
	f.Activity.Latest = &manifest.Wait{Host: "bad.test", Why: "answered 503", Until: now.Add(40 * time.Minute).UnixMilli()}
	f.GiveUp, f.Stops = "crawlbatch retry --give-up", []jobs.HostStop{{Host: "bad.test", Command: "crawlbatch host bad.test --stop"}}
	other := &s.Rounds[0].Stages[0].Fetching[0] // it ends earlier, so nothing is gained by ending it
	other.GiveUp, other.Stops = "crawlbatch retry --give-up --partition 1", []jobs.HostStop{{Host: "other.test", Command: "crawlbatch host other.test --stop"}}
	var m Meter
	screen := m.Screen(s, now)
	if screen.MostLeftMS != 40*60_000 || screen.Activity.Latest == nil {
		t.Errorf("%+v", screen)
	}
	for _, want := range []string{
		"ends between 14:22 and 14:45, the later if the robots.txt of bad.test goes on failing (it answered 503)",
		"between 10 min and 40 min left, the longer if the robots.txt of bad.test goes on failing (it answered 503)\n",
		"not to wait for bad.test: `crawlbatch host bad.test --stop`; its URLs without an outcome end as stopped, other hosts go on\n",
		"to end all of partition 2: stop `run`, then `crawlbatch retry --give-up`, which defers its 700 URLs left\n",
	} {
		var out bytes.Buffer
		if err := Status(&out, s, now, 300); err != nil || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "other.test") {
			t.Errorf("%v: no %q, or advice about the other partition, in\n%s", err, want, out.String())
		}
	}
	f.Activity.Latest.Until = now.Add(18 * time.Minute).UnixMilli() // hardly later than the predicted end
	if screen := m.Screen(s, now); screen.MostLeftMS != 0 || strings.Contains(screen.times(now), "between") {
		t.Errorf("%+v: %s", screen, screen.times(now))
	}
}

// The numbers of a round are of the same instant and add up, whatever the checkpoints list.
func TestTheNumbersOfAnUnfinishedRoundAddUp(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	s := runningStatus(began, 5)
	s.Rounds[0].Stages[0].Counts = []manifest.Count{{Name: "outcome.ok", N: 1000}}
	var out bytes.Buffer
	if err := Status(&out, s, began.Add(5*time.Minute), 200); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		": 1,600 of 4,000 URLs (40%)\n", "fetch: 4,000 URLs planned = 1,600 done + 2,400 left, by the last reports\n",
		"  of the 1,600 done, a crash keeps the 1,000 in checkpoints: ok 1,000\n", "  partition 1: 1,000 URLs = 300 done + 700 left, ",
		"5m0s of its window\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
