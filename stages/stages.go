// Package stages defines the common parts of all stages: their order, the environment in which a
// task runs, the names of tasks, and the classes of failures.
//
// A stage is a set of tasks. A stage starts when every task of the stage before it has a result.
// Each reduce stage is a package below package stages. The main function of such a package is
//
//	func Run(ctx context.Context, env *Env, in *Input, cfg Config) (*manifest.Result, error)
//
// Run is deterministic: the same committed inputs give the same bytes. Fetch in a reparse
// (2026-11r1) is deterministic too, because its tasks read stored responses. Stages never import
// one another. Package stages imports only formats packages.
package stages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Stage is the name of a stage.
type Stage string

// The stages of a round.
const (
	Plan     Stage = "plan"
	Fetch    Stage = "fetch"
	Merge    Stage = "merge"
	Digest   Stage = "digest"
	Similar  Stage = "similar"
	Cluster  Stage = "cluster"
	Dedup    Stage = "dedup"
	Rank     Stage = "rank"
	Frontier Stage = "frontier"
	Publish  Stage = "publish"
)

// Order lists the stages that have tasks, in the order in which they run. Some rounds lack some of
// these stages: see Of.
var Order = []Stage{Fetch, Merge, Digest, Similar, Cluster, Dedup, Rank, Frontier, Publish}

// Of lists the stages of a round, in the order in which they run.
func Of(p *manifest.Plan) []Stage {
	return slices.DeleteFunc(slices.Clone(Order), func(s Stage) bool { return s.Tasks(p) == 0 })
}

// mostShards is the largest number of tasks of digest, and of similar. Each task of digest reads the
// text digests of all pages of the round, and each task of similar reads all fingerprints. 16 tasks take a
// third of the CPU of 64, and end a fifth later.
const mostShards = 16

// Tasks returns the number of tasks of a stage. Fetch, merge and publish have one task per
// partition. Rank and frontier have one task per reduce bucket. If a round has one bucket, dedup has
// one task. If a round has several buckets, digest and similar have one task per shard, cluster has
// one task, and dedup has one task per bucket. The tables do not depend on this division.
func (s Stage) Tasks(p *manifest.Plan) int {
	switch s {
	case Fetch, Merge, Publish:
		return len(p.Partitions)
	case Rank, Frontier:
		return p.Buckets
	}
	divided := p.Buckets > 1
	switch {
	case s == Dedup && divided:
		return p.Buckets
	case s == Dedup, s == Cluster && divided:
		return 1
	case (s == Digest || s == Similar) && divided:
		return min(p.Buckets, mostShards)
	}
	return 0
}

// Valid reports whether s is a stage with tasks.
func (s Stage) Valid() bool {
	return slices.Contains(Order, s)
}

// auditPrefix begins the names of the stages of audits.
const auditPrefix = "verify-"

// AuditStage returns a name such as verify-1a2b3c-files, for one phase of the audit with the given ID.
// The tasks of the phase run like tasks of a stage with this name, but no round waits for them.
func AuditStage(id, phase string) Stage { return Stage(auditPrefix + id + "-" + phase) }

// Audit returns the ID of the audit to which a stage belongs. ok is false if s is a stage of a round.
func (s Stage) Audit() (id string, ok bool) {
	rest, ok := strings.CutPrefix(string(s), auditPrefix)
	id, _, cut := strings.Cut(rest, "-")
	return id, ok && cut
}

// Task is the work of one stage on one partition, bucket or shard (see Stage.Tasks).
type Task struct {
	Stage     Stage
	Crawl     string
	Round     int
	Partition int // number of the partition, bucket or shard
}

// String returns the name of the task in logs, errors and keys: fetch@2026-11.0:17.
func (t Task) String() string {
	return fmt.Sprintf("%s@%s.%d:%d", t.Stage, t.Crawl, t.Round, t.Partition)
}

// These errors say how a task failed. An interruption is not a failure of the task itself.
var (
	// ErrInterrupted means that the task was told to stop (exit 75). The task's work is kept, and a
	// later attempt continues the task.
	ErrInterrupted = errors.New("interrupted")
	// ErrPermanent means that a retry cannot help (exit 78).
	ErrPermanent = errors.New("retrying cannot help")
	// ErrTaken means that another attempt holds the task.
	ErrTaken = errors.New("another attempt holds this task")
	// ErrFault means that the program panicked in a goroutine of the task.
	ErrFault = errors.New("fault in the program")
)

// Recover sets *err to an ErrFault if the function that defers it panics. Only the task then fails: the
// process may run other tasks. Every goroutine that reads bytes from the web defers Recover, because a
// panic ends the process unless its own goroutine recovers it.
func Recover(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("%w: %v: %s", ErrFault, fault, debug.Stack())
	}
}

// Clock gives a task the time.
type Clock interface {
	Now() time.Time
	// Sleep waits for d. If ctx ends before d has passed, Sleep returns the context's error
	// immediately.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the machine's clock. Under testing/synctest, SystemClock is the clock of the
// bubble.
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

// Env holds the environment that a task gets from its runner.
type Env struct {
	Bucket   store.Bucket
	Scratch  string // existing, empty local directory for this attempt only; the caller removes it
	Memory   int64  // memory that a reduce task may take, in bytes; 0 means no limit
	Clock    Clock
	Log      *slog.Logger // logger that adds the task's name to each line
	Progress Progress
	Watcher  Watcher // nil if nobody displays the task
	// Taking, if not nil, is called before a fetch task takes its partition, which no other attempt then holds. If another
	// attempt is faster, the task calls the returned function, and waits.
	Taking func() (untaken func())
	// Held, if not nil, is called when a fetch task has taken its partition, with the epoch of the lease.
	Held func(epoch int)
	// Waited, if not nil, is called when a fetch task has waited for another attempt that holds its
	// partition, or for the network, with the length of the wait. It does not count as the attempt's time.
	Waited func(d time.Duration)
	// Trace, if not nil, is called for each URL that a fetch task finishes, with the row of the URL and
	// the rows of its requests. It must not keep the rows.
	Trace func(*schema.Fetch, []schema.Request)
	// Dial, if not nil, opens the connections of a fetch task in place of the network, in tests.
	Dial    func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	Version string // version of crawlbatch, for manifests and WARC files
	// Compare makes the task compare the rows of its tables with the stored parts instead of
	// writing parts. The task fails with table.ErrDiffers at the first difference. The task encodes
	// each run but does not store it: the caller compares the run's digest.
	Compare bool
	// Sound is the task's committed result. The caller sets it if it has just compared all files of the
	// crawl with their digests. With Compare, the task then does not compute these digests again.
	Sound *manifest.Result
}

// Input is the input of a reduce task: the round's plan, the committed results of this round's
// earlier stages, and the sealed rounds before this round.
type Input struct {
	Task    Task
	Plan    *manifest.Plan
	Results map[Stage][]*manifest.Result // complete results of each stage, in the order of partitions
	Earlier []*manifest.Sealed           // sealed rounds of this crawl and of the crawls that it continues, the oldest first
	Listed  bool                         // the crawl plans only what sources list and what it finds itself, as in manifest.Crawl
	Created schema.Time                  // time at which the crawl was created; 0 for other tasks than those of frontier, unless Listed
}
