package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"crawlbatch.io/crawlbatch/formats/store"
)

// wrap adds the call, the key and the result of sentinel to an error.
func wrap(call, key string, err error) error {
	return fmt.Errorf("%s %q: %w", call, key, sentinel(err))
}

// sentinel wraps an error of the file system in the matching error of package store, such as
// store.ErrFull, and adds advice. An error that already wraps an error of package store stays
// unchanged.
func sentinel(err error) error {
	for _, known := range []error{store.ErrNotFound, store.ErrExists, store.ErrConflict, store.ErrTooLarge, store.ErrKey,
		store.ErrDenied, store.ErrUnsupported, store.ErrFull, store.ErrUnavailable} {
		if errors.Is(err, known) {
			return err
		}
	}
	meaning, advice := error(nil), ""
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return store.ErrNotFound
	case errors.Is(err, syscall.ENOSPC):
		meaning, advice = store.ErrFull, "free some space, or move the store to a larger disk"
	case errors.Is(err, syscall.EDQUOT):
		meaning, advice = store.ErrFull, "the disk quota of this user is used up"
	case errors.Is(err, syscall.EROFS):
		meaning, advice = store.ErrDenied, "the file system is mounted read-only"
	case errors.Is(err, fs.ErrPermission):
		meaning, advice = store.ErrDenied, "this user lacks the permission; check the owner and mode of the folder"
	case errors.Is(err, syscall.EXDEV):
		meaning, advice = store.ErrUnsupported, "the whole store must be on one file system; none of its folders may be a mount point"
	case errors.Is(err, errNoLinks):
		meaning, advice = store.ErrUnsupported, "this file system has no hard links; use another"
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE),
		errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ESTALE):
		meaning, advice = store.ErrUnavailable, "the machine cannot do this at the moment"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", meaning, advice, err)
}

// errNoLinks means that link(2) returned EPERM: the file system has no hard links.
var errNoLinks = errors.New("link: operation not permitted")
