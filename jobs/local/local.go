// Package local runs tasks in this process, several at a time.
//
// In: tasks. Out: results in the store, made by a Runner (jobs/worker). A failed
// task is tried again, after a pause that grows, unless its error says that
// retrying cannot help. It imports stages and formats/store, and implements jobs.Executor.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
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
	var interrupted error // the first of them
	for range min(max(at, 1), len(tasks)) {
		wg.Go(func() {
			for t := range queue {
				err := e.attempts(ctx, t)
				if errors.Is(err, stages.ErrInterrupted) {
					mu.Lock()
					if interrupted == nil {
						interrupted = err
					}
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
	if interrupted == nil && ctx.Err() != nil {
		interrupted = stages.ErrInterrupted
	}
	return interrupted
}

// patience is how long a task waits for a store that is away, or for room on a
// disk that is full, before the run is interrupted.
const patience = 30 * time.Minute

// attempts makes up to Attempts attempts at a task. That the store is away or a
// disk full is no attempt of the task's.
func (e *Executor) attempts(ctx context.Context, t stages.Task) error {
	pause := e.Pause
	var since time.Time // of the trouble
	waits := 0
	for attempt := 1; ; attempt++ {
		err := e.Try(ctx, t)
		if trouble(err) && ctx.Err() == nil && !errors.Is(err, stages.ErrPermanent) {
			now := e.Clock.Now()
			if waits == 0 {
				since = now
			}
			if now.Sub(since) > patience {
				return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
			}
			wait := store.Backoff{Base: time.Second, Max: 30 * time.Second}.Delay(waits)
			e.Log.Warn("task waits for the store, or for room on a disk", "task", t.String(), "error", err, "pause", wait)
			if e.Clock.Sleep(ctx, wait) != nil {
				return stages.ErrInterrupted
			}
			waits++
			attempt--
			continue
		}
		waits = 0
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

// trouble reports whether an attempt ended for the sake of where its data lie.
func trouble(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
