// Package s3store keeps a store in a bucket, below a prefix. The server is S3, or another server
// that speaks the protocol of S3 with conditional writes (R2, MinIO, versitygw).
//
// The input is keys and bodies. The output is objects named prefix/key. A version is an ETag. Create
// is a PUT with If-None-Match: *. A large body is uploaded in parts, and only the request that
// completes the upload has this condition. Swap is a PUT with If-Match. The SDK does not retry these
// conditional requests. If the response is missing or does not tell which writer won, the store
// reads back the object (see settle). The SDK repeats reads a few times. Each try of a request has a
// time limit, which grows with the size of the body. No error contains credentials. Weak ETags, which
// some proxies make, are store.ErrUnsupported at the first read or write.
//
// Package s3store imports store, the AWS SDK and the standard library.
package s3store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Scheme is the prefix of the address of every store in S3.
const Scheme = "s3://"

// Options are the options of a store. The zero value selects the defaults.
type Options struct {
	// SSEKMSKey is the KMS key that encrypts new objects. Empty means the default of the bucket.
	SSEKMSKey string
	// StorageClass is the class of new objects, such as STANDARD_IA. Empty means the default of the
	// bucket.
	StorageClass string
	// OnRetry, if set, is called before a conditional write is sent again. Its arguments are the
	// key, the number of times that the write was sent, and the error of the last time.
	OnRetry func(key string, sent int, err error)
	// OnSilence, if set, is called once by Reach if the store has not answered within three
	// seconds. Its arguments are the endpoint's host and the time until which Reach tries.
	OnSilence func(host string, until time.Time)
}

// Store is a store.Bucket and a store.Dater in an S3 bucket.
type Store struct {
	client  *s3.Client
	bucket  string
	prefix  string // prefix of all object names: "", or a text that ends in a slash
	options Options

	backoff store.Backoff
	sleep   func(context.Context, time.Duration) error
}

var (
	_ store.Bucket = (*Store)(nil)
	_ store.Dater  = (*Store)(nil)
)

// Open returns the store at address, which is s3://bucket or s3://bucket/prefix. Credentials,
// region and endpoint come from the default chain of the AWS SDK. Requests to a custom endpoint
// (AWS_ENDPOINT_URL_S3) use path style. Open sends no request to the store: call Reach or
// store.Probe to find out whether it answers. But Open may have to ask a service for credentials. If that
// service is away, the error is store.ErrUnavailable.
func Open(ctx context.Context, address string, options Options) (*Store, error) {
	bucket, prefix, err := parse(address)
	if err != nil {
		return nil, err
	}
	s := &Store{bucket: bucket, prefix: prefix, options: options, sleep: store.Sleep}
	if s.client, err = newClient(ctx); err != nil {
		return nil, fmt.Errorf("open store %q: %w", s, err)
	}
	return s, nil
}

// bucketName matches the names of buckets. It also matches names that S3 refuses for new buckets,
// because old buckets and other servers have them.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$`)

func parse(address string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(address, Scheme)
	if !ok {
		return "", "", errors.New("open store: the address must be s3://bucket or s3://bucket/prefix")
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	if !bucketName.MatchString(bucket) {
		// The error does not quote the address, which may contain credentials.
		return "", "", errors.New("open store: the text after s3:// does not begin with a bucket name; credentials go into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, an endpoint into AWS_ENDPOINT_URL_S3")
	}
	if prefix = strings.TrimSuffix(prefix, "/"); prefix == "" {
		return bucket, "", nil
	}
	if err := store.CheckKey(prefix); err != nil || len(prefix) > 100 {
		return "", "", fmt.Errorf("open store %q: the prefix must have at most 100 bytes, single slashes, and no . or .. between slashes", address)
	}
	return bucket, prefix + "/", nil
}

func newClient(ctx context.Context) (*s3.Client, error) {
	transport := awshttp.NewBuildableClient().WithReadTimeout(longLimit).WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = 64 // a task reads many ranges at the same time, so many connections stay open
	}).WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectLimit })
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(transport), config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("%w: the AWS configuration cannot be loaded: %s", store.ErrDenied, plain(err))
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, refusedCredentials(cfg.Credentials, err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.DisableLogOutputChecksumValidationSkipped = true
		o.HTTPClient = timedClient{o.HTTPClient}
		o.APIOptions = append(o.APIOptions, leaveUnsigned)
		if o.BaseEndpoint == nil {
			return
		}
		o.UsePathStyle = true
		if o.Region == "" {
			o.Region = "us-east-1" // servers other than AWS ignore the region or use us-east-1
		}
		// Some servers do not support the trailing checksums that the SDK adds by default. TLS, or
		// without TLS the signature of the body, protects the body too.
		if os.Getenv("AWS_REQUEST_CHECKSUM_CALCULATION") == "" {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
	if client.Options().Region == "" {
		return nil, fmt.Errorf("%w: no region; set AWS_REGION to that of the bucket", store.ErrDenied)
	}
	return client, nil
}

// acceptEncoding is the header field that leaveUnsigned takes out of the signature.
const acceptEncoding = "Accept-Encoding"

// heldEncoding is the key of the context value with the field's value while the request is signed.
type heldEncoding struct{}

// leaveUnsigned keeps Accept-Encoding out of the signature of requests. The SDK sets the field to identity
// and signs it, but Cloudflare and the front end of Google Cloud Storage rewrite it, after which the
// signature no longer matches. The field is needed: without it, net/http asks for gzip.
func leaveUnsigned(stack *middleware.Stack) error {
	const signing = "Signing" // ID of the SDK's middleware that signs
	hold := middleware.FinalizeMiddlewareFunc("HoldAcceptEncoding", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if r, ok := in.Request.(*smithyhttp.Request); ok {
			ctx = middleware.WithStackValue(ctx, heldEncoding{}, r.Header.Get(acceptEncoding))
			r.Header.Del(acceptEncoding)
		}
		return next.HandleFinalize(ctx, in)
	})
	restore := middleware.FinalizeMiddlewareFunc("RestoreAcceptEncoding", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if r, ok := in.Request.(*smithyhttp.Request); ok {
			if held, _ := middleware.GetStackValue(ctx, heldEncoding{}).(string); held != "" {
				r.Header.Set(acceptEncoding, held)
			}
		}
		return next.HandleFinalize(ctx, in)
	})
	if err := stack.Finalize.Insert(hold, signing, middleware.Before); err != nil {
		return err
	}
	return stack.Finalize.Insert(restore, signing, middleware.After)
}

// String returns the address of the store as a user writes it.
func (s *Store) String() string {
	return strings.TrimSuffix(Scheme+s.bucket+"/"+s.prefix, "/")
}

// object returns the name of a key in the bucket.
func (s *Store) object(key string) (*string, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, err
	}
	return aws.String(s.prefix + key), nil
}

// tryContext returns a context for one try at a conditional write. Its time limit depends on the size of
// the object, in bytes, and covers all requests of the try.
func tryContext(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, longLimit+transfer(size))
}
