//go:build lab

package lab

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

var update = flag.Bool("update", false, "rewrite the expected answers")

// The exit codes of crawlbatch. cmd/README.md explains them.
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

// version is the version that the tests write into stores, as the program would.
var version = usage.StampedVersion()

// ledgers returns a writer of ledgers.
func ledgers() ledger.Writer { return ledger.Writer{Version: version, Clock: stages.SystemClock{}} }

// program is the path of the program under test. PATH finds it as crawlbatch, too.
var program string

// givenBinary is the environment variable that names a built program. If it is unset, the tests build
// the program.
const givenBinary = "CRAWLBATCH_BINARY"

func TestMain(m *testing.M) {
	if value := os.Getenv(laterDriver); value != "" {
		os.Exit(driveLater(value))
	}
	os.Exit(withBinary(m.Run))
}

// withBinary runs the tests with the program under test.
func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "lab-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "crawlbatch")
	if given := os.Getenv(givenBinary); given != "" {
		err = os.Symlink(given, program)
	} else if out, failed := exec.Command("go", "build", "-o", program, "../crawlbatch").CombinedOutput(); failed != nil {
		err = fmt.Errorf("go build: %w\n%s", failed, out)
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// execute runs a command line and returns its exit code. The end of ctx interrupts the command.
func execute(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errw
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) && cmd.ProcessState == nil {
		fmt.Fprintln(errw, err)
		return exitInternal
	}
	return cmd.ProcessState.ExitCode()
}

// mustRun runs a command line that must succeed and returns its stdout.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), args, nil, &out, &errs); code != exitDone {
		t.Fatalf("crawlbatch %s: exit %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
	}
	return out.String()
}
