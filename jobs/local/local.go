// Package local runs tasks in this process, several at a time.
//
// In: tasks. Out: results in the store, made by a Runner (jobs/worker). A failed
// task is tried again, after a pause that grows, unless its error says that
// retrying cannot help. It imports stages only, and implements jobs.Executor.
package local

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// Runner runs one attempt at a task.
type Runner func(ctx context.Context, t stages.Task) error

// Executor runs tasks in this process.
type Executor struct {
	Try        Runner
	FetchTasks int           // fetch tasks at a time
	Tasks      int           // tasks of other stages at a time
	Attempts   int           // at a task
	Pause      time.Duration // before the second attempt; doubles
	Clock      stages.Clock
	Log        *slog.Logger
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
	interrupted := false
	for range min(max(at, 1), len(tasks)) {
		wg.Go(func() {
			for t := range queue {
				err := e.attempts(ctx, t)
				if errors.Is(err, stages.ErrInterrupted) {
					mu.Lock()
					interrupted = true
					mu.Unlock()
					continue
				}
				done(t, err)
			}
		})
	}
feed:
	for _, t := range tasks {
		select {
		case queue <- t:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	if interrupted || ctx.Err() != nil {
		return stages.ErrInterrupted
	}
	return nil
}

// attempts makes up to Attempts attempts at a task.
func (e *Executor) attempts(ctx context.Context, t stages.Task) error {
	pause := e.Pause
	for attempt := 1; ; attempt++ {
		err := e.Try(ctx, t)
		switch {
		case err == nil, errors.Is(err, stages.ErrPermanent), errors.Is(err, stages.ErrInterrupted), attempt >= e.Attempts:
			return err
		case ctx.Err() != nil:
			return stages.ErrInterrupted
		}
		e.Log.Warn("task failed, trying again", "task", t.String(), "attempt", attempt, "error", err, "pause", pause)
		if e.Clock.Sleep(ctx, pause) != nil {
			return stages.ErrInterrupted
		}
		pause *= 2
	}
}
