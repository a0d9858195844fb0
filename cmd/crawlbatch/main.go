// Command crawlbatch is a batch web crawler over object storage: one binary that
// plans a month's URL set, fetches and parses it politely, reduces the outputs to
// tables and finds the URLs of the next round.
//
// One file a command: flags fill a struct, a run function does it, and main maps
// errors to exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	// The image holds nothing but the binary: the time zones, and the certificate
	// authorities to trust, are in it for where the machine has none.
	_ "time/tzdata"

	_ "golang.org/x/crypto/x509roots/fallback"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// version is set by the Makefile. In other builds, such as `go install`, it is the version
// that Go stamped.
var version string

func init() {
	if version == "" {
		version = stampedVersion()
	}
}

// The exit codes; every command's help lists them.
const (
	exitDone        = 0
	exitInternal    = 1
	exitUsage       = 2
	exitTasksFailed = 3
	exitViolation   = 4
	exitInterrupted = 75
	exitPermanent   = 78
)

// errUsage marks errors of the command line and of its inputs.
var errUsage = errors.New("usage")

// usageError is one line that says what is wrong and what to do.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == errUsage }
func (e usageError) Unwrap() error      { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// exitCode maps an error to its exit code.
func exitCode(err error) int {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		return exitDone
	case is(jobs.ErrTasksFailed, errNotHad): // whatever the first of them failed with
		return exitTasksFailed
	case is(stages.ErrInterrupted, stages.ErrTaken, roundstate.ErrNotReady, context.Canceled, context.DeadlineExceeded):
		return exitInterrupted
	case is(errViolation):
		return exitViolation
	case is(stages.ErrPermanent, store.ErrUnsupported, store.ErrClock, manifest.ErrNewer, manifest.ErrCorrupt, manifest.ErrTooLarge, table.ErrCorrupt, urlfilter.ErrCorrupt):
		return exitPermanent
	case is(errUsage, config.ErrInvalid, roundstate.ErrNoCrawl, roundstate.ErrNoPlan, jobs.ErrNotStarted, jobs.ErrNoPartition, jobs.ErrBusy, jobs.ErrPlanned, jobs.ErrNotSealed, planner.ErrConfig, planner.ErrNothing,
		source.ErrMissing, source.ErrNoWARC, source.ErrEmpty, source.ErrUnreadable, store.ErrDenied, scratch.ErrUnavailable, k8s.ErrCluster, k8s.ErrIndex):
		return exitUsage
	case is(store.ErrUnavailable, store.ErrFull, syscall.ENOSPC, syscall.EDQUOT):
		return exitInterrupted // nothing is lost: go on when the store is back, or there is room
	}
	return exitInternal
}

// signalContext ends at the first SIGINT or SIGTERM; the second kills the process.
func signalContext(parent context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop()
	}()
	return ctx, stop
}

// oneLine folds an error into one line.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
