package s3store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"crawlbatch.io/crawlbatch/formats/store"
)

// The time limits of Reach.
const (
	reachWithin = 12 * time.Second // limit for all tries together
	reachTry    = 4 * time.Second  // limit for one try
	reachPause  = 2 * time.Second  // longest pause between two tries
	reachSilent = 3 * time.Second  // time without an answer after which Reach calls OnSilence
)

// Reach sends a small request, so that a command reports a wrong address, refused credentials or a
// missing bucket within seconds. After 12 seconds without a response, Reach returns
// store.ErrUnavailable.
func (s *Store) Reach(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	if s.options.OnSilence != nil {
		until := time.Now().Add(reachWithin)
		silent := time.AfterFunc(reachSilent, func() { s.options.OnSilence(s.host(ctx), until) })
		defer silent.Stop()
	}
	pauses := store.Backoff{Base: reachPause / 8, Max: reachPause}
	for try := 0; ; try++ {
		err := s.reachOnce(limited)
		if err == nil || !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil && limited.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("reach %q: %w", s, ctx.Err())
		}
		if s.sleep(limited, pauses.Delay(try)) != nil || limited.Err() != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("reach %q: %w", s, ctx.Err())
			}
			return fmt.Errorf("%w (tried %d times in %v)", err, try+1, reachWithin)
		}
	}
}

// reachOnce makes one try of Reach: it lists at most one object.
func (s *Store) reachOnce(ctx context.Context) error {
	once, cancel := context.WithTimeout(ctx, reachTry)
	defer cancel()
	_, err := s.client.ListObjectsV2(once, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix), MaxKeys: aws.Int32(1)}, noRetry)
	switch {
	case err == nil:
		return nil
	case once.Err() != nil:
		return fmt.Errorf("reach %q: %w: no answer within %v", s, store.ErrUnavailable, reachTry)
	}
	return fail(ctx, "reach", s.String(), err)
}

// host returns the host to which requests go, with the port if its URL has one.
func (s *Store) host(ctx context.Context) string {
	o := s.client.Options()
	at, err := o.EndpointResolverV2.ResolveEndpoint(ctx, s3.EndpointParameters{
		Bucket: &s.bucket, Region: &o.Region, Endpoint: o.BaseEndpoint, ForcePathStyle: &o.UsePathStyle,
	})
	if err != nil {
		return "the endpoint of " + s.String()
	}
	return at.URI.Host
}
