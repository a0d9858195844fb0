package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
)

const (
	tmpPrefix  = "w-"    // of temporary files in .tmp
	lockFolder = "locks" // of lock files in .tmp
)

func (s *Store) tmp() string { return filepath.Join(s.root, store.Reserved) }

// prepare makes the root and its .tmp before the first write and sweeps what
// dead writers left there.
func (s *Store) prepare() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prepared {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(s.tmp(), lockFolder), 0o777); err != nil {
		return err
	}
	// The root may have been mounted since Open.
	if err := s.checkFileSystem(s.root); err != nil {
		return err
	}
	if err := s.sweep(); err != nil {
		return err
	}
	s.prepared = true
	return nil
}

// emptied tells a temporary folder that somebody removed from a missing object;
// the next write makes it anew.
func (s *Store) emptied(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared = false
	clear(s.known)
	return fmt.Errorf("%w: somebody removed %s or what is in it: %s", store.ErrUnavailable, s.tmp(), err.Error())
}

// sweep removes temporary files that no living process holds a flock on.
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
			continue // its writer ended meanwhile, or it is another user's
		}
		if ok, err := tryLock(f); ok && err == nil {
			_ = os.Remove(name)
		}
		_ = f.Close()
	}
	return nil
}

// syncFolder makes the entries of a folder durable.
func (s *Store) syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.fsync(f)
}

// syncFolders makes the entries of folder durable and, where this process has
// not done so before, its own entry and those of the folders above it: somebody
// else may have made them a moment ago and not come to syncing.
func (s *Store) syncFolders(folder string) error {
	if err := s.syncFolder(folder); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted since, with the object in it
		}
		return err
	}
	for folder != s.anchor && folder != filepath.Dir(folder) {
		s.mu.Lock()
		_, ok := s.known[folder]
		s.mu.Unlock()
		if ok {
			return nil // and so are those above
		}
		if err := s.syncFolder(filepath.Dir(folder)); err != nil {
			return err
		}
		s.mu.Lock()
		s.known[folder] = struct{}{}
		s.mu.Unlock()
		folder = filepath.Dir(folder)
	}
	return nil
}

// forget drops what is known of folders, as some were removed.
func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
}
