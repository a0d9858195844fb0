// Package localfile holds the code that is common to stores of local files: objects that are open
// files, versions that are digests, and full scratch directories.
//
// The input is files and bodies. The output is store.Object and store.Version values, and errors that name what is full. Package
// localfile imports store and the standard library.
package localfile

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
	"syscall"

	"crawlbatch.io/crawlbatch/formats/store"
)

// object is a store.Object that is an open file.
type object struct {
	f      *os.File
	size   int64
	ctxErr func() error // Err of the context; reads fail after the context has ended
	wrap   func(error) error
}

// NewObject returns an object that reads the open file f of size bytes. Reads fail after ctx has
// ended. wrap adds details to the errors of reads.
func NewObject(ctx context.Context, f *os.File, size int64, wrap func(error) error) store.Object {
	return &object{f, size, ctx.Err, wrap}
}

// Size implements store.Object.
func (o *object) Size() int64 { return o.size }

// Version implements store.Object. It reads the whole file.
func (o *object) Version() (store.Version, error) {
	v, err := VersionIn(io.NewSectionReader(o, 0, o.size))
	if err != nil {
		return "", o.wrap(err)
	}
	return v, nil
}

// Close implements io.Closer.
func (o *object) Close() error { return o.f.Close() }

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if err := o.ctxErr(); err != nil {
		return 0, o.wrap(err)
	}
	n, err := o.f.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = o.wrap(err)
	}
	return n, err
}

// Version returns the version of the content whose SHA-256 is in h.
func Version(h hash.Hash) store.Version { return store.Version(hex.EncodeToString(h.Sum(nil))) }

// VersionIn returns the version of the content of r.
func VersionIn(r io.Reader) (store.Version, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(h, r, make([]byte, copyBuffer)); err != nil {
		return "", err
	}
	return Version(h), nil
}

// copyBuffer is the size of the buffer for reading a file, in bytes.
const copyBuffer = 256 << 10

// VersionOf returns the version of body.
func VersionOf(body []byte) store.Version {
	sum := sha256.Sum256(body)
	return store.Version(hex.EncodeToString(sum[:]))
}

// ErrScratch means that a scratch directory is full. If the store is full, the error is store.ErrFull.
var ErrScratch = errors.New("make room, or set TMPDIR to another file system")

// NameScratch adds ErrScratch and the scratch directory to the error of a file in it for which there is no room. It leaves
// other errors as they are, also those of a full store.
func NameScratch(err error, scratch string) error {
	file, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) || errors.Is(err, store.ErrFull) || errors.Is(err, ErrScratch) {
		return err
	}
	if in, failed := filepath.Rel(scratch, file.Path); failed != nil || !filepath.IsLocal(in) {
		return err
	}
	return fmt.Errorf("the scratch directory %s is full: %w: %w", scratch, ErrScratch, err)
}
