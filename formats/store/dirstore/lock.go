package dirstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// lockKey takes the lock that Swap holds while it compares and renames key. There are only
// 256 such locks, so lock files need no removal. lockKey polls: a blocking flock ignores
// ctx, and the holder may be a stopped process.
func (s *Store) lockKey(ctx context.Context, key string) (unlock func(), err error) {
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
		if ok {
			return func() { _ = f.Close() }, nil // closing releases the lock
		}
		if err == nil {
			err = store.Sleep(ctx, poll.Delay(try))
		}
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("wait for the lock of the key: %w", err)
		}
	}
}

// Lock implements store.Locker with a flock on a file in ROOT/.tmp/locks. The lock becomes
// free when the holding process dies for any reason.
func (s *Store) Lock(name string) (release func(), ok bool, err error) {
	f, err := s.lock(name)
	if err != nil {
		return nil, false, wrap("lock", name, err)
	}
	if f == nil {
		return nil, false, nil
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			// Remove the file while holding the lock, so that lock files do not pile up.
			// stands tells a process that has already opened the file.
			_ = os.Remove(f.Name())
			_ = f.Close()
		})
	}, true, nil
}

// lock returns the locked file, or nil if another process holds it.
func (s *Store) lock(name string) (*os.File, error) {
	if err := store.CheckKey(name); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.tmp(), lockFolder, "hold-"+url.PathEscape(name))
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, s.emptied(err)
		}
		ok, err := tryLock(f)
		if ok && stands(f) {
			return f, nil
		}
		_ = f.Close()
		if !ok || err != nil {
			return nil, err
		}
	}
}

// tryLock takes the exclusive flock of f, unless another open file has it.
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

// stands reports whether the file's name still refers to this open file.
func stands(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}
