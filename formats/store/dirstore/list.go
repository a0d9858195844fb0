package dirstore

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"crawlbatch.io/crawlbatch/formats/store"
)

// List implements store.Bucket. It reads a folder only when it reaches the keys in that folder, and
// holds only the entries of the folders that lead to the current key.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if err := store.CheckPrefix(prefix); err != nil {
			yield(store.Info{}, wrap("list", prefix, err))
			return
		}
		w := walk{ctx.Err, s.root, prefix, yield}
		folder, _ := path.Split(prefix)
		if _, err := w.listFolder(folder); err != nil {
			yield(store.Info{}, wrap("list", prefix, err))
		}
	}
}

type walk struct {
	ctxErr func() error // Err of the context of List
	root   string
	prefix string
	yield  func(store.Info, error) bool
}

// listFolder yields the objects below a folder in key order. folder is "" or ends in a slash. more
// is false if the consumer wants no more objects.
func (w *walk) listFolder(folder string) (more bool, err error) {
	if err := w.ctxErr(); err != nil {
		return false, err
	}
	entries, err := os.ReadDir(filepath.Join(w.root, filepath.FromSlash(folder)))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return true, nil // the store is still empty, or the folder has just been deleted
	case err != nil:
		return false, err
	}
	// Folders are sorted as if their names ended in a slash: the key "a.b" comes before the key "a/b".
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		key := folder + sortName(e)
		if folder == "" && e.Name() == store.Reserved {
			continue
		}
		switch {
		case e.IsDir() && (strings.HasPrefix(key, w.prefix) || strings.HasPrefix(w.prefix, key)):
			more, err = w.listFolder(key)
		case e.Type().IsRegular() && strings.HasPrefix(key, w.prefix):
			more, err = w.file(key, e)
		default:
			continue
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (w *walk) file(key string, e fs.DirEntry) (more bool, err error) {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return w.yield(store.Info{Key: key, Size: info.Size()}, nil), nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
