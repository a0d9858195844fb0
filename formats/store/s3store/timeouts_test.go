package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"crawlbatch.io/crawlbatch/formats/store"
)

// wire is a transport that answers requests in a synctest bubble, whose time is virtual.
type wire func(*http.Request) (*http.Response, error)

func (w wire) Do(r *http.Request) (*http.Response, error) { return w(r) }

// hangs returns a wire that waits for d and then passes the request to next. If the request ends
// first, the wire returns an error.
func hangs(d time.Duration, next wire) wire {
	return func(r *http.Request) (*http.Response, error) {
		if err := store.Sleep(r.Context(), d); err != nil {
			return nil, err
		}
		return next(r)
	}
}

func says(status int, body string) wire {
	return func(r *http.Request) (*http.Response, error) {
		return response(r, status, int64(len(body)), strings.NewReader(body)), nil
	}
}

func response(r *http.Request, status int, size int64, body io.Reader) *http.Response {
	header := http.Header{"Etag": {`"e"`}, "Content-Length": {fmt.Sprint(size)}}
	return &http.Response{StatusCode: status, ContentLength: size, Body: io.NopCloser(body), Header: header, Request: r}
}

// endless is a body that delivers one byte a minute.
type endless struct{ ctx context.Context }

func (e endless) Read(p []byte) (int, error) {
	if err := store.Sleep(e.ctx, time.Minute); err != nil {
		return 0, err
	}
	return 1, nil
}

func newWireStore(t *testing.T, w wire) *Store {
	t.Helper()
	s := connect(t, "http://store.test", "bucket")
	s.client = s3.New(s.client.Options(), func(o *s3.Options) {
		o.HTTPClient = timedClient{w}
		o.RetryMaxAttempts = 1
	})
	return s
}

func TestEveryTryHasALimitInProportionToItsSize(t *testing.T) {
	const size = 64 << 20
	never := hangs(1000*time.Hour, says(200, ""))
	for _, c := range []struct {
		name string
		wire wire
		call func(ctx context.Context, s *Store) error
		want time.Duration
	}{
		{"get", never, func(ctx context.Context, s *Store) error { _, _, err := s.Get(ctx, "k", 10); return err }, responseLimit},
		{"head", never, func(ctx context.Context, s *Store) error { _, err := s.Open(ctx, "k"); return err }, responseLimit},
		{"delete", never, func(ctx context.Context, s *Store) error { return s.Delete(ctx, "k") }, responseLimit},
		{"list", never, func(ctx context.Context, s *Store) error {
			for _, err := range s.List(ctx, "") {
				return err
			}
			return nil
		}, responseLimit},
		{"body that does not end", func(r *http.Request) (*http.Response, error) {
			return response(r, 200, 1000, endless{r.Context()}), nil
		}, func(ctx context.Context, s *Store) error { _, _, err := s.Get(ctx, "k", 1000); return err }, responseLimit},
		{"put", never, func(ctx context.Context, s *Store) error {
			_, err := s.put(ctx, &s3.PutObjectInput{Key: new("k")}, &bodyReader{r: strings.NewReader("x"), size: 1})
			return err
		}, responseLimit},
		{"large put", never, func(ctx context.Context, s *Store) error {
			_, err := s.put(ctx, &s3.PutObjectInput{Key: new("k")}, &bodyReader{r: zeros(1), size: size})
			return err
		}, responseLimit + size/slowest*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newWireStore(t, c.wire)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := c.call(t.Context(), s)
				if took := time.Since(began); took != c.want || err == nil {
					t.Errorf("ended after %v with %v, want %v", took, err, c.want)
				}
				if err != nil && !strings.Contains(err.Error(), "no answer within") {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestASlowAnswerWithinItsLimitIsTaken(t *testing.T) {
	s := newWireStore(t, hangs(responseLimit-time.Second, says(200, "content")))
	synctest.Test(t, func(t *testing.T) {
		body, _, err := s.Get(t.Context(), "k", 10)
		if string(body) != "content" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	})
}

func TestReachTellsWithinSecondsWhatIsWrong(t *testing.T) {
	refused := wire(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	const listing = `<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>`
	back := func(after time.Duration) func() wire {
		return func() wire {
			began := time.Now()
			return func(r *http.Request) (*http.Response, error) {
				if time.Since(began) < after {
					return refused(r)
				}
				return says(200, listing)(r)
			}
		}
	}
	for _, c := range []struct {
		name   string
		wire   func() wire
		want   error
		says   string
		within time.Duration
	}{
		{"it answers", func() wire { return says(200, listing) }, nil, "", 0},
		{"connections are refused", func() wire { return refused }, store.ErrUnavailable, "connection refused", reachWithin},
		{"nothing answers at all", func() wire { return hangs(time.Hour, refused) }, store.ErrUnavailable, "no answer within 4s (tried ", reachWithin},
		{"it is back after 8 seconds", back(8 * time.Second), nil, "", 8*time.Second + reachPause},
		{"no such bucket", func() wire { return says(404, `<Error><Code>NoSuchBucket</Code></Error>`) }, store.ErrDenied, "there is no such bucket", 0},
		{"wrong secret", func() wire { return says(403, `<Error><Code>SignatureDoesNotMatch</Code></Error>`) }, store.ErrDenied, "AWS_SECRET_ACCESS_KEY", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w wire
			s := newWireStore(t, func(r *http.Request) (*http.Response, error) { return w(r) })
			synctest.Test(t, func(t *testing.T) {
				w = c.wire()
				began := time.Now()
				err := s.Reach(t.Context())
				took := time.Since(began)
				if !errors.Is(err, c.want) || took > c.within {
					t.Errorf("%v after %v, want %v within %v", err, took, c.want, c.within)
				}
				if err != nil && (!strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), `reach "s3://bucket/some/prefix": `)) {
					t.Errorf("it says %q, want %q", err, c.says)
				}
			})
		})
	}
}

func TestReachTellsAfterThreeSecondsThatItIsStillTrying(t *testing.T) {
	refused := wire(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	for name, c := range map[string]struct {
		wire wire
		told bool
	}{
		"nothing answers":           {hangs(time.Hour, refused), true},
		"connections are refused":   {refused, true},
		"it answers after a second": {hangs(time.Second, says(200, `<ListBucketResult/>`)), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWireStore(t, c.wire)
			synctest.Test(t, func(t *testing.T) {
				began, told := time.Now(), 0
				s.options.OnSilence = func(host string, until time.Time) {
					told++
					if host != s.host(t.Context()) || host == "" || time.Since(began) != reachSilent || until.Sub(began) != reachWithin {
						t.Errorf("OnSilence got %q and %v after %v", host, until, time.Since(began))
					}
				}
				_ = s.Reach(t.Context())
				synctest.Wait() // synchronizes with the write in OnSilence, for the race detector
				if (told == 1) != c.told || told > 1 {
					t.Errorf("OnSilence was called %d times, want %t", told, c.told)
				}
			})
		})
	}
}

func TestHostIsTheEndpoints(t *testing.T) {
	for _, c := range []struct{ endpoint, region, want string }{
		{"http://127.0.0.1:7070", "", "127.0.0.1:7070"},
		{"", "eu-west-1", "bucket.s3.eu-west-1.amazonaws.com"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_S3", c.endpoint)
		t.Setenv("AWS_REGION", c.region)
		t.Setenv("AWS_ACCESS_KEY_ID", "key")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
		s, err := Open(t.Context(), "s3://bucket", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.host(t.Context()); got != c.want {
			t.Errorf("endpoint %q: host %q, want %q", c.endpoint, got, c.want)
		}
	}
}

func TestReachEndsWithItsContext(t *testing.T) {
	s := newWireStore(t, hangs(time.Hour, says(200, "")))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Reach(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
	})
}

func TestTheDateOfABrokenAnswerIsAskedForAgain(t *testing.T) {
	for broken := range skewTries + 1 {
		asked := 0
		s := newWireStore(t, func(r *http.Request) (*http.Response, error) {
			asked++
			body := "<ListBucketResult></ListBucketResult>"
			answer, err := says(200, body)(r)
			if answer.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat)); asked <= broken {
				answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:9]), iotest.ErrReader(io.ErrUnexpectedEOF)))
			}
			return answer, err
		})
		skew, err := s.Skew(t.Context())
		if broken == skewTries {
			if !errors.Is(err, store.ErrUnavailable) || asked != skewTries {
				t.Errorf("%d broken answers: asked %d times, %v", broken, asked, err)
			}
		} else if err != nil || asked != broken+1 || skew.Abs() > time.Minute {
			t.Errorf("%d broken answers: asked %d times, %v, %v", broken, asked, skew, err)
		}
	}
}
