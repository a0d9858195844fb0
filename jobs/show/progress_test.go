package show

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// syncBuffer collects the output of several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// take returns the output since the last call.
func (s *syncBuffer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.buf.Reset()
	return s.buf.String()
}

func planOf(urls ...int64) *manifest.Plan {
	p := &manifest.Plan{Crawl: "2026-11"}
	for _, n := range urls {
		p.Partitions = append(p.Partitions, manifest.PlanPartition{URLs: n, EstimatedSeconds: 60})
		p.URLs += n
	}
	return p
}

func fetchTask(n int) stages.Task {
	return stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Partition: n}
}

// begin starts a fetch stage with no finished task.
func begin(p *Progress, plan *manifest.Plan) {
	s := jobs.StageStart{Plan: plan, Stage: stages.Fetch, Tasks: len(plan.Partitions), URLs: plan.URLs}
	for n := range plan.Partitions {
		s.Missing = append(s.Missing, fetchTask(n))
	}
	p.StageStarted(s)
}

func TestAWaitIsSaidWithItsReasonWhenItBeginsAndOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		p := New(t.Context(), Options{Err: &out, Clock: stages.SystemClock{}, FetchTasks: 4, Advice: func(task stages.Task, hosts []string) string {
			return "give up " + task.String() + " or stop " + strings.Join(hosts, "+")
		}})
		defer p.Close()
		begin(p, planOf(10))
		if got := out.take(); got != "fetch@2026-11.0: 10 URLs in 1 partition\n" {
			t.Errorf("at first the progress said %q", got)
		}
		var mu sync.Mutex
		now := stages.Activity{InFlight: 1}
		defer p.Watch(fetchTask(0), func() stages.Activity {
			mu.Lock()
			defer mu.Unlock()
			return now
		})()
		does := func(a stages.Activity) {
			mu.Lock()
			defer mu.Unlock()
			now = a
		}
		p.Add(stages.CountURLs, 6)
		time.Sleep(15 * time.Second)
		if got := out.take(); !strings.HasPrefix(got, "fetch@2026-11.0: 6 of 10 URLs") || strings.Contains(got, "waits") || strings.Count(got, "\n") != 1 {
			t.Errorf("while it went on it said %q", got)
		}
		until := time.Now().Add(8 * time.Minute)
		does(stages.Activity{Remaining: 8 * time.Minute, Waits: []stages.Wait{{Host: "h.test", Why: "robots.txt answered 503, asked again", Until: until, URLs: 4}}})
		time.Sleep(11 * time.Second)
		want := "about 8 min left; waits for h.test: robots.txt answered 503, asked again at " + until.Local().Format("15:04:05")
		if got := out.take(); !strings.Contains(got, want) || !strings.Contains(got, "(4 URLs)\n") || !strings.HasSuffix(got, "give up fetch@2026-11.0:0 or stop h.test\n") {
			t.Errorf("as the wait began it said %q, want %q", got, want)
		}
		time.Sleep(3 * time.Minute)
		if got := out.take(); strings.Count(got, "\n") != 3 || strings.Count(got, "waits for h.test") != 3 || strings.Contains(got, "give up") {
			t.Errorf("within three minutes with the same reason it said %q", got)
		}
		until = time.Now().Add(time.Minute)
		does(stages.Activity{Waits: []stages.Wait{{Host: "i.test", Why: "answered 429, asked again", Until: until}}})
		time.Sleep(11 * time.Second)
		if got := out.take(); !strings.Contains(got, "waits for i.test: answered 429, asked again at ") {
			t.Errorf("when the reason changed it said %q", got)
		}
	})
}

// The slowest partition decides when the stage ends. The display therefore shows the wait of this
// partition first, and the advice names this partition and the host for which it waits.
func TestOfSeveralPartitionsTheSlowestIsAdvisedWithItsOwnHost(t *testing.T) {
	for name, c := range map[string]struct {
		long stages.Wait
		want string // the expected advice
	}{
		"a host":    {stages.Wait{Host: "long.test", Why: "answered 429, asked again"}, "give up fetch@2026-11.0:1 or stop long.test\n"},
		"two hosts": {stages.Wait{Host: "long.test", Why: "answered 430, asked again"}, "give up fetch@2026-11.0:1 or stop long.test+too.test\n"},
		"the store": {stages.Wait{Why: "the store does not answer"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out syncBuffer
				p := New(t.Context(), Options{Err: &out, Clock: stages.SystemClock{}, FetchTasks: 2, Advice: func(task stages.Task, hosts []string) string {
					return "give up " + task.String() + " or stop " + strings.Join(hosts, "+")
				}})
				defer p.Close()
				begin(p, planOf(10, 10))
				short := stages.Wait{Host: "short.test", Why: "answered 503, asked again", Until: time.Now().Add(2 * time.Minute)}
				c.long.Until = time.Now().Add(3 * time.Hour)
				defer p.Watch(fetchTask(0), func() stages.Activity {
					return stages.Activity{Remaining: 2 * time.Minute, Waits: []stages.Wait{short, short, short}}
				})()
				defer p.Watch(fetchTask(1), func() stages.Activity {
					a := stages.Activity{Remaining: 3 * time.Hour, Waits: []stages.Wait{c.long}}
					if name == "two hosts" {
						a.Slowest = []stages.SlowHost{{Host: "long.test", Rest: 3 * time.Hour}, {Host: "too.test", Rest: 170 * time.Minute}, {Host: "short.test", Rest: time.Minute}}
					}
					return a
				})()
				out.take()
				time.Sleep(15 * time.Second)
				got := out.take()
				if i := strings.Index(got, c.long.Why); i < 0 || i > strings.Index(got, "short.test") {
					t.Errorf("the longest wait is not said first: %q", got)
				}
				if c.want == "" && strings.Contains(got, "give up") || !strings.HasSuffix(got, c.want) {
					t.Errorf("it said %q, want it to advise %q", got, c.want)
				}
			})
		})
	}
}

func TestAResumedStageStartsAtWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		p := New(t.Context(), Options{Err: &out, Clock: stages.SystemClock{}, FetchTasks: 1})
		defer p.Close()
		plan := planOf(100, 50)
		p.StageStarted(jobs.StageStart{Plan: plan, Stage: stages.Fetch, Tasks: 2, Missing: []stages.Task{fetchTask(1)}, URLs: 150, Recorded: 120})
		p.Add(stages.CountURLs, 5)
		pic, ok := p.look()
		if !ok || pic.done != 125 || pic.of != 150 {
			t.Errorf("it shows %d of %d", pic.done, pic.of)
		}
		p.Add(stages.CountURLs, 25)
		p.TaskDone(fetchTask(1), nil)
		p.StageDone(stages.Fetch, 0)
		want := "fetch@2026-11.0: 150 URLs in 2 partitions, 120 of them done\nfetch@2026-11.0: 150 URLs done in 0s, 120 of them before\n"
		if got := out.take(); got != want {
			t.Errorf("it said %q, want %q", got, want)
		}
	})
}

func TestTheRestIsPredictedFromWhatRunsAndFromWhatTasksTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context(), Options{Err: &syncBuffer{}, Clock: stages.SystemClock{}, FetchTasks: 2})
		defer p.Close()
		begin(p, planOf(1, 1, 1, 1))
		ends := p.Watch(fetchTask(0), func() stages.Activity { return stages.Activity{InFlight: 1, Remaining: 90 * time.Second} })
		also := p.Watch(fetchTask(1), func() stages.Activity { return stages.Activity{InFlight: 1, Remaining: 30 * time.Second} })
		synctest.Wait() // until the display's goroutine is idle, because it also calls p.look, which only one goroutine at a time may do
		// One lane needs 30 s + 60 s, the other lane needs 90 s + 60 s.
		if pic, _ := p.look(); pic.left != 150*time.Second {
			t.Errorf("predicted %s, want 2m30s", pic.left)
		}
		time.Sleep(2 * time.Minute) // the plan predicted one minute
		ends()
		p.TaskDone(fetchTask(0), nil)
		synctest.Wait()
		// One lane needs 30 s + 120 s, the other lane needs 120 s.
		if pic, _ := p.look(); pic.left != 150*time.Second {
			t.Errorf("predicted %s, want 2m30s", pic.left)
		}
		also()
	})
}

func TestProgressCountsTheURLsOfTasksThatRanElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		at := time.Now()
		p := New(t.Context(), Options{Err: &out, Clock: stages.SystemClock{}, Peek: func(_ context.Context, _ *manifest.Plan, tasks []stages.Task) ([]jobs.FetchStatus, error) {
			if len(tasks) != 1 {
				t.Errorf("it reads the checkpoints of %v", tasks)
			}
			return []jobs.FetchStatus{{Partition: 2, Planned: 11, Recorded: 4, Done: 4, Activity: &manifest.Activity{
				At: at.UnixMilli(), RemainingMS: 600_000,
				Waits: []manifest.Wait{{Host: "h.test", Why: "robots.txt answered 503, asked again", Until: at.Add(5 * time.Minute).UnixMilli()}},
			}}}, nil
		}})
		defer p.Close()
		begin(p, planOf(5, 7, 11))
		out.take()
		p.TaskDone(fetchTask(0), nil)
		p.TaskDone(fetchTask(1), nil)
		time.Sleep(2*time.Minute + time.Second)
		if got := out.take(); !strings.Contains(got, "16 of 23 URLs") || !strings.Contains(got, "waits for h.test: robots.txt answered 503, asked again at ") ||
			!strings.Contains(got, ", as of "+at.Local().Format("15:04:05")) {
			t.Errorf("it said %q", got)
		}
		p.TaskDone(fetchTask(2), nil)
		p.StageDone(stages.Fetch, 0)
		if got := out.take(); !strings.Contains(got, "fetch@2026-11.0: 23 URLs done in ") {
			t.Errorf("it said %q", got)
		}
	})
}

func TestProgressIsReadAsTheLogIs(t *testing.T) {
	var out syncBuffer
	p := New(t.Context(), Options{Err: &out, Clock: stages.SystemClock{}, Log: slog.New(slog.NewJSONHandler(&out, nil)), Structured: true})
	begin(p, planOf(1))
	p.TaskDone(fetchTask(0), errors.New("no disk"))
	p.Add(stages.CountURLs, 1)
	p.StageDone(stages.Fetch, 1)
	p.Close()
	var messages []string
	for dec := json.NewDecoder(strings.NewReader(out.take())); dec.More(); {
		var line struct{ Msg string }
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		line.Msg, _, _ = strings.Cut(line.Msg, " in 0s")
		messages = append(messages, line.Msg)
	}
	want := []string{"fetch@2026-11.0: 1 URL in 1 partition", "fetch@2026-11.0:0 failed: no disk", "fetch@2026-11.0: 1 URL done"}
	for i, w := range want {
		if i >= len(messages) || !strings.HasPrefix(messages[i], w) {
			t.Errorf("it said %q, want %q", messages, want)
			break
		}
	}
}

// stuck is a terminal that blocks all output, like a real terminal after Ctrl-S.
type stuck struct {
	asked chan struct{}
	never chan struct{}
}

func (s stuck) Write([]byte) (int, error) {
	s.asked <- struct{}{}
	<-s.never
	return 0, nil
}

func TestATerminalThatTakesNothingHoldsNothingUp(t *testing.T) {
	asked, never := make(chan struct{}, 10), make(chan struct{})
	defer close(never)
	// New would make a block only for a terminal, so the test makes the Progress itself.
	p := &Progress{
		Options: Options{Err: &syncBuffer{}, Clock: stages.SystemClock{}}, watched: map[int]*watchedTask{}, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		block: &Block{W: stuck{asked, never}, Size: func() (int, int) { return 80, 24 }},
	}
	p.end = func() {}
	go p.show(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		begin(p, planOf(5000))
		<-asked
		for range 5000 {
			p.Add(stages.CountURLs, 1)
			_, _ = p.Write([]byte("a line of the log\n"))
		}
		p.TaskDone(fetchTask(0), nil)
		p.StageDone(stages.Fetch, 0)
		p.Close()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("the run waits for the terminal")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) > maxLines || p.lost == 0 {
		t.Errorf("%d lines wait, %d were left out", len(p.lines), p.lost)
	}
}
