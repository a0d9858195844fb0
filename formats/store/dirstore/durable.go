package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
)

const (
	tmpPrefix  = "w-"    // prefix of the temporary files in .tmp
	lockFolder = "locks" // name of the folder in .tmp that holds the lock files
)

func (s *Store) tmp() string { return filepath.Join(s.root, store.Reserved) }

// prepare creates the root and its folder .tmp, and removes the temporary files of dead writers. It
// does so before the first write, and again after somebody removed .tmp.
func (s *Store) prepare() error { return s.emptied(s.prepareOnce()) }

func (s *Store) prepareOnce() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prepared {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(s.tmp(), lockFolder), 0o777); err != nil {
		return err
	}
	// Somebody may have mounted another file system on the root since Open.
	if err := s.checkFileSystem(s.root); err != nil {
		return err
	}
	if err := s.sweep(); err != nil {
		return err
	}
	s.prepared = true
	return nil
}

// errEmptied means that somebody removed the folder .tmp, or files in it, during a write.
var errEmptied = fmt.Errorf("%w: somebody removed the store's temporary folder or files in it", store.ErrUnavailable)

// retryWrite calls write, and calls it again if the error is errEmptied. Each call of write recreates
// the folder .tmp. A call that fails with errEmptied has changed no object.
func retryWrite(write func() error) (err error) {
	for range linkTries {
		if err = write(); !errors.Is(err, errEmptied) {
			return err
		}
	}
	return err
}

// emptied turns fs.ErrNotExist, the error of a missing file in .tmp, into errEmptied. The next call
// of prepare recreates the folder. If the whole root is empty, the error is store.ErrUnavailable.
func (s *Store) emptied(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared = false
	// If the root is empty, the file system that was mounted on the root may be gone.
	if entries, failed := os.ReadDir(s.root); failed != nil || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != store.Reserved }) {
		return fmt.Errorf("%w: somebody removed %s or its contents: %s", store.ErrUnavailable, s.root, err.Error())
	}
	return fmt.Errorf("%w: %s: %s", errEmptied, s.tmp(), err.Error())
}

// sweep removes the temporary files on which no process holds a flock.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(s.tmp())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tmpPrefix) {
			continue
		}
		name := filepath.Join(s.tmp(), e.Name())
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			continue // the file's writer has just ended, or the file belongs to another user
		}
		if ok, err := tryLock(f); ok && err == nil {
			_ = os.Remove(name)
		}
		_ = f.Close()
	}
	return nil
}

// syncFolder makes the entries of a folder durable. If the folder is missing, it was deleted with its
// content, so there is nothing to sync.
func (s *Store) syncFolder(folder string) (there bool, err error) {
	f, err := os.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return true, s.fsync(f)
}

// syncFolders makes the entries of a folder durable. It also syncs the folder's parents, once per
// process: another process may have created the parents without syncing them yet.
func (s *Store) syncFolders(folder string) error {
	_, epoch := s.isKnown(folder)
	there, err := s.syncFolder(folder)
	for err == nil && there && folder != s.anchor && folder != filepath.Dir(folder) {
		if ok, _ := s.isKnown(folder); ok {
			return nil // the parents of a known folder are durable too
		}
		if there, err = s.syncFolder(filepath.Dir(folder)); err == nil && there {
			s.markDurable(folder, epoch)
		}
		folder = filepath.Dir(folder)
	}
	return err
}

// isKnown reports whether the folder's entry in its parent folder is known to be durable. It also
// returns the current epoch. A new epoch begins whenever a known folder may have been removed.
func (s *Store) isKnown(folder string) (ok bool, epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok = s.known[folder]
	return ok, s.epoch
}

// markDurable records that the folder's entry in its parent folder is durable. If the given epoch has
// ended, markDurable records nothing: the folder may have been removed and created again.
func (s *Store) markDurable(folder string, epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch == s.epoch {
		s.known[folder] = struct{}{}
	}
}

// forget clears the map of known folders, because some of these folders may have been removed.
func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
	s.epoch++
}
