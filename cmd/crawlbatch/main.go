// Command crawlbatch is a batch web crawler over object storage, as one binary. The program plans
// the URLs of a month, fetches them politely, parses the responses, reduces the outputs to tables
// and finds the URLs of the next round.
//
// Each command has a file here, or a package of its own beside this one. Its flags fill a struct,
// and a run function does the work. main maps errors to exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	// The container image holds nothing but the binary, so the binary contains the time zones and the
	// trusted certificate authorities.
	_ "time/tzdata"

	_ "golang.org/x/crypto/x509roots/fallback"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/compact"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/inspect"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/websource"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/sqldb"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
)

// version is the program's version. The Makefile sets version. Other builds, such as `go install`,
// use the version that Go stamped into the binary.
var version string

func init() {
	if version == "" {
		version = usage.StampedVersion()
	}
}

const (
	exitDone        = 0
	exitInternal    = 1
	exitUsage       = 2
	exitTasksFailed = 3
	exitViolation   = 4
	exitMostFailed  = 5
	exitInterrupted = 75
	exitPermanent   = 78
)

// exitCodes explains the exit codes. Every command's help ends with this text, and cmd/README.md says
// what to do after each of them.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitDone, "done"},
	{exitInternal, "internal error"},
	{exitUsage, "usage or config"},
	{exitTasksFailed, "some tasks failed, retry can help"},
	{exitViolation, "a violation was found"},
	{exitMostFailed, "done, but most URLs failed"},
	{exitInterrupted, "interrupted, go on later"},
	{exitPermanent, "permanent, retrying cannot help"},
}

// exitCodesHelp returns the end of every command's help.
func exitCodesHelp() string {
	var codes []string
	for _, e := range exitCodes {
		codes = append(codes, fmt.Sprintf("%d %s", e.code, e.means))
	}
	return "\n" + strings.Join(show.Fold("Exit codes: "+strings.Join(codes, " · "), 80), "\n")
}

// errViolation means that the stored data breaks a promise of crawlbatch.
var errViolation = errors.New("violation found")

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// exitCode maps an error to its exit code.
func exitCode(err error) int {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case err == nil:
		return exitDone
	case is(jobs.ErrTasksFailed, inspect.ErrLater): // comes first, because such an error also wraps the error of the first failed task
		return exitTasksFailed
	case is(room.ErrLimit): // not exitInterrupted: the Job would repeat the pod for ever, without a failure
		return exitInternal
	case is(stages.ErrInterrupted, stages.ErrTaken, compact.ErrChanged, roundstate.ErrNotReady, context.Canceled, context.DeadlineExceeded):
		return exitInterrupted
	case is(errViolation, inspect.ErrDamaged):
		return exitViolation
	case is(jobs.ErrMostFailed):
		return exitMostFailed
	case is(stages.ErrPermanent, store.ErrUnsupported, store.ErrClock, manifest.ErrFormat, manifest.ErrCorrupt, manifest.ErrChanged, manifest.ErrTooLarge, table.ErrCorrupt, urlfilter.ErrCorrupt):
		return exitPermanent
	case is(usage.Err, config.ErrInvalid, roundstate.ErrNoCrawl, roundstate.ErrNoPlan, jobs.ErrNotStarted, jobs.ErrNoPartition, jobs.ErrBusy, lease.ErrHeld, ledger.ErrPruned, ledger.ErrTakedown, jobs.ErrPlanned, roundstate.ErrReplacing, jobs.ErrNotSealed, planner.ErrConfig, planner.ErrNothing,
		source.ErrMissing, source.ErrNoWARC, source.ErrEmpty, source.ErrNoMatch, source.ErrUnreadable, source.ErrOption, source.ErrWhere, source.ErrColumn, sqldb.ErrUnusable, websource.ErrName, websource.ErrRefused, store.ErrDenied, scratch.ErrUnavailable, k8s.ErrCluster, k8s.ErrIndex, inspect.ErrUnreadable):
		return exitUsage
	case is(store.ErrUnavailable, source.ErrUnavailable, source.ErrChanged, store.ErrFull, sqldb.ErrLost, syscall.ENOSPC, syscall.EDQUOT):
		return exitInterrupted // nothing is lost, and the same command continues later
	}
	return exitInternal
}

// signalContext returns a context that the first SIGINT or SIGTERM cancels. The second signal kills the process.
// The context also ends when the process's scratch files exceed their limit. If they do so when it ends, its cause
// wraps room.ErrLimit, because the kubelet then sends SIGTERM for no other reason.
func signalContext(parent context.Context) (context.Context, func()) {
	signalled, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	context.AfterFunc(signalled, func() {
		stop()
		cancel(room.Need(0))
	})
	go room.Watch(signalled, func(err error) { cancel(err) })
	return ctx, stop
}
