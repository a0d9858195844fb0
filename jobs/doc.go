// Package jobs drives a round as a graph of tasks: plan, then one stage after the other, each a
// set of tasks that an Executor runs, until the round is sealed and the next one planned.
//
// In: a store with a planned crawl. Out: sealed rounds. All state is in the store, and missing
// results decide what runs, so a driver may stop anywhere and anyone may start it again. A
// reparse is a crawl whose plans are copies and whose fetch tasks read stored responses; Reparse
// creates it, and the driver runs it like any other. The package imports jobs/roundstate,
// jobs/worker, jobs/config, planner and formats. Executors (jobs/local, k8s) implement its
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

// Executor runs tasks of one stage, in this process or as a Kubernetes Job.
type Executor interface {
	// Run tries every task, several times if that can help, and calls done once for each,
	// from any goroutine, with nil or the error of its last attempt. A task with a result
	// succeeds at once. Run returns when all tasks have ended; its error is about the
	// executor, not about a task. When ctx ends, it stops the tasks of this process as if the
	// machine went away, leaves those elsewhere to the next driver, and returns
	// stages.ErrInterrupted.
	Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error
}

// Observer follows the progress of a round. Several goroutines may call its methods at a time.
type Observer interface {
	StageStarted(s StageStart)
	TaskDone(t stages.Task, err error)
	StageDone(stage stages.Stage, failed int)
	// RoundDone reports a sealed round, also one that was sealed before.
	RoundDone(s *manifest.Sealed)
}

// StageStart is the state of a stage when the driver begins or resumes it.
type StageStart struct {
	Plan    *manifest.Plan
	Stage   stages.Stage
	Tasks   int           // of the stage, or of the part of it that is rerun
	Missing []stages.Task // those without a result
	// For fetch: the planned URLs of the tasks, how many have an outcome, and the checkpoints
	// of missing tasks.
	URLs, Recorded int64
	Fetching       []FetchStatus
}
