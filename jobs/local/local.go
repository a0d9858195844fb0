// Package local runs tasks in this process, several at a time.
//
// An Executor calls a Runner (jobs/worker), which makes one attempt at a task and stores the task's
// result. The Executor tries a failed task again after a growing pause, unless the error says that
// another try cannot help. While the store does not answer, tasks wait. A task that waits too long
// ends with stages.ErrInterrupted. The package imports stages and formats/store, and implements
// jobs.Executor.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// Runner runs one attempt at a task.
type Runner func(ctx context.Context, t stages.Task) error

// Executor runs tasks in this process.
type Executor struct {
	Try        Runner
	FetchTasks int           // number of fetch tasks that run at the same time
	Tasks      int           // number of other tasks that run at the same time
	Attempts   int           // largest number of attempts at a task
	Pause      time.Duration // pause before the second attempt at a task, doubled before each further attempt
	Patience   time.Duration // longest wait for a store that does not answer; zero means 30 minutes
	Clock      stages.Clock
	Log        *slog.Logger
	Watcher    stages.Watcher // shows the reasons for waits between attempts; may be nil
}

// Run implements jobs.Executor.
func (e *Executor) Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error {
	at := e.Tasks
	if len(tasks) > 0 && tasks[0].Stage == stages.Fetch {
		at = e.FetchTasks
	}
	queue := make(chan stages.Task)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var interrupted error       // the error of the first interrupted task; it tells why the others were interrupted
	away := make(chan struct{}) // closed if a task has waited too long for the store, a disk or the network: then no task begins
	giveUp := sync.OnceFunc(func() { close(away) })
	for range min(max(at, 1), len(tasks)) {
		wg.Go(func() {
			for t := range queue {
				err := e.tryTask(ctx, t)
				if errors.Is(err, stages.ErrInterrupted) {
					mu.Lock()
					if interrupted == nil {
						interrupted = err
					}
					mu.Unlock()
					if trouble(err) != "" || errors.Is(err, witness.ErrAway) {
						giveUp()
					}
					continue
				}
				done(t, err)
			}
		})
	}
feed:
	for _, t := range tasks {
		select {
		case <-away:
			break feed
		default:
		}
		select {
		case <-away:
			break feed
		case queue <- t:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	if interrupted == nil && ctx.Err() != nil {
		return stages.ErrInterrupted
	}
	return interrupted
}

// awayPause is the first pause after an attempt failed because a disk was full or the store did not
// answer. The pause doubles up to longestPause.
const (
	awayPause    = time.Second
	longestPause = 20 * time.Second
)

// trouble returns in words what is wrong if the store or this machine, and not the task itself, caused the
// error of an attempt. Otherwise it returns "".
func trouble(err error) string {
	is := func(causes ...error) bool {
		return slices.ContainsFunc(causes, func(c error) bool { return errors.Is(err, c) })
	}
	switch {
	case is(store.ErrUnavailable):
		return "the store does not answer"
	case is(store.ErrFull):
		return "the store is full"
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return "a disk is full"
	case is(syscall.EMFILE, syscall.ENFILE):
		return "there are too many open files: raise the limit (ulimit -n, fs.file-max)"
	}
	return ""
}

func (e *Executor) patience() time.Duration {
	if e.Patience > 0 {
		return e.Patience
	}
	return 30 * time.Minute
}

// tryTask tries a task up to e.Attempts times.
func (e *Executor) tryTask(ctx context.Context, t stages.Task) error {
	pause := e.Pause
	var away time.Time // when the current trouble began; zero if there is none
	waits := 0
	for attempt := 1; ; attempt++ {
		err := e.Try(ctx, t)
		wrong := trouble(err)
		troubled := wrong != ""
		if !troubled {
			away, waits = time.Time{}, 0
		}
		if err == nil || errors.Is(err, stages.ErrPermanent) || errors.Is(err, stages.ErrInterrupted) && !troubled {
			return err
		}
		if ctx.Err() != nil {
			return stages.ErrInterrupted
		}
		if troubled {
			now := e.Clock.Now()
			if away.IsZero() {
				away = now
			}
			if now.Sub(away) >= e.patience() {
				return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
			}
			attempt-- // this attempt does not count, because the store or the disk ended it
			wait := store.Backoff{Base: awayPause, Max: longestPause}.Delay(waits)
			waits++
			e.Log.Warn(wrong+"; the task waits", "task", t.String(), "error", err, "pause", wait)
			if e.wait(ctx, t, wrong+" ("+oneLine(err)+"), tried again", wait) != nil {
				return stages.ErrInterrupted
			}
			continue
		}
		if errors.Is(err, stages.ErrTaken) {
			// Another process has taken over the task. This is no failure of the attempt. The next
			// attempt waits for that process to end.
			attempt--
			e.Log.Info("another process has taken over the task; waiting for that process", "task", t.String())
			if e.Clock.Sleep(ctx, e.Pause) != nil {
				return stages.ErrInterrupted
			}
			continue
		}
		if attempt >= e.Attempts {
			return err
		}
		e.Log.Warn("task failed, trying again", "task", t.String(), "attempt", attempt, "error", err, "pause", pause)
		if e.wait(ctx, t, "failed ("+oneLine(err)+"), tried again", pause) != nil {
			return stages.ErrInterrupted
		}
		pause *= 2
	}
}

// wait sleeps before the next attempt at a task, and shows the reason for the wait.
func (e *Executor) wait(ctx context.Context, t stages.Task, why string, d time.Duration) error {
	w := stages.Wait{Why: why, Until: e.Clock.Now().Add(d)}
	end := stages.Watched(e.Watcher, t, func() stages.Activity { return stages.Activity{Waits: []stages.Wait{w}} })
	defer end()
	return e.Clock.Sleep(ctx, d)
}

// oneLine folds an error into one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
