// Package overlay puts a layer in a local directory over a store.Bucket. Writes go to the
// directory. Objects that were not written are read from the bucket below. The overlay never changes
// the bucket below, so a task can run a second time and leave the store unchanged. The caller
// compares the new result with the committed result, or uses it to rebuild lost parts.
//
// The input is a bucket and an empty local directory, which the caller removes. The output is a
// bucket that keeps the contract of package store with two exceptions. First, Create succeeds even
// if the bucket below has an object with the same key, and hides this object. Second, only one
// process may use an overlay, because the names of the written objects are in memory and nothing is
// durable.
//
// Package overlay imports store, store/localfile and the standard library.
package overlay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
)

// Bucket is a bucket with a layer of local writes over it.
type Bucket struct {
	base store.Bucket
	dir  string

	mu      sync.Mutex
	written map[string]written
	files   atomic.Int64 // number of files created so far, which makes file names unique
}

// written is the state of a key that was written or deleted in the layer.
type written struct {
	file    string // name of the file, "" if the object was deleted
	size    int64  // size in bytes, -1 if the object was deleted
	version store.Version
}

var _ store.Bucket = (*Bucket)(nil)

// New returns a bucket over base. It stores its layer in the directory dir, which must be empty.
func New(base store.Bucket, dir string) *Bucket {
	return &Bucket{base: base, dir: dir, written: map[string]written{}}
}

// String implements store.Bucket.
func (b *Bucket) String() string { return b.base.String() }

// OpenWritten opens an object that was written to the overlay. If the key was not written, the
// error is store.ErrNotFound, even if the bucket below has the key.
func (b *Bucket) OpenWritten(ctx context.Context, key string) (store.Object, error) {
	w, ok := b.look(key)
	if !ok || w.file == "" {
		return nil, wrap("open", key, store.ErrNotFound)
	}
	return openFile(ctx, key, w)
}

// Create implements store.Bucket, except that it ignores objects of the bucket below.
func (b *Bucket) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if err := check(ctx, key); err != nil {
		return "", wrap("create", key, err)
	}
	w, err := b.save(body, size)
	if err != nil {
		return "", wrap("create", key, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.written[key]
	if old.file == "" {
		b.written[key] = w
		return w.version, nil
	}
	err = os.Remove(w.file)
	if old.version != w.version {
		err = store.ErrExists
	}
	if err != nil {
		return "", wrap("create", key, err)
	}
	return old.version, nil
}

// Swap implements store.Bucket.
func (b *Bucket) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if err := check(ctx, key); err != nil {
		return "", wrap("swap", key, err)
	}
	next, err := b.save(body, size)
	if err != nil {
		return "", wrap("swap", key, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, here := b.written[key]
	same := now.file != "" && now.version == next.version
	if !here {
		now.version, same, err = b.below(ctx, key, body, size)
	}
	if err == nil && !same && now.version != old {
		err = wrap("swap", key, store.ErrConflict)
	}
	if err != nil || same {
		return now.version, errors.Join(err, os.Remove(next.file))
	}
	b.written[key] = next
	if now.file != "" {
		err = os.Remove(now.file)
	}
	return next.version, err
}

// below returns the version of an object in the bucket below, or the zero Version, and reports whether
// the object has the bytes of body.
func (b *Bucket) below(ctx context.Context, key string, body io.ReaderAt, size int64) (v store.Version, same bool, err error) {
	o, err := b.base.Open(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if v, err = o.Version(); err == nil && o.Size() == size {
		same, err = store.SameBytes(io.NewSectionReader(o, 0, size), body, size)
	}
	return v, same, errors.Join(err, o.Close())
}

// Get implements store.Bucket.
func (b *Bucket) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	if err := check(ctx, key); err != nil {
		return nil, "", wrap("get", key, err)
	}
	// The lock is held so that a concurrent Swap cannot remove the file before it is opened.
	b.mu.Lock()
	w, here := b.written[key]
	var body []byte
	var err error
	switch {
	case here && w.file == "":
		err = store.ErrNotFound
	case here && w.size > limit:
		err = store.ErrTooLarge
	case here:
		body, err = os.ReadFile(w.file)
	}
	b.mu.Unlock()
	if !here {
		return b.base.Get(ctx, key, limit)
	}
	if err != nil {
		return nil, "", wrap("get", key, err)
	}
	return body, w.version, nil
}

// Open implements store.Bucket.
func (b *Bucket) Open(ctx context.Context, key string) (store.Object, error) {
	if err := check(ctx, key); err != nil {
		return nil, wrap("open", key, err)
	}
	w, here := b.look(key)
	switch {
	case !here:
		return b.base.Open(ctx, key)
	case w.file == "":
		return nil, wrap("open", key, store.ErrNotFound)
	}
	return openFile(ctx, key, w)
}

// List implements store.Bucket.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		b.mu.Lock()
		var above []store.Info // sorted objects of the layer; a deleted object has a negative size
		for key, w := range b.written {
			if strings.HasPrefix(key, prefix) {
				above = append(above, store.Info{Key: key, Size: w.size})
			}
		}
		b.mu.Unlock()
		slices.SortFunc(above, func(a, b store.Info) int { return strings.Compare(a.Key, b.Key) })
		// aboveUntil yields the layer's objects whose keys come before key, or all of them. It returns
		// false if the consumer wants no more objects.
		aboveUntil := func(key string, all bool) bool {
			for len(above) > 0 && (all || above[0].Key < key) {
				i := above[0]
				above = above[1:]
				if i.Size >= 0 && !yield(i, nil) {
					return false
				}
			}
			return true
		}
		for i, err := range b.base.List(ctx, prefix) {
			if err != nil {
				yield(store.Info{}, err)
				return
			}
			if !aboveUntil(i.Key, false) {
				return
			}
			if len(above) > 0 && above[0].Key == i.Key {
				continue // the layer has this key too, and yields its object later
			}
			if !yield(i, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(store.Info{}, wrap("list", prefix, err))
			return
		}
		aboveUntil("", true)
	}
}

// Delete implements store.Bucket. It hides an object of the bucket below.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return wrap("delete", key, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.written[key]
	b.written[key] = written{size: -1}
	if old.file == "" {
		return nil
	}
	if err := os.Remove(old.file); err != nil {
		return wrap("delete", key, err)
	}
	return nil
}

func (b *Bucket) look(key string) (written, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.written[key]
	return w, ok
}

// save writes a body to a new file.
func (b *Bucket) save(body io.ReaderAt, size int64) (_ written, err error) {
	name := filepath.Join(b.dir, strconv.FormatInt(b.files.Add(1), 10))
	f, err := os.Create(name)
	if err != nil {
		return written{}, localfile.NameScratch(err, b.dir)
	}
	defer func() {
		if err != nil {
			err = localfile.NameScratch(errors.Join(err, os.Remove(name)), b.dir)
		}
	}()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.NewSectionReader(body, 0, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return written{}, err
	}
	return written{file: name, size: size, version: localfile.Version(h)}, nil
}

// check returns an error if the key is invalid or ctx has ended.
func check(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

func wrap(what, key string, err error) error { return fmt.Errorf("%s %q: %w", what, key, err) }

func openFile(ctx context.Context, key string, w written) (store.Object, error) {
	f, err := os.Open(w.file)
	if errors.Is(err, os.ErrNotExist) { // the object was deleted after the look-up
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, wrap("open", key, err)
	}
	return localfile.NewObject(ctx, f, w.size, func(err error) error { return wrap("read", key, err) }), nil
}
