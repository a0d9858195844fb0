// Package scratch gives a process a directory in TMPDIR for temporary files, and removes the
// directories of processes that died.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ErrUnavailable marks every error of New. Such an error means that TMPDIR is full, missing or not
// writable.
var ErrUnavailable = errors.New("make room, or set TMPDIR")

const (
	newPrefix = "crawlbatch-new-" // prefix of a directory's name until the directory is locked
	prefix    = "crawlbatch-run-"
	lockName  = "lock" // the owning process holds a lock on this file
)

// New makes a directory. The caller calls remove, once or more, to delete it. New first removes
// the directories of processes that have died.
func New() (dir string, remove func(), err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("no scratch directory: %w: %w", err, ErrUnavailable)
		}
	}()
	sweep()
	// New locks the directory before it gives it its final name. Otherwise, sweep in another process
	// could take the unlocked directory for that of a dead process, and remove it.
	early, err := os.MkdirTemp("", newPrefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(early, lockName))
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		dir = filepath.Join(filepath.Dir(early), prefix+filepath.Base(early)[len(newPrefix):])
		err = os.Rename(early, dir)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(early))
	}
	return dir, sync.OnceFunc(func() {
		_ = os.RemoveAll(dir) // a later process removes remaining files
		_ = lock.Close()
	}), nil
}

// sweep removes the directories of dead processes.
func sweep() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*", lockName)) // Glob fails only for an invalid pattern
	for _, name := range left {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(name)) // another user's directory cannot be removed, so it stays
		}
		_ = f.Close()
	}
}
