package report

import (
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/jobs"
)

// cpuTime returns the CPU time of the process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func newFakeStatus() *jobs.Status { return &jobs.Status{} }
