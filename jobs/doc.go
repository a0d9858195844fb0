// Package jobs is a round as a graph of tasks: plan, then stage after stage, each
// a set of tasks that an Executor runs, until the round is sealed and the next
// one planned.
//
// In: a store with a planned crawl. Out: sealed rounds. All state is in the
// store: which results are missing decides what is run, so a driver may be
// stopped anywhere, and started again by anyone. A reparse is a crawl whose plans are
// copies and whose fetch tasks read what is stored; Reparse makes it, the driver runs
// it like any other. It imports jobs/worker,
// jobs/config, planner and formats; executors (jobs/local, k8s) implement its
// interface without importing it, and only cmd picks one.
package jobs

import (
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrTasksFailed: some tasks have no result after all their attempts (exit 3).
var ErrTasksFailed = errors.New("some tasks failed")

// Executor runs tasks of one stage wherever it does: in this process, or as a
// Kubernetes Job.
type Executor interface {
	// Run tries every task, several times where that can help, and calls done
	// once for each, from any goroutine, with nil or the error of its last
	// attempt. It returns when all have ended; its own error is about the
	// executor, not about a task. When ctx ends it stops what runs here, as a
	// machine that goes away would, leaves what runs elsewhere to the next driver,
	// and returns stages.ErrInterrupted. Tasks that have a
	// result already succeed at once.
	Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error
}

// Observer is told how a round goes; its methods may be called from several
// goroutines at a time.
type Observer interface {
	StageStarted(s StageStart)
	TaskDone(t stages.Task, err error)
	StageDone(stage stages.Stage, failed int)
	// RoundDone says what a round holds, also of those that were sealed before.
	RoundDone(s *manifest.Sealed)
}

// StageStart is where a stage stands as it is begun or gone on with.
type StageStart struct {
	Plan    *manifest.Plan
	Stage   stages.Stage
	Tasks   int           // that the stage is to have results of
	Missing []stages.Task // those without one
	// Of fetch: the planned URLs of the tasks, those of them that have their outcome,
	// and the checkpoints of missing tasks.
	URLs, Recorded int64
	Fetching       []FetchStatus
}

// NoObserver ignores all.
type NoObserver struct{}

// StageStarted does nothing.
func (NoObserver) StageStarted(StageStart) {}

// TaskDone does nothing.
func (NoObserver) TaskDone(stages.Task, error) {}

// StageDone does nothing.
func (NoObserver) StageDone(stages.Stage, int) {}

// RoundDone does nothing.
func (NoObserver) RoundDone(*manifest.Sealed) {}
