// Package stages defines what all stages share: their order, the environment
// that a task runs in, how a task is named, and how failures are classed.
//
// A stage is a set of tasks; it starts when every task of the stage before it has
// a result. Each reduce stage is a package below with
//
//	func Run(ctx context.Context, env *Env, in *Input, cfg Config) (*manifest.Result, error)
//
// which is a deterministic function of its committed inputs: the same inputs give the
// same bytes. The same holds for fetch in a reparse (2026-11r1), whose tasks read stored
// responses. Stages never import one another. This package imports formats packages only.
package stages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Stage is a stage's name.
type Stage string

// The stages of a round.
const (
	Plan     Stage = "plan"
	Fetch    Stage = "fetch"
	Merge    Stage = "merge"
	Dedup    Stage = "dedup"
	Rank     Stage = "rank"
	Frontier Stage = "frontier"
	Publish  Stage = "publish"
)

// Order lists the stages that have tasks, in the order in which they run.
var Order = []Stage{Fetch, Merge, Dedup, Rank, Frontier, Publish}

// Tasks is the number of tasks of a stage: one per partition for fetch, merge and publish,
// one per reduce bucket for rank and frontier, and one for dedup, which compares all pages.
func (s Stage) Tasks(p *manifest.Plan) int {
	switch s {
	case Fetch, Merge, Publish:
		return len(p.Partitions)
	case Rank, Frontier:
		return p.Buckets
	case Dedup:
		return 1
	}
	return 0
}

// Valid reports whether s has tasks.
func (s Stage) Valid() bool {
	return slices.Contains(Order, s)
}

// Task is one stage on one partition (for rank and frontier: on one bucket).
type Task struct {
	Stage     Stage
	Crawl     string
	Round     int
	Partition int
}

// String names the task in logs, errors and keys alike: fetch@2026-11.0:17.
func (t Task) String() string {
	return fmt.Sprintf("%s@%s.%d:%d", t.Stage, t.Crawl, t.Round, t.Partition)
}

// These errors say how a task failed. An interruption is no failure of the task itself.
var (
	// ErrInterrupted means that the task was told to stop. Its work is kept, and a later
	// attempt continues it (exit 75).
	ErrInterrupted = errors.New("interrupted")
	// ErrPermanent means that retrying cannot help (exit 78).
	ErrPermanent = errors.New("retrying cannot help")
	// ErrTaken means that another attempt holds the task.
	ErrTaken = errors.New("another attempt holds this task")
)

// Clock gives a task the time.
type Clock interface {
	Now() time.Time
	// Sleep returns early with the context's error when it ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the machine's clock; under testing/synctest it is the bubble's.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep waits for d or until the context ends.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Env is what the runner of a task provides.
type Env struct {
	Bucket   store.Bucket
	Scratch  string // an existing, empty local directory for this attempt only; the caller removes it
	Clock    Clock
	Log      *slog.Logger // its lines already name the task
	Progress Progress
	Watcher  Watcher // nil if nobody watches
	Version  string  // crawlbatch version, for manifests and WARC files
	// Format is the schema.FormatVersion of the task's frozen inputs. The task's tables get
	// the columns and encodings of that version. Zero is the newest.
	Format int
}

// Input is what a reduce task reads: the round's plan, the committed results of the stages
// before it in this round, and the sealed rounds before this one.
type Input struct {
	Task    Task
	Plan    *manifest.Plan
	Results map[Stage][]*manifest.Result // complete results of each stage, by partition
	Earlier []*manifest.Sealed           // this crawl's rounds and those of the crawls it continues, oldest first
}
