package dirstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
)

// copyBuffer is the size of the buffer for copying a body, in bytes.
const copyBuffer = 256 << 10

// linkTries bounds how often a call starts again because other processes create or remove files or
// folders that it needs. If so many tries fail, the cause is something else, such as a broken
// symbolic link.
const linkTries = 1000

// Create implements store.Bucket. It uses link(2), which fails if the name exists.
func (s *Store) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	path, err := s.path(key)
	if err != nil {
		return "", wrap("create", key, err)
	}
	var v store.Version
	err = retryWrite(func() (err error) {
		v, err = s.create(ctx, path, body, size)
		return err
	})
	if err != nil {
		return "", wrap("create", key, err)
	}
	return v, nil
}

func (s *Store) create(ctx context.Context, path string, body io.ReaderAt, size int64) (store.Version, error) {
	var tmp *staged
	defer func() { tmp.discard() }()
	for range linkTries {
		switch v, err := compare(ctx, path, body, size); {
		case err == nil:
			// The process that linked the object may not have synced the folder yet.
			return v, s.syncFolders(filepath.Dir(path))
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if tmp == nil {
			var err error
			if tmp, err = s.stage(ctx, body, size); err != nil {
				return "", err
			}
		}
		switch done, err := s.link(tmp, path); {
		case err != nil:
			return "", err
		case done:
			return tmp.version, s.syncFolders(filepath.Dir(path))
		}
	}
	return "", fmt.Errorf("%w: the folders of %s cannot be created, or somebody removes them repeatedly", store.ErrUnavailable, path)
}

// link gives the staged file the name of the object. It returns false if the caller must compare and
// link again: another writer was faster, or a folder was missing.
func (s *Store) link(tmp *staged, path string) (done bool, err error) {
	switch err := os.Link(tmp.f.Name(), path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrExist):
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return false, fmt.Errorf("%s is not an object but a folder or a special file", path)
		}
		return false, nil
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(tmp.f.Name()); err != nil {
			return false, s.emptied(err)
		}
		// If a folder is missing, other known folders may be missing too.
		s.forget()
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			err = nil // another process is removing the folders, so the caller tries again
		}
		return false, inTheWay(err)
	case errors.Is(err, syscall.EPERM):
		return false, fmt.Errorf("%w: %s", errNoLinks, path)
	default:
		return false, inTheWay(err)
	}
}

// inTheWay replaces ENOTDIR with a clear error: an object has the name of a folder of the key.
func inTheWay(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("an object has the name that this key needs for a folder (%s)", err.Error())
	}
	return err
}

// Swap implements store.Bucket. It holds the lock of the key while it compares the versions and
// replaces the file.
func (s *Store) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	path, err := s.path(key)
	if err != nil {
		return "", wrap("swap", key, err)
	}
	v, err := localfile.VersionIn(&bounded{io.NewSectionReader(body, 0, size), ctx.Err})
	if err == nil {
		err = retryWrite(func() error { return s.swap(ctx, path, key, body, size, v, old) })
	}
	if err != nil {
		return "", wrap("swap", key, err)
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, path, key string, body io.ReaderAt, size int64, v, old store.Version) error {
	if err := s.prepare(); err != nil {
		return err
	}
	lock, err := s.lockKey(ctx, key)
	if err != nil {
		return err
	}
	defer lock.Close() // nolint:errcheck // the lock file has no content to lose
	var tmp *staged
	defer func() { tmp.discard() }()
	for range linkTries {
		switch now, err := current(ctx, path); {
		case err != nil:
			return err
		case now == v: // an earlier call of this caller has written the body (see store.Bucket)
			return s.syncFolders(filepath.Dir(path))
		case now != old:
			return fmt.Errorf("%w: it is %s, not %s", store.ErrConflict, short(now), short(old))
		}
		if tmp == nil {
			if tmp, err = s.stage(ctx, body, size); err != nil {
				return err
			}
		}
		// The lock counts only if its file still exists. If somebody empties .tmp after this check,
		// the staged file is gone too, and the rename fails.
		if !stillNamed(lock) {
			return s.emptied(fs.ErrNotExist)
		}
		if old != "" {
			if err := os.Rename(tmp.f.Name(), path); err != nil {
				return s.emptied(err)
			}
			return s.syncFolders(filepath.Dir(path))
		}
		// A first version is linked, because a rename would replace the object of a concurrent Create,
		// which takes no lock.
		switch done, err := s.link(tmp, path); {
		case err != nil:
			return err
		case done:
			return s.syncFolders(filepath.Dir(path))
		}
	}
	return fmt.Errorf("%w: the folders of %s cannot be created, or somebody removes them repeatedly", store.ErrUnavailable, path)
}

func short(v store.Version) string {
	if v == "" {
		return "absent"
	}
	return fmt.Sprintf("at version %.12s", string(v))
}

// current returns the version of the object at path, or the zero Version if there is none.
func current(ctx context.Context, path string) (store.Version, error) {
	f, _, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	return localfile.VersionIn(&bounded{f, ctx.Err})
}

// compare returns the version of the object at path if the object has the same bytes as body. The
// error is store.ErrExists if the bytes differ, and fs.ErrNotExist if there is no object.
func compare(ctx context.Context, path string, body io.ReaderAt, size int64) (store.Version, error) {
	f, length, err := openFile(path)
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return "", inTheWay(err)
		}
		return "", err
	}
	defer f.Close()
	if length != size {
		return "", fmt.Errorf("%w: it has %d bytes, not %d", store.ErrExists, length, size)
	}
	h := sha256.New()
	same, err := store.SameBytes(io.TeeReader(&bounded{f, ctx.Err}, h), body, size)
	if err != nil {
		return "", err
	}
	if !same {
		return "", fmt.Errorf("%w: its %d bytes differ", store.ErrExists, size)
	}
	return localfile.Version(h), nil
}

// bounded is a reader whose reads fail once its context has ended.
type bounded struct {
	r      io.Reader
	ctxErr func() error // Err of the context
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctxErr(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}

// staged is a temporary file with the body of an object. The flock on the file shows sweep that the
// writer is alive.
type staged struct {
	f       *os.File
	version store.Version
}

func (t *staged) discard() {
	if t == nil {
		return
	}
	_ = os.Remove(t.f.Name()) // fails after a rename, which does no harm
	_ = t.f.Close()
}

// stage writes size bytes of body to a new temporary file and syncs the file. It never repairs an
// older file: after a failed fsync, the cached pages of the file may be lost.
func (s *Store) stage(ctx context.Context, body io.ReaderAt, size int64) (*staged, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	f, err := s.temporary()
	if err != nil {
		return nil, err
	}
	t := &staged{f: f}
	if file, ok := body.(store.File); ok {
		if ok, err := s.adopt(t, file, size); ok || err != nil {
			if err != nil {
				t.discard()
			}
			return t, err
		}
	}
	h := sha256.New()
	if err := s.fill(ctx, f, h, body, size); err != nil {
		t.discard()
		return nil, err
	}
	t.version = localfile.Version(h)
	return t, nil
}

// adopt replaces the empty file t by a link to body, and syncs body. It returns false if the bytes must be
// copied: body is in another file system, or has another owner, group or mode than a new file in the store.
func (s *Store) adopt(t *staged, body store.File, size int64) (bool, error) {
	a, err := t.f.Stat()
	if err != nil {
		return false, err
	}
	b, err := body.Stat()
	if err != nil || b.Size() != size || b.Mode() != a.Mode() || s.copies.Load() {
		return false, err
	}
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	if x.Dev != y.Dev || x.Uid != y.Uid || x.Gid != y.Gid {
		return false, nil
	}
	if ok, err := tryLock(body.File); !ok || err != nil { // before the link, so that no sweep removes it
		return false, err
	}
	name := filepath.Join(s.tmp(), tmpPrefix+rand.Text())
	if os.Link(body.Name(), name) != nil {
		return false, nil // copying fails too, and says why, unless only links are impossible
	}
	if err := os.Rename(name, t.f.Name()); err != nil {
		_ = os.Remove(name)
		return false, s.emptied(err)
	}
	if err := s.fsync(body.File); err != nil {
		s.copies.Store(true) // the cached pages may be lost, and another fsync of the file would not say so
		return false, err
	}
	t.version = store.Version(body.SHA256)
	return true, nil
}

func (s *Store) fill(ctx context.Context, f *os.File, h hash.Hash, body io.ReaderAt, size int64) error {
	from := &bounded{io.NewSectionReader(body, 0, size), ctx.Err}
	buffer := make([]byte, max(1, min(size, copyBuffer)))
	n, err := io.CopyBuffer(io.MultiWriter(f, h), from, buffer)
	if err == nil && n != size {
		err = fmt.Errorf("the body ended after %d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err
	}
	return s.fsync(f)
}

// temporary creates an empty file in .tmp and takes its flock.
func (s *Store) temporary() (*os.File, error) {
	for {
		name := filepath.Join(s.tmp(), tmpPrefix+rand.Text())
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return nil, s.emptied(err)
		}
		// The sweep of another process may take the flock first and remove the file.
		ok, err := tryLock(f)
		if ok && stillNamed(f) {
			return f, nil
		}
		_ = f.Close()
		if err != nil {
			_ = os.Remove(name)
			return nil, err
		}
	}
}

// Delete implements store.Bucket. It also removes the folders that become empty.
func (s *Store) Delete(ctx context.Context, key string) error {
	path, err := s.path(key)
	if err != nil {
		return wrap("delete", key, err)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && info.IsDir():
		return nil // a missing object needs no lock file
	case err == nil:
		err = s.remove(ctx, path, key)
	}
	if err != nil {
		return wrap("delete", key, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, path, key string) error {
	if err := s.prepare(); err != nil {
		return err
	}
	lock, err := s.lockKey(ctx, key)
	if err != nil {
		return err
	}
	defer lock.Close() // nolint:errcheck // the lock file has no content to lose
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	folder := filepath.Dir(path)
	for folder != s.root && syscall.Rmdir(folder) == nil {
		folder = filepath.Dir(folder)
		s.forget()
	}
	_, err = s.syncFolder(folder)
	return err
}
