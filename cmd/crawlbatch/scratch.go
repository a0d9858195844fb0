package main

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

const (
	scratchPrefix = "crawlbatch-run-"
	scratchLock   = "lock" // held by the process whose directory it is
)

// newScratch makes a directory for what a process need not keep, in TMPDIR, and
// removes those of processes that died. remove may be called twice.
func newScratch() (dir string, remove func(), err error) {
	defer func() {
		if err != nil {
			err = usagef("no scratch directory: %v: make room, or set TMPDIR", err)
		}
	}()
	sweepScratch()
	// Under another name until it is locked, so that nobody takes it for dead.
	early, err := os.MkdirTemp("", "crawlbatch-new-")
	if err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(early, scratchLock))
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		dir = filepath.Join(filepath.Dir(early), scratchPrefix+filepath.Base(early)[len("crawlbatch-new-"):])
		err = os.Rename(early, dir)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(early))
	}
	return dir, sync.OnceFunc(func() {
		_ = os.RemoveAll(dir) // what stays is swept by a later process
		_ = lock.Close()
	}), nil
}

// sweepScratch removes the directories that dead processes left.
func sweepScratch() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*", scratchLock)) // a pattern that is right
	for _, name := range left {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(name)) // if it is another user's, it is theirs to remove
		}
		_ = f.Close()
	}
}
