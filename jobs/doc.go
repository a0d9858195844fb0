// Package jobs drives a round as a graph of tasks. The driver runs one stage after the other, until
// the round is sealed and the next round is planned. An Executor runs the tasks of each stage.
//
// The driver reads a store with a planned crawl, and leaves sealed rounds in the store. All state
// is in the store, and the driver runs the tasks whose results are missing. A driver may therefore
// stop at any time, and another driver may continue. A reparse is a crawl with copied plans, whose
// fetch tasks read stored responses. The function Reparse creates such a crawl, and the driver runs
// it like any other crawl. The package imports jobs/roundstate, jobs/worker, jobs/config, planner
// and formats. Executors (jobs/local, k8s) implement Executor without importing jobs. Only cmd
// chooses an executor.
package jobs

import (
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrTasksFailed means that some tasks have no result after all their attempts (exit code 3).
var ErrTasksFailed = errors.New("some tasks failed")

// Executor runs tasks of one stage in this process or as a Kubernetes Job.
type Executor interface {
	// Run tries every task, several times if further tries can help. Run calls done exactly once
	// for each task, from any goroutine, with nil or the error of the task's last attempt. A task
	// that already has a result succeeds without an attempt. Run returns when all tasks have ended.
	// The error that Run itself returns is about the executor, not about a task.
	// When ctx ends, Run stops the tasks of this process as if the machine had failed. Tasks in
	// other processes continue, and the next driver waits for these tasks. Run then returns
	// stages.ErrInterrupted.
	Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error
}

// Observer follows the progress of a round. Several goroutines may call its methods at the same
// time.
type Observer interface {
	StageStarted(s StageStart)
	TaskDone(t stages.Task, err error)
	StageDone(stage stages.Stage, failed int)
	// RoundDone reports a sealed round. The seal may be older than this run.
	RoundDone(s *manifest.Sealed)
}

// StageStart is the state of a stage when the driver begins or resumes the stage.
type StageStart struct {
	Plan    *manifest.Plan
	Stage   stages.Stage
	Tasks   int           // number of tasks in the stage, or in the part of the stage that runs again
	Missing []stages.Task // the tasks without a result
	// For the fetch stage only: the number of planned URLs, how many of them have an outcome, and
	// the checkpoints of missing tasks.
	URLs, Recorded int64
	Fetching       []FetchStatus
}
