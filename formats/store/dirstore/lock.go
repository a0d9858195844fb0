package dirstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// lockKey takes the lock that Swap and Delete hold while they change the file of key. The caller
// releases the lock by closing the file. All keys share 256 lock files, which are never removed.
// lockKey polls, because a blocking flock ignores ctx and the holder may be a stopped process.
func (s *Store) lockKey(ctx context.Context, key string) (*os.File, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	name := filepath.Join(s.tmp(), lockFolder, fmt.Sprintf("key-%02x", byte(h.Sum32())))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, s.emptied(err)
	}
	poll := store.Backoff{Base: time.Millisecond, Max: 50 * time.Millisecond}
	for try := 0; ; try++ {
		ok, err := tryLock(f)
		switch {
		case ok && !stillNamed(f):
			err = s.emptied(fs.ErrNotExist)
		case ok:
			return f, nil
		case err == nil:
			err = store.Sleep(ctx, poll.Delay(try))
		}
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("wait for the lock of the key: %w", err)
		}
	}
}

// fileLock is a held flock on a file and implements store.Lock.
type fileLock struct {
	file   *os.File
	is     syscall.Stat_t // identity of the open file
	found  bool           // an earlier holder left the file
	closed atomic.Bool
}

// Stands implements store.Lock. It compares the inode of the file at the lock's path with that of the
// open file. The system does not reuse the inode of an open file.
func (l *fileLock) Stands() bool {
	var named syscall.Stat_t
	return !l.closed.Load() && syscall.Lstat(l.file.Name(), &named) == nil && named.Ino == l.is.Ino && named.Dev == l.is.Dev
}

// Inherited implements store.Lock. Only a holder that dies or abandons the lock leaves its file.
func (l *fileLock) Inherited() bool { return l.found }

// Abandon implements store.Lock.
func (l *fileLock) Abandon() {
	if !l.closed.Swap(true) {
		_ = l.file.Close()
	}
}

// Release implements store.Lock. It removes the file while it holds the lock, so that lock files do
// not pile up. Another process may have opened the file before. If it then gets the flock of the
// removed file, it opens the path again (see Store.tryLock).
func (l *fileLock) Release() {
	held := l.Stands()
	if l.closed.Swap(true) {
		return
	}
	if held {
		_ = os.Remove(l.file.Name())
	}
	_ = l.file.Close()
}

// Lock implements store.Locker with a flock on a file in ROOT/.tmp/locks. The system frees the flock
// when the process that holds it dies for any reason.
func (s *Store) Lock(name string) (store.Lock, bool, error) {
	l, err := s.tryLock(name)
	if err != nil {
		return nil, false, wrap("lock", name, err)
	}
	if l == nil {
		return nil, false, nil
	}
	return l, true, nil
}

// tryLock takes the named lock, or returns nil if another holder has the lock.
func (s *Store) tryLock(name string) (*fileLock, error) {
	if err := store.CheckKey(name); err != nil {
		return nil, err
	}
	path := filepath.Join(s.tmp(), lockFolder, "hold-"+url.PathEscape(name))
	var gone error
	for range linkTries {
		if err := s.prepare(); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		found := errors.Is(err, fs.ErrExist)
		if found {
			f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		}
		if errors.Is(err, fs.ErrNotExist) {
			gone = s.emptied(err) // the folder was removed, so the next try recreates it
			continue
		}
		if err != nil {
			return nil, err
		}
		ok, err := tryLock(f)
		if ok && stillNamed(f) {
			l := &fileLock{file: f, found: found}
			if err := syscall.Fstat(int(f.Fd()), &l.is); err != nil {
				_ = f.Close()
				return nil, &os.PathError{Op: "fstat", Path: path, Err: err}
			}
			return l, nil
		}
		_ = f.Close()
		if !ok || err != nil {
			return nil, err
		}
		gone = s.emptied(fs.ErrNotExist)
	}
	return nil, gone
}

// tryLock takes the exclusive flock of f, or returns false if another open file holds the flock.
func tryLock(f *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// stillNamed reports whether the name of f still refers to the open file f.
func stillNamed(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}
