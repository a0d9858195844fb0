package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Get implements store.Bucket.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	return s.GetNew(ctx, key, limit, "")
}

// GetNew implements store.Renewer. The server sends no body for an unchanged object (RFC 9110, section
// 13.1.2).
func (s *Store) GetNew(ctx context.Context, key string, limit int64, have store.Version) ([]byte, store.Version, error) {
	name, err := s.object(key)
	if err != nil {
		return nil, "", fmt.Errorf("get: %w", err)
	}
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: name}
	if have != "" {
		in.IfNoneMatch = aws.String(string(have))
	}
	out, err := s.client.GetObject(ctx, in)
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.HTTPStatusCode() == http.StatusNotModified {
		return nil, have, fmt.Errorf("get %q: %w", key, store.ErrUnchanged)
	}
	if err != nil {
		return nil, "", fail(ctx, "get", key, err)
	}
	defer out.Body.Close()
	size := aws.ToInt64(out.ContentLength)
	if size > limit {
		return nil, "", fmt.Errorf("get %q: %w: %d bytes, at most %d are read", key, store.ErrTooLarge, size, limit)
	}
	at, err := tag(out.ETag)
	if err != nil {
		return nil, "", fail(ctx, "get", key, err)
	}
	if at == have { // the server ignores the condition
		return nil, have, fmt.Errorf("get %q: %w", key, store.ErrUnchanged)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(out.Body, body); err != nil {
		return nil, "", fail(ctx, "get", key, err)
	}
	return body, at, nil
}

// Open implements store.Bucket with one HEAD request. Every read of the object is one GET request for
// a range, which fails if the object has changed since the HEAD.
func (s *Store) Open(ctx context.Context, key string) (store.Object, error) {
	name, err := s.object(key)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: name})
	if err != nil {
		return nil, fail(ctx, "open", key, err)
	}
	if head.ContentLength == nil {
		return nil, fmt.Errorf("open %q: %w: the answer has no length", key, store.ErrUnsupported)
	}
	if _, err := tag(head.ETag); errors.Is(err, errWeak) { // every read has the condition If-Match
		return nil, fail(ctx, "open", key, err)
	}
	return &object{size: *head.ContentLength, etag: head.ETag, get: func(p []byte, off int64) (int, error) {
		out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
			Bucket: &s.bucket, Key: name, IfMatch: head.ETag,
			Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)),
		})
		if err != nil {
			if f := judge(err); f.unsettled && f.kind == nil {
				return 0, fmt.Errorf("read %q: %w since it was opened", key, store.ErrConflict)
			}
			return 0, fail(ctx, "read", key, err)
		}
		defer out.Body.Close()
		if aws.ToInt64(out.ContentLength) != int64(len(p)) {
			return 0, fmt.Errorf("read %q: %w: a request for a range of %d bytes returned %d bytes (range reads)", key, store.ErrUnsupported, len(p), aws.ToInt64(out.ContentLength))
		}
		n, err := io.ReadFull(out.Body, p)
		if err != nil {
			return n, fail(ctx, "read", key, err)
		}
		return n, nil
	}}, nil
}

type object struct {
	size int64
	etag *string
	get  func(p []byte, off int64) (int, error) // reads a range that lies within the object
}

func (o *object) Size() int64 { return o.size }

// Version implements store.Object.
func (o *object) Version() (store.Version, error) { return tag(o.etag) }

func (o *object) Close() error { return nil }

func (o *object) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case off < 0:
		return 0, errors.New("read: negative offset")
	case len(p) == 0:
		return 0, nil
	case off >= o.size:
		return 0, io.EOF
	case int64(len(p)) <= o.size-off:
		return o.get(p, off)
	}
	n, err := o.get(p[:o.size-off], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// List implements store.Bucket. It fetches 1,000 keys at a time.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if err := store.CheckPrefix(prefix); err != nil {
			yield(store.Info{}, fmt.Errorf("list: %w", err))
			return
		}
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix + prefix)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(store.Info{}, fail(ctx, "list", prefix, err))
				return
			}
			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), s.prefix)
				if store.CheckKey(key) != nil {
					continue // the key is a folder marker of a web console and not an object of the store
				}
				if !yield(store.Info{Key: key, Size: aws.ToInt64(o.Size)}, nil) {
					return
				}
			}
		}
	}
}

// Delete implements store.Bucket.
func (s *Store) Delete(ctx context.Context, key string) error {
	name, err := s.object(key)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	_, err = s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: name})
	if err == nil || errors.Is(kind(err), store.ErrNotFound) {
		return nil
	}
	return fail(ctx, "delete", key, err)
}

// skewTries is the largest number of requests that Skew sends. The SDK does not repeat a request
// whose response breaks off, so Skew does.
const skewTries = 3

// Skew implements store.Dater with the Date field of a response. Date has whole seconds, so Skew
// adds half a second.
func (s *Store) Skew(ctx context.Context) (time.Duration, error) {
	var out *s3.ListObjectsV2Output
	var err error
	for range skewTries {
		out, err = s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix), MaxKeys: aws.Int32(1)})
		if err == nil || !errors.Is(kind(err), store.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return 0, fail(ctx, "date of", s.String(), err)
	}
	date, dated := awsmiddleware.GetServerTime(out.ResultMetadata)
	here, ok := awsmiddleware.GetResponseAt(out.ResultMetadata)
	if !dated || !ok {
		return 0, fmt.Errorf("date of %q: %w: the answer has no Date", s, store.ErrUnsupported)
	}
	return date.Add(time.Second / 2).Sub(here), nil
}
