package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
)

const s3Scheme = "s3"

// openObjects returns the source of objects in a bucket: s3://bucket/key, a prefix that ends in a
// slash, or a pattern of keys. A prefix leaves out the objects that a directory would leave out.
func openObjects(ctx context.Context, name string, o Options) (Source, error) {
	address, how, err := splitName(name)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", name, err)
	}
	bucket, key, _ := strings.Cut(address[len(s3Scheme+"://"):], "/") // the letter case of the scheme does not matter
	if o.Bucket == nil {
		return nil, fmt.Errorf("source s3://…: %w", ErrMissing)
	}
	b, err := o.Bucket(ctx, s3Scheme+"://"+bucket)
	if err != nil {
		return nil, fmt.Errorf("source s3://…: %w", err) // the name is not quoted, because it may hold credentials in place of the bucket
	}
	return &files{name: name, how: how, in: &objects{b, s3Scheme + "://" + bucket + "/", key}}, nil
}

// objects is a place in a bucket.
type objects struct {
	bucket  store.Bucket
	address string // address of the bucket, with a slash at its end
	key     string // key, prefix or pattern
}

func (o *objects) names(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if o.key != "" && !strings.HasSuffix(o.key, "/") {
			obj, err := o.bucket.Open(ctx, o.key)
			if err == nil {
				err = obj.Close()
			}
			if err == nil || !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrKey) {
				yield(o.address+o.key, mediumError(err))
				return
			}
		}
		some := false
		for name, err := range o.list(ctx) {
			some = true
			if !yield(o.address+name, err) || err != nil {
				return
			}
		}
		if !some {
			yield(o.address+o.key, fmt.Errorf("%w (the bucket has no such object)", ErrMissing))
		}
	}
}

// list yields the keys that match the pattern, or that lie below the prefix.
func (o *objects) list(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix, match := o.key, func(key string) (bool, error) { return !hasHidden(key[len(o.key):]), nil }
		if i := strings.IndexAny(o.key, `*?[\`); i >= 0 {
			prefix, match = o.key[:i], func(key string) (bool, error) { return path.Match(o.key, key) }
		} else if prefix != "" && !strings.HasSuffix(prefix, "/") {
			prefix, match = prefix+"/", func(key string) (bool, error) { return !hasHidden(key[len(o.key)+1:]), nil }
		}
		for info, err := range o.bucket.List(ctx, prefix) {
			ok := err == nil
			if ok {
				ok, err = match(info.Key)
			}
			if errors.Is(err, path.ErrBadPattern) || errors.Is(err, store.ErrKey) {
				err = fmt.Errorf("%w (%w)", ErrMissing, err)
			} else {
				err = mediumError(err)
			}
			if (ok || err != nil) && (!yield(info.Key, err) || err != nil) {
				return
			}
		}
	}
}

// hasHidden reports whether a key has an element that a directory leaves out.
func hasHidden(key string) bool {
	for element := range strings.SplitSeq(key, "/") {
		if isHidden(element) {
			return true
		}
	}
	return false
}

// open opens an object. Reads fail if the object changes before close.
func (o *objects) open(ctx context.Context, name string) (*file, error) {
	obj, err := o.bucket.Open(ctx, strings.TrimPrefix(name, o.address))
	if err != nil {
		return nil, mediumError(err)
	}
	return &file{
		name: name, stream: io.NewSectionReader(&aheadReader{obj: obj}, 0, obj.Size()),
		at: obj, size: obj.Size(), close: obj.Close,
	}, nil
}

// mediumError returns the error for a medium that failed: a disk, or a bucket.
func mediumError(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("%w (%v)", ErrUnavailable, err)
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w (%v)", ErrChanged, err)
	case errors.Is(err, store.ErrDenied), errors.Is(err, store.ErrUnsupported):
		return err
	}
	return fmt.Errorf("%w (%w)", ErrUnreadable, err)
}

// Ahead returns a reader that reads an object in large ranges, for callers that read from start to end.
func Ahead(obj store.Object) io.ReaderAt { return &aheadReader{obj: obj} }

type aheadReader struct {
	obj store.Object
	at  int64
	buf []byte
}

// aheadBytes is the number of bytes that aheadReader requests in one range. At this size, a file
// of a gigabyte takes about a hundred requests.
const aheadBytes = 8 << 20

// ReadAt implements io.ReaderAt.
func (a *aheadReader) ReadAt(p []byte, off int64) (int, error) {
	if off >= a.obj.Size() {
		return 0, io.EOF
	}
	if off < a.at || off >= a.at+int64(len(a.buf)) {
		n := min(aheadBytes, a.obj.Size()-off)
		if int64(cap(a.buf)) < n {
			a.buf = make([]byte, n)
		}
		a.at, a.buf = off, a.buf[:n]
		if m, err := a.obj.ReadAt(a.buf, off); int64(m) < n {
			a.buf = a.buf[:0]
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
	n := copy(p, a.buf[off-a.at:])
	if n < len(p) && off+int64(n) >= a.obj.Size() {
		return n, io.EOF
	}
	return n, nil
}
