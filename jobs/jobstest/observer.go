// Package jobstest helps tests that drive a crawl. It imports jobs and the packages that jobs
// imports.
package jobstest

import (
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// NoObserver is a jobs.Observer that ignores everything.
type NoObserver struct{}

var _ jobs.Observer = NoObserver{}

// StageStarted implements jobs.Observer.
func (NoObserver) StageStarted(jobs.StageStart) {}

// TaskDone implements jobs.Observer.
func (NoObserver) TaskDone(stages.Task, error) {}

// StageDone implements jobs.Observer.
func (NoObserver) StageDone(stages.Stage, int) {}

// RoundDone implements jobs.Observer.
func (NoObserver) RoundDone(*manifest.Sealed) {}
