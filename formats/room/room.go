// Package room measures how much scratch space this process may still use: what the file system has free, and what the
// limit of a pod's scratch volume leaves.
//
// The kubelet evicts a pod whose scratch volume exceeds its limit, without an error in any write. A pod therefore gets the
// limit in an environment variable (Variable), and the process measures the files in TMPDIR itself. Without the
// variable, only the file system counts. The package imports no other package of crawlbatch.
package room

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The environment variables of a pod.
const (
	Variable = "CRAWLBATCH_SCRATCH"       // most bytes that all files in TMPDIR may take
	Remedy   = "CRAWLBATCH_SCRATCH_RAISE" // text that says what to raise, such as kubernetes.resources.merge.scratch
)

// ErrLimit means that the limit leaves too little scratch space. Every such error also matches ENOSPC, and says what to
// raise. A further attempt with the same limit probably ends in the same way.
var ErrLimit = errors.New("the scratch space is used up")

type limitError struct {
	dir                string
	used, limit, least int64 // in bytes; least is the room that is needed, or 0 if used exceeds the limit
}

func (e *limitError) Error() string {
	raise := "raise " + cmp.Or(os.Getenv(Remedy), "it, and the limit of the volume")
	if e.least > 0 {
		return fmt.Sprintf("%s of scratch space are needed, but the files in %s take %s of the %s that %s allows: %s", size(e.least), e.dir, size(e.used), size(e.limit), Variable, raise)
	}
	return fmt.Sprintf("the files in the scratch directory %s take %s, more than the %s that %s allows: %s", e.dir, size(e.used), size(e.limit), Variable, raise)
}

func (e *limitError) Is(target error) bool { return target == ErrLimit || target == syscall.ENOSPC }

// size writes a number of bytes in MiB, rounded up.
func size(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }

// limit returns the value of Variable, and whether it is set.
func limit() (bytes int64, set bool, err error) {
	text := os.Getenv(Variable)
	if text == "" || text == "0" { // Kubernetes writes 0 for a container that requests none
		return math.MaxInt64, false, nil
	}
	bytes, err = strconv.ParseInt(text, 10, 64)
	if err != nil || bytes < 0 {
		return math.MaxInt64, false, fmt.Errorf("the environment variable %s is %q: write a number of bytes", Variable, text)
	}
	return bytes, true, nil
}

// Check returns an error if Variable is set, but is no number of bytes. The other functions then ignore it.
func Check() error {
	_, _, err := limit()
	return err
}

// used returns the space that the files in a directory take on the disk, in bytes, as the kubelet counts it. It skips
// files that vanish meanwhile.
func used(dir string) (bytes int64) {
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target // WalkDir does not follow a link
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a directory was just removed
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += st.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}

// Free returns the bytes that files in dir, a directory in TMPDIR, may still take.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	if most, set, _ := limit(); set {
		free = min(free, max(0, most-used(os.TempDir())))
	}
	return free, nil
}

// Need returns an error that wraps ErrLimit if the limit leaves less than the given number of bytes. Need(0) thus reports
// that the files exceed the limit. It does not ask whether the file system has room, which other processes may make.
func Need(bytes int64) error {
	most, set, _ := limit()
	if !set {
		return nil
	}
	dir := os.TempDir()
	if taken := used(dir); taken > most-bytes {
		return &limitError{dir, taken, most, bytes}
	}
	return nil
}

const (
	watchEvery = time.Second // least time between two measurements of Watch
	watchShare = 50          // least multiple of a measurement's own time between two of them, so that it costs little
)

// Watch calls over, once, when the files in TMPDIR exceed the limit. It returns then, or when ctx ends, or at once
// without a limit.
func Watch(ctx context.Context, over func(error)) {
	if _, set, _ := limit(); !set {
		return
	}
	for {
		began := time.Now()
		if err := Need(0); err != nil {
			over(err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(watchEvery, watchShare*time.Since(began))):
		}
	}
}
