package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// One try of a request has three time limits: to connect, until the response begins, and from then
// until its body ends. The last two grow by one second for every 256 KiB of the request or response.
// A POST may take longer, because the server may join the parts of an upload before it answers.
const (
	connectLimit  = 10 * time.Second
	responseLimit = 30 * time.Second // until a response begins, and from then until its body ends
	longLimit     = 2 * time.Minute  // until a response to a POST begins; until the next byte of any response
	slowest       = 256 << 10        // slowest accepted rate, in bytes per second
)

// timedClient is an HTTP client that applies the time limits to every try.
type timedClient struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c timedClient) Do(r *http.Request) (*http.Response, error) {
	limit := responseLimit
	if r.Method == http.MethodPost {
		limit = longLimit
	}
	limit += transfer(r.ContentLength)
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(limit, func() { cancel(tooSlow(limit)) })
	answer, err := c.next.Do(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = timeoutCause(ctx, err)
		cancel(nil)
		return nil, err
	}
	timer.Stop()
	limit = responseLimit + transfer(answer.ContentLength)
	if answer.ContentLength < 0 {
		limit += longLimit // the length of the body is unknown
	}
	body := &timedBody{ReadCloser: answer.Body, because: func(err error) error { return timeoutCause(ctx, err) }}
	timer = time.AfterFunc(limit, func() { cancel(tooSlow(limit)) })
	body.stop = func() {
		timer.Stop()
		cancel(nil)
	}
	answer.Body = body
	return answer, nil
}

// transfer returns the time that the transfer of size bytes takes at the slowest accepted rate.
func transfer(size int64) time.Duration {
	return time.Duration(max(size, 0)/slowest) * time.Second
}

// timedBody is a response body that must be complete within a time limit.
type timedBody struct {
	io.ReadCloser
	because func(error) error // returns the error of the time limit if the limit was the cause
	stop    func()            // ends the time limit
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.because(err)
	}
	return n, err
}

func (b *timedBody) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

// timeoutCause returns a tooSlow if a time limit of timedClient ended the request, otherwise err.
func timeoutCause(ctx context.Context, err error) error {
	if slow, ok := errors.AsType[tooSlow](context.Cause(ctx)); ok {
		return slow
	}
	return err
}

// tooSlow is the error of a try that exceeded a time limit of this length.
type tooSlow time.Duration

func (t tooSlow) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(t)) }

// Timeout returns true, so that the SDK repeats a request that may be repeated.
func (tooSlow) Timeout() bool { return true }
