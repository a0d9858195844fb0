package s3store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

func TestS3Contract(t *testing.T) {
	server := versitygw.Start(t)
	storetest.Run(t, func(t *testing.T) store.Bucket { return connect(t, server.Endpoint, server.NewBucket(t)) })
}

// TestS3ContractThroughABadNetwork runs the contract suite while requests and responses of
// conditional writes are lost, refused and delayed.
func TestS3ContractThroughABadNetwork(t *testing.T) {
	server := versitygw.Start(t)
	behind := proxy(t, server.Endpoint)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(7, 7))
	faults := []action{dropBefore, dropAfter, statusBefore(503, "SlowDown"), statusAfter(500, "InternalError"),
		statusBefore(409, "ConditionalRequestConflict"), statusAfter(502, "BadGateway")}
	endpoint := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		act := action(pass)
		if conditionalWrite(r) && random.IntN(4) == 0 {
			act = faults[random.IntN(len(faults))]
		}
		mu.Unlock()
		act(w, r, behind)
	}))
	storetest.Run(t, func(t *testing.T) store.Bucket {
		s := connect(t, endpoint, server.NewBucket(t))
		s.backoff = store.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}
		return s
	})
}

func TestS3SwapsLoseNothingThroughABadNetwork(t *testing.T) {
	server := versitygw.Start(t)
	behind := proxy(t, server.Endpoint)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(3, 9))
	endpoint := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		act := []action{pass, dropAfter, dropBefore}[random.IntN(3)]
		mu.Unlock()
		if !conditionalWrite(r) {
			act = pass
		}
		act(w, r, behind)
	}))
	s := connect(t, endpoint, server.NewBucket(t))
	s.backoff = store.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond}
	errs := make(chan error)
	for i := range 4 {
		go func() { errs <- storetest.Append(t.Context(), s, "marks", fmt.Sprintf("writer%d", i), 20) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	storetest.CheckMarks(t, s, "marks", 80)
}

// zeros is a body of zeros except its first byte.
type zeros byte

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off == 0 && len(p) > 0 {
		p[0] = byte(z)
	}
	return len(p), nil
}

// TestS3LargeBodiesAreSettledToo tries every failure of the request that completes a multipart
// upload.
func TestS3LargeBodiesAreSettledToo(t *testing.T) {
	if testing.Short() {
		t.Skip("uploads of 65 MiB, not with -short")
	}
	const size = inParts + 1<<20
	server := versitygw.Start(t)
	completion := func(r *http.Request) bool { return r.Method == http.MethodPost && conditionalWrite(r) }
	for _, c := range []struct {
		name   string
		script []action
		posts  int // number of requests that begin or complete the upload
	}{
		{"answered", nil, 2},
		{"answer lost", []action{dropAfter}, 2},
		{"request lost", []action{dropBefore}, 3},
		{"effect with an error", []action{statusAfter(500, "InternalError")}, 2},
		{"conflict in progress", []action{statusBefore(409, "ConditionalRequestConflict")}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			bucket := server.NewBucket(t)
			script := scriptOn(proxy(t, server.Endpoint), completion, c.script...)
			s := connect(t, serve(t, script), bucket)
			s.sleep = func(context.Context, time.Duration) error { return nil }
			if _, err := s.Create(t.Context(), "big", zeros(1), size); err != nil {
				t.Fatal(err)
			}
			if got := script.count(http.MethodPost); got != c.posts {
				t.Errorf("%d POSTs, want %d", got, c.posts)
			}
			if _, err := s.Create(t.Context(), "big", zeros(2), size); !errors.Is(err, store.ErrExists) {
				t.Errorf("Create of other bytes: %v", err)
			}
			left, err := s.client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
			if err != nil || len(left.Uploads) != 0 {
				t.Errorf("uploads left: %+v, %v", left, err)
			}
			info, err := os.Stat(filepath.Join(server.Dir, bucket, "some/prefix/big"))
			if err != nil || info.Size() != size {
				t.Errorf("the server has %+v, %v; want %d bytes", info, err, int64(size))
			}
		})
	}
}

func TestS3LargeBodiesRaceForOneName(t *testing.T) {
	if testing.Short() {
		t.Skip("uploads of 65 MiB, not with -short")
	}
	server := versitygw.Start(t)
	s := connect(t, server.Endpoint, server.NewBucket(t))
	errs := make(chan error)
	for i := range 3 {
		go func() {
			_, err := s.Create(t.Context(), "big", zeros(i+1), inParts+1)
			errs <- err
		}()
	}
	winners := 0
	for range 3 {
		switch err := <-errs; {
		case err == nil:
			winners++
		case !errors.Is(err, store.ErrExists):
			t.Error(err)
		}
	}
	if winners != 1 {
		t.Errorf("%d winners, want 1", winners)
	}
}

func TestS3TheSDKsChecksumsWorkToo(t *testing.T) {
	server := versitygw.Start(t)
	t.Setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported") // the SDK's default, which AWS supports
	s := connect(t, server.Endpoint, server.NewBucket(t))
	if _, err := store.Probe(t.Context(), s); err != nil {
		t.Error(err)
	}
	if testing.Short() {
		return
	}
	for range 2 {
		if _, err := s.Create(t.Context(), "big", zeros(1), inParts+5); err != nil {
			t.Error(err)
		}
	}
}

func TestS3RealRefusals(t *testing.T) {
	server := versitygw.Start(t)
	bucket := server.NewBucket(t)
	s := connect(t, server.Endpoint, "no-such-bucket")
	_, err := store.CreateBytes(t.Context(), s, "k", []byte("x"))
	if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "no such bucket") {
		t.Errorf("Create in a bucket that does not exist: %v", err)
	}
	if _, err = store.Probe(t.Context(), s); !errors.Is(err, store.ErrDenied) {
		t.Errorf("Probe of a bucket that does not exist: %v", err)
	}
	for name, want := range map[string]string{"AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID"} {
		_ = connect(t, server.Endpoint, bucket) // connect resets the environment variables
		t.Setenv(name, "wrong")
		wrong, err := Open(t.Context(), Scheme+bucket, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = wrong.Get(t.Context(), "k", 1); !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), want) {
			t.Errorf("Get with a wrong %s: %v", name, err)
		}
	}
}

func TestS3ObjectThatChangesUnderAReaderIsNoticed(t *testing.T) {
	server := versitygw.Start(t)
	s := connect(t, server.Endpoint, server.NewBucket(t))
	v, err := store.CreateBytes(t.Context(), s, "k", []byte("first state"))
	if err != nil {
		t.Fatal(err)
	}
	object, err := s.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	if _, err := store.SwapBytes(t.Context(), s, "k", []byte("other state"), v); err != nil {
		t.Fatal(err)
	}
	if _, err := object.ReadAt(make([]byte, 5), 0); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("ReadAt after a swap: %v, want %v", err, store.ErrConflict)
	}
}
