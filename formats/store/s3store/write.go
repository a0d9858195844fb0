package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"crawlbatch.io/crawlbatch/formats/store"
)

const (
	// If a body has more than lookFirst bytes, Create looks for an existing object before the
	// upload. A large upload that loses to another writer wastes its bytes, and the server may reset
	// its connection.
	lookFirst = 1 << 20
	// A body of more than inParts bytes is uploaded in parts.
	inParts = 64 << 20
)

// Create implements store.Bucket.
func (s *Store) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	name, err := s.object(key)
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	src := &bodyReader{r: body, size: size}
	look := func(ctx context.Context) (verdict, store.Version, error) { return s.compare(ctx, name, src) }
	if size > lookFirst {
		switch v, at, err := look(ctx); {
		case src.failed() != nil:
			return "", fmt.Errorf("create %q: read the body: %w", key, src.failed())
		case err != nil && !judge(err).unsettled:
			return "", fail(ctx, "create", key, err)
		case err == nil && v == mine:
			return at, nil
		case err == nil && v == anothers:
			return "", fmt.Errorf("create %q: %w", key, store.ErrExists)
		}
	}
	send := func(ctx context.Context) (store.Version, error) {
		return s.put(ctx, &s3.PutObjectInput{Key: name, IfNoneMatch: aws.String("*")}, src)
	}
	if size > inParts {
		up := &multipartUpload{s: s, name: name, src: src}
		defer up.abort(ctx)
		send = up.send
	}
	return s.settle(ctx, conditional{"create", key, src, send, look, store.ErrExists})
}

// Swap implements store.Bucket.
func (s *Store) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	name, err := s.object(key)
	if err != nil {
		return "", fmt.Errorf("swap: %w", err)
	}
	src := &bodyReader{r: body, size: size}
	return s.settle(ctx, conditional{
		call: "swap", key: key, src: src, lost: store.ErrConflict,
		send: func(ctx context.Context) (store.Version, error) {
			in := &s3.PutObjectInput{Key: name, IfMatch: aws.String(string(old))}
			if old == "" {
				in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
			}
			at, err := s.put(ctx, in, src)
			if errors.Is(kind(err), store.ErrNotFound) {
				err = errGone
			}
			return at, err
		},
		look: func(ctx context.Context) (verdict, store.Version, error) {
			v, at, err := s.compare(ctx, name, src)
			switch {
			case v == anothers && at == old:
				v = absent // the old version still exists, so the swap has not taken effect yet
			case err == nil && v == absent && old != "":
				v = anothers // the object was deleted: its version will never be old again, so the swap has lost
			}
			return v, at, err
		},
	})
}

// errGone replaces a 404 response to a request with If-Match. As after a 412 response, the store must
// read back the object: an earlier try may have taken effect.
var errGone = errors.New("there is no object to replace")

// kind returns the error of package store that fits an error of the SDK, or nil.
func kind(err error) error {
	if err == nil {
		return nil
	}
	return judge(err).kind
}

// verdict says what an object shows about a conditional write.
type verdict int

const (
	absent   verdict = iota // the write has not taken effect: there is no object, or the object is still the old one
	mine                    // the object has the bytes of the write
	anothers                // the object has other bytes, so another writer has won
)

// conditional describes one conditional write.
type conditional struct {
	call, key string
	src       *bodyReader
	send      func(context.Context) (store.Version, error)          // sends the write once
	look      func(context.Context) (verdict, store.Version, error) // reads back the object
	lost      error                                                 // error to return if another writer has won
}

// settle sends a conditional write until its outcome is known or ctx ends. If there is no response,
// or its status is 409, 412 or 5xx, settle reads back the object. If the object has the bytes of the
// write, the write has won: a response was lost, or another process sent the same bytes. If the
// object has other bytes, the write has lost. A request that reaches the server later has no effect,
// because its condition cannot become true again. In all other cases settle sends the write again.
func (s *Store) settle(ctx context.Context, w conditional) (store.Version, error) {
	// writeError returns the error with which settle ends, or nil if the outcome is still unknown.
	writeError := func(call string, err error, sent int) error {
		switch {
		case w.src.failed() != nil:
			return fmt.Errorf("%s %q: read the body: %w", w.call, w.key, w.src.failed())
		case ctx.Err() != nil:
			return unknown(ctx, w, sent)
		case err != nil && !judge(err).unsettled:
			return fail(ctx, call, w.key, err)
		}
		return nil
	}
	for sent := 1; ; sent++ {
		at, err := func() (store.Version, error) {
			ctx, cancel := tryContext(ctx, w.src.size)
			defer cancel()
			return w.send(ctx)
		}()
		if err == nil {
			return at, nil
		}
		if err := writeError(w.call, err, sent); err != nil {
			return "", err
		}
		v, at, looked := func() (verdict, store.Version, error) {
			ctx, cancel := tryContext(ctx, w.src.size)
			defer cancel()
			return w.look(ctx)
		}()
		if err := writeError("read back after "+w.call, looked, sent); err != nil {
			return "", err
		}
		switch {
		case looked == nil && v == mine:
			return at, nil
		case looked == nil && v == anothers:
			return "", fmt.Errorf("%s %q: %w", w.call, w.key, w.lost)
		}
		if s.options.OnRetry != nil {
			s.options.OnRetry(w.key, sent, fail(ctx, w.call, w.key, err))
		}
		if err := s.sleep(ctx, s.backoff.Delay(sent-1)); err != nil {
			return "", unknown(ctx, w, sent)
		}
	}
}

func unknown(ctx context.Context, w conditional, sent int) error {
	return fmt.Errorf("%s %q: %w: stopped before the outcome was known (sent %d times): %w", w.call, w.key, store.ErrUnavailable, sent, ctx.Err())
}

// put sends one PUT without retries.
func (s *Store) put(ctx context.Context, in *s3.PutObjectInput, src *bodyReader) (store.Version, error) {
	in.Bucket = &s.bucket
	in.Body, in.ContentLength = src.section(0, src.size), aws.Int64(src.size)
	in.ContentType = aws.String("application/octet-stream")
	in.StorageClass = types.StorageClass(s.options.StorageClass)
	in.ServerSideEncryption, in.SSEKMSKeyId = s.encryption()
	out, err := s.client.PutObject(ctx, in, noRetry)
	if err != nil {
		return "", err
	}
	return tag(out.ETag)
}

func (s *Store) encryption() (types.ServerSideEncryption, *string) {
	if s.options.SSEKMSKey == "" {
		return "", nil
	}
	return types.ServerSideEncryptionAwsKms, &s.options.SSEKMSKey
}

func noRetry(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// errWeak means that a response has a weak ETag, as proxies make it that compress responses. If-Match
// never matches a weak ETag (RFC 9110, section 13.1.1), so that no swap could ever win.
var errWeak = errors.New("weak ETag")

// tag returns the version that is in a response's ETag. If a response to a write has no ETag, the
// caller must read back the object. A weak ETag is errWeak.
func tag(etag *string) (store.Version, error) {
	switch {
	case etag == nil || *etag == "":
		return "", errors.New("the answer has no ETag")
	case strings.HasPrefix(*etag, "W/"), strings.HasPrefix(*etag, "w/"):
		return "", errWeak
	}
	return store.Version(*etag), nil
}

// compare reads back an object and compares its bytes with src.
func (s *Store) compare(ctx context.Context, name *string, src *bodyReader) (verdict, store.Version, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: name})
	if errors.Is(kind(err), store.ErrNotFound) {
		return absent, "", nil
	}
	if err != nil {
		return absent, "", err
	}
	defer out.Body.Close()
	at, err := tag(out.ETag)
	if err != nil {
		return absent, "", err
	}
	if out.ContentLength == nil {
		return absent, "", errors.New("the answer has no length")
	}
	if *out.ContentLength != src.size {
		return anothers, at, nil
	}
	same, err := store.SameBytes(out.Body, src, src.size)
	switch {
	case err != nil:
		return absent, "", err
	case same:
		return mine, at, nil
	default:
		return anothers, at, nil
	}
}

// bodyReader is a body that keeps the error of its own reads. The SDK reports such an error like a
// network error, after which settle would send the write again.
type bodyReader struct {
	r    io.ReaderAt
	size int64

	mu  sync.Mutex
	err error
}

func (b *bodyReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.r.ReadAt(p, off)
	if n < len(p) && off+int64(n) < b.size {
		if err == nil || err == io.EOF {
			err = fmt.Errorf("it ended after %d of %d bytes: %w", off+int64(n), b.size, io.ErrUnexpectedEOF)
		}
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
	}
	return n, err
}

func (b *bodyReader) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *bodyReader) section(off, n int64) *io.SectionReader { return io.NewSectionReader(b, off, n) }
