// Package dirstore keeps a store in a local directory, with the promises of package store
// and one file for each object, so that any tool can read the tables.
//
// The input is keys and bodies. The output is files under the root, named after their keys. An
// object is visible whole or not at all. Once the write has returned, the object survives a power
// failure. Each body is written to a temporary file in ROOT/.tmp, which is then synced. (A store.File in
// the same file system is linked there instead.) Create links
// this file to the name of the object. Swap renames the file while it holds a lock. Create and Swap
// then sync the folders. A version is the SHA-256 of the content. Reads never create files: the
// first write creates the root.
//
// Locks are flocks (flock(2)). A lock ends with its process, or when its file is removed. A lock
// excludes only processes of the same machine, so Open refuses network and FUSE file systems.
//
// Package dirstore imports store, store/localfile and the standard library.
package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
)

// Options change which file systems Open accepts.
type Options struct {
	// OneMachine declares that only processes of one machine use the directory. Open then
	// accepts network and FUSE file systems.
	OneMachine bool
}

// Store is a store.Bucket and a store.Locker in a local directory.
type Store struct {
	root    string // absolute path of the root
	given   string // path of the root as the user wrote it
	anchor  string // deepest folder of the path root that existed at Open; its parents need no sync
	options Options

	fsync      func(*os.File) error                      // (*os.File).Sync, unless a test replaces it
	fileSystem func(dir string) (name string, err error) // sharedFileSystem, unless a test replaces it

	copies atomic.Bool // no more files are adopted, because one could not be synced

	mu       sync.Mutex
	prepared bool                // .tmp exists, and files of dead writers are removed
	known    map[string]struct{} // folders whose entry in their parent folder is durable
	epoch    int                 // number of times that known was cleared
}

var (
	_ store.Bucket = (*Store)(nil)
	_ store.Locker = (*Store)(nil)
)

// Open returns the store in the directory root. If root is missing, the first write creates it. The
// error is store.ErrUnsupported on a file system without reliable locks and links, and
// store.ErrDenied if root cannot be a directory.
func Open(root string, options Options) (*Store, error) {
	if root == "" {
		return nil, fmt.Errorf("open store: %w: the directory's name is empty", store.ErrDenied)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", root, err)
	}
	s := &Store{root: abs, given: root, options: options, fsync: (*os.File).Sync, fileSystem: sharedFileSystem, known: map[string]struct{}{}}
	s.anchor, err = nearest(abs)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("open store %q: %w: a part of the path is a file: give a directory", root, store.ErrDenied)
	}
	if err == nil {
		err = s.checkFileSystem(s.anchor)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", root, sentinel(err))
	}
	return s, nil
}

// nearest returns the deepest folder of a path that exists, or an error if an element of the path is
// not a folder.
func nearest(path string) (string, error) {
	for {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			return path, nil
		case err == nil:
			return "", fmt.Errorf("%w: %s is not a directory", store.ErrDenied, path)
		case !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path):
			return "", err
		}
		path = filepath.Dir(path)
	}
}

// pseudo holds the names of the kernel's file systems that cannot store files.
var pseudo = map[string]bool{"procfs": true, "sysfs": true, "cgroup": true, "devpts": true, "debugfs": true, "tracefs": true, "securityfs": true}

func (s *Store) checkFileSystem(dir string) error {
	name, err := s.fileSystem(dir)
	if err == nil && pseudo[name] {
		return fmt.Errorf("%w: %s is on %s, a file system of the kernel that keeps no files: give a directory on a disk", store.ErrDenied, dir, name)
	}
	if err != nil || name == "" || s.options.OneMachine {
		return err
	}
	return fmt.Errorf("%w: %s is on %s, where links and locks of several machines cannot be trusted; "+
		"use a local disk or s3://, or declare that only one machine uses it", store.ErrUnsupported, dir, name)
}

// String returns the directory as the user named it.
func (s *Store) String() string { return s.given }

// path returns the path of the file for the object with the given key.
func (s *Store) path(key string) (string, error) {
	if err := store.CheckKey(key); err != nil {
		return "", err
	}
	return filepath.Join(s.root, filepath.FromSlash(key)), nil
}

// openFile opens the file of an object. For a folder it returns an error, because a folder is not
// an object.
func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Get implements store.Bucket. It returns the bytes of one state of the object, because writes
// replace files and never change them.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	body, err := s.get(ctx, key, limit)
	if err != nil {
		return nil, "", wrap("get", key, err)
	}
	return body, localfile.VersionOf(body), nil
}

func (s *Store) get(ctx context.Context, key string, limit int64) ([]byte, error) {
	path, err := s.path(key)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", store.ErrTooLarge, size, limit)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(f, body); err != nil {
		return nil, err
	}
	return body, nil
}

// Open implements store.Bucket.
func (s *Store) Open(ctx context.Context, key string) (store.Object, error) {
	path, err := s.path(key)
	if err != nil {
		return nil, wrap("open", key, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap("open", key, err)
	}
	f, size, err := openFile(path)
	if err != nil {
		return nil, wrap("open", key, err)
	}
	return localfile.NewObject(ctx, f, size, func(err error) error { return wrap("read", key, err) }), nil
}
