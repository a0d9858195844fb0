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

// These constants bound three times in one try of a request: the time to connect, the time until a
// response begins, and the time until its body ends. The last two limits grow by one second for every
// 256 KiB (slowest). The request that completes an upload in parts has a longer limit, because a
// server may join the parts before it answers.
const (
	connecting = 10 * time.Second
	prompt     = 30 * time.Second // limit until a response begins, and limit until its body ends
	silence    = 2 * time.Minute  // limit for requests that cost the server much work, and for the wait for the next byte
	slowest    = 256 << 10        // slowest accepted rate, in bytes per second
)

// timedClient is an HTTP client that applies the time limits to every try.
type timedClient struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c timedClient) Do(r *http.Request) (*http.Response, error) {
	limit := prompt
	if r.Method == http.MethodPost {
		limit = silence
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
	limit = prompt + transfer(answer.ContentLength)
	if answer.ContentLength < 0 {
		limit += silence
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

// transfer returns the longest time that the transfer of size bytes may take.
func transfer(size int64) time.Duration {
	return time.Duration(max(size, 0)/slowest) * time.Second
}

// timedBody is a response body that must be complete within a time limit.
type timedBody struct {
	io.ReadCloser
	because func(error) error
	stop    func()
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

// timeoutCause returns the error of the time limit if a time limit ended the request,
// otherwise err.
func timeoutCause(ctx context.Context, err error) error {
	if slow, ok := errors.AsType[tooSlow](context.Cause(ctx)); ok {
		return slow
	}
	return err
}

// tooSlow is the error of a try that exceeded the time limit.
type tooSlow time.Duration

func (t tooSlow) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(t)) }

// Timeout returns true, so that the SDK repeats a repeatable request.
func (tooSlow) Timeout() bool { return true }
