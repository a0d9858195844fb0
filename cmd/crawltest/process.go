package crawltest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// PeakOf runs a command and returns its peak resident memory in bytes and its CPU time. It reads the peak
// from /proc until the process ends, because the peak that the system call wait reports includes memory of
// the parent process. If the process fails, err wraps an *exec.ExitError.
func PeakOf(cmd *exec.Cmd) (peak int64, cpu time.Duration, err error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				err = fmt.Errorf("%v: %w\n%s", cmd.Args, err, said.Bytes())
			}
			return peak, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
		case <-time.After(20 * time.Millisecond):
			peak = max(peak, HighWater(cmd.Process.Pid))
		}
	}
}

// HighWater returns the peak resident memory of a process so far in bytes, or 0 if the process has
// ended.
func HighWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	kib, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return kib << 10
}
