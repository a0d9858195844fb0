// Package dirstore keeps a store in a local directory, with the promises of
// package store and one file an object, so that any tool can read the tables.
//
// In: keys and bodies. Out: files under the root, named as their keys. An object
// is visible whole or not at all and survives a power cut once its write
// returned: bodies go to temporary files in ROOT/.tmp, are synced, then linked
// (Create) or renamed under a lock (Swap), and the folders are synced. Locks are
// flocks, which die with their holder; they hold between processes of one
// machine, so network and FUSE file systems are refused. A version is the
// SHA-256 of the content. Reading never writes: the root is made by the first
// write. The package imports store and the standard library.
package dirstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Options change what Open accepts.
type Options struct {
	// OneMachine declares that processes of one machine alone use the directory.
	// It lifts the refusal of network and FUSE file systems.
	OneMachine bool
}

// Store is a store.Bucket and a store.Locker in a local directory.
type Store struct {
	root    string // absolute
	given   string // as the user wrote it
	anchor  string // the nearest folder that stood at Open: above it nothing is ours to sync
	options Options

	fsync      func(*os.File) error                      // tests watch the order and make it fail
	fileSystem func(dir string) (name string, err error) // sharedFileSystem

	mu       sync.Mutex
	prepared bool                // .tmp stands and was swept
	known    map[string]struct{} // folders whose entry in their parent is durable
	epoch    int                 // of known: how often it was forgotten
}

var (
	_ store.Bucket = (*Store)(nil)
	_ store.Locker = (*Store)(nil)
)

// Open returns the store in the directory root, which need not exist yet: the
// first write makes it. It fails with store.ErrUnsupported on a file system
// whose locks and links cannot be trusted, and with store.ErrDenied when root
// cannot be used as a directory.
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

// nearest is the lowest folder that exists on the way to path, or an error when
// something else than a folder is in the way.
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

// pseudo are the file systems through which a kernel shows itself.
var pseudo = map[string]bool{"procfs": true, "sysfs": true, "cgroup": true, "devpts": true, "debugfs": true, "tracefs": true, "securityfs": true}

func (s *Store) checkFileSystem(dir string) error {
	name, err := s.fileSystem(dir)
	if err == nil && pseudo[name] {
		return fmt.Errorf("%w: %s is on %s, which is the kernel's and keeps no files: give a directory on a disk", store.ErrDenied, dir, name)
	}
	if err != nil || name == "" || s.options.OneMachine {
		return err
	}
	return fmt.Errorf("%w: %s is on %s, where links and locks of several machines cannot be trusted; "+
		"use a local disk or s3://, or declare that one machine alone uses it", store.ErrUnsupported, dir, name)
}

// String is the directory as the user named it.
func (s *Store) String() string { return s.given }

// path is the file of a key.
func (s *Store) path(key string) (string, error) {
	if err := store.CheckKey(key); err != nil {
		return "", err
	}
	return filepath.Join(s.root, filepath.FromSlash(key)), nil
}

// openFile opens the file of an object; a folder is no object.
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

// Get implements store.Bucket. A file is never changed in place, so what is read
// is one state of the object.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	body, err := s.get(ctx, key, limit)
	if err != nil {
		return nil, "", wrap("get", key, err)
	}
	return body, digest(body), nil
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
	return &object{f: f, size: size, key: key, done: ctx.Err}, nil
}

type object struct {
	f    *os.File
	size int64
	key  string
	done func() error // the error of the context that bounds the reads
}

func (o *object) Size() int64  { return o.size }
func (o *object) Close() error { return o.f.Close() }

func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if err := o.done(); err != nil {
		return 0, wrap("read", o.key, err)
	}
	n, err := o.f.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = wrap("read", o.key, err)
	}
	return n, err
}

func digest(body []byte) store.Version {
	sum := sha256.Sum256(body)
	return store.Version(hex.EncodeToString(sum[:]))
}

func version(h hash.Hash) store.Version { return store.Version(hex.EncodeToString(h.Sum(nil))) }
