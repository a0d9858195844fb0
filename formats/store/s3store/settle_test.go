package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

const objectPath = "/bucket/some/prefix/k"

// TestConditionalWritesAreSettled tries every failure of a conditional write's request. The
// reported outcome must match the state of the store.
func TestConditionalWritesAreSettled(t *testing.T) {
	anotherWrites := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		f := next.(*fake)
		f.mu.Lock()
		f.objects[objectPath] = "another's"
		f.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	anotherDeletes := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		f := next.(*fake)
		f.mu.Lock()
		delete(f.objects, objectPath)
		f.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	slow := statusBefore(503, "SlowDown")
	for _, c := range []struct {
		name   string
		stored string // body of the object before the write, "" for no object
		old    string // "create" to call Create; otherwise the body whose version is passed to Swap, "" for the zero version
		script []action
		want   error
		ends   string
		puts   int
	}{
		{"create, answered", "", "create", nil, nil, "mine", 1},
		{"create, answer lost", "", "create", []action{dropAfter}, nil, "mine", 1},
		{"create, request lost", "", "create", []action{dropBefore}, nil, "mine", 2},
		{"create, overloaded for a while", "", "create", []action{slow, slow, slow}, nil, "mine", 4},
		{"create, effect with an error", "", "create", []action{statusAfter(500, "InternalError")}, nil, "mine", 1},
		{"create, answer of a gateway", "", "create", []action{statusBefore(502, "")}, nil, "mine", 2},
		{"create, conflict in progress", "", "create", []action{statusBefore(409, "ConditionalRequestConflict")}, nil, "mine", 2},
		{"create, body too slow", "", "create", []action{statusBefore(400, "RequestTimeout")}, nil, "mine", 2},
		{"create over the same bytes", "mine", "create", nil, nil, "mine", 1},
		{"create over others of the same length", "your", "create", nil, store.ErrExists, "your", 1},
		{"create over others", "another's", "create", nil, store.ErrExists, "another's", 1},
		{"create, request lost, another came", "", "create", []action{anotherWrites}, store.ErrExists, "another's", 1},
		{"create, 412 over what was deleted since", "another's", "create", []action{anotherDeletes}, nil, "mine", 2},
		{"create, denied", "", "create", []action{statusBefore(403, "AccessDenied")}, store.ErrDenied, "", 1},
		{"create, no such bucket", "", "create", []action{statusBefore(404, "NoSuchBucket")}, store.ErrDenied, "", 1},
		{"create, disk full", "", "create", []action{statusBefore(507, "InsufficientStorage")}, store.ErrFull, "", 1},
		{"create, quota of MinIO", "", "create", []action{statusBefore(400, "XMinioAdminBucketQuotaExceeded")}, store.ErrFull, "", 1},
		{"create, no conditions there", "", "create", []action{statusBefore(501, "NotImplemented")}, store.ErrUnsupported, "", 1},

		{"swap, answered", "old", "old", nil, nil, "mine", 1},
		{"swap, answer lost", "old", "old", []action{dropAfter}, nil, "mine", 1},
		{"swap, request lost", "old", "old", []action{dropBefore, slow}, nil, "mine", 3},
		{"swap, conflict in progress", "old", "old", []action{statusBefore(409, "OperationAborted")}, nil, "mine", 2},
		{"swap of a stale version", "new", "old", nil, store.ErrConflict, "new", 1},
		{"swap, request lost, another came", "old", "old", []action{anotherWrites}, store.ErrConflict, "another's", 1},
		{"swap of a deleted object", "", "old", nil, store.ErrConflict, "", 1},
		{"swap, deleted meanwhile", "old", "old", []action{anotherDeletes}, store.ErrConflict, "", 1},
		{"swap done before", "mine", "old", nil, nil, "mine", 1},
		{"swap of none", "", "", []action{dropAfter}, nil, "mine", 1},
		{"swap of none over another's", "another's", "", nil, store.ErrConflict, "another's", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := &fake{objects: map[string]string{}}
			if c.stored != "" {
				backend.objects[objectPath] = c.stored
			}
			script := scriptOn(backend, conditionalWrite, c.script...)
			s := connect(t, serve(t, script), "bucket")
			waits, told := 0, 0
			s.sleep = func(context.Context, time.Duration) error { waits++; return nil }
			s.options.OnRetry = func(key string, sent int, err error) { told++ }
			var v store.Version
			var err error
			switch c.old {
			case "create":
				v, err = store.CreateBytes(t.Context(), s, "k", []byte("mine"))
			case "":
				v, err = store.SwapBytes(t.Context(), s, "k", []byte("mine"), "")
			default:
				v, err = store.SwapBytes(t.Context(), s, "k", []byte("mine"), store.Version(etag(c.old)))
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if err == nil && string(v) != etag("mine") {
				t.Errorf("version %q, want %q", v, etag("mine"))
			}
			if got := backend.objects[objectPath]; got != c.ends {
				t.Errorf("the store holds %q, want %q", got, c.ends)
			}
			if got := script.count(http.MethodPut); got != c.puts || waits != c.puts-1 || told != waits {
				t.Errorf("%d PUTs, %d waits, %d calls of OnRetry; want %d PUTs, and one wait and one call between each two PUTs", got, waits, told, c.puts)
			}
			if len(script.sums) != 1 {
				t.Errorf("%d different bodies were sent", len(script.sums))
			}
		})
	}
}

func TestReadBackThatFailsIsNoVerdict(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // keeps the SDK from retrying reads; the SDK never retries conditional writes
	backend := &fake{objects: map[string]string{}}
	reads := scriptOn(backend, func(r *http.Request) bool { return r.Method == http.MethodGet },
		statusBefore(503, "SlowDown"), statusBefore(502, ""), statusBefore(500, "InternalError"))
	writes := scriptOn(reads, conditionalWrite, dropAfter)
	s := connect(t, serve(t, writes), "bucket")
	s.sleep = func(context.Context, time.Duration) error { return nil }
	if _, err := store.CreateBytes(t.Context(), s, "k", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if got := writes.count(http.MethodPut); got != 4 {
		t.Errorf("%d PUTs, want 4: the first, and one after each of 3 failed reads", got)
	}
}

func TestConditionalWriteEndsWithItsContext(t *testing.T) {
	away := scriptOn(&fake{objects: map[string]string{}}, func(*http.Request) bool { return false })
	away.next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "SlowDown") })
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	s := connect(t, serve(t, away), "bucket")
	ctx, cancel := context.WithCancel(t.Context())
	waits := 0
	s.sleep = func(context.Context, time.Duration) error {
		if waits++; waits == 3 {
			cancel()
		}
		return ctx.Err()
	}
	_, err := store.SwapBytes(ctx, s, "k", []byte("mine"), "")
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "outcome") {
		t.Fatalf("error %v, want one that says that the outcome is unknown", err)
	}
}

// forgetful is an S3 server that forgets its first upload after some parts, as if a lifecycle rule had
// aborted it.
type forgetful struct {
	mu     sync.Mutex
	begun  int // uploads
	parts  int // parts of the first upload that are accepted
	stored string
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.URL.Query().Get("uploadId")
	switch {
	case r.Method == http.MethodPost && id == "":
		f.begun++
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%d</UploadId></InitiateMultipartUploadResult>", f.begun)
	case r.Method == http.MethodPut && id == "1" && f.parts == 0:
		refuse(w, 404, "NoSuchUpload")
	case r.Method == http.MethodPut:
		if f.parts--; id != "1" {
			f.parts = 0
		}
		w.Header().Set("ETag", `"part"`)
	case r.Method == http.MethodPost:
		f.stored = id
		fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, 404, "NoSuchKey")
	}
}

func TestAnUploadThatVanishesBeginsAnew(t *testing.T) {
	for parts := range 2 {
		server := &forgetful{parts: parts}
		s := connect(t, serve(t, server), "bucket")
		waits := 0
		s.sleep = func(context.Context, time.Duration) error {
			if waits++; waits == 4 {
				return context.DeadlineExceeded
			}
			return nil
		}
		if _, err := s.Create(t.Context(), "big", zeros(1), inParts+1); err != nil || server.begun != 2 || server.stored != "2" {
			t.Errorf("after %d parts: %v; %d uploads, %q completed", parts, err, server.begun, server.stored)
		}
	}
}

func TestBodyThatFailsIsNotTheStoresFault(t *testing.T) {
	s := connect(t, serve(t, &fake{objects: map[string]string{}}), "bucket")
	_, err := s.Create(t.Context(), "k", brokenDisk{}, 100)
	if !errors.Is(err, errBroken) || errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("error %v, want only the error of the body", err)
	}
}

var errBroken = errors.New("disk broken")

type brokenDisk struct{}

func (brokenDisk) ReadAt([]byte, int64) (int, error) { return 0, errBroken }

// TestErrorsSayWhatToDo checks the errors of failed reads. No error may contain a secret.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	for _, c := range []struct {
		act  action
		want error
		says string
	}{
		{statusBefore(404, "NoSuchKey"), store.ErrNotFound, "object not found"},
		{statusBefore(404, "NoSuchBucket"), store.ErrDenied, "create it"},
		{statusBefore(403, "AccessDenied"), store.ErrDenied, "s3:GetObject"},
		{statusBefore(403, "InvalidAccessKeyId"), store.ErrDenied, "AWS_ACCESS_KEY_ID"},
		{statusBefore(403, "SignatureDoesNotMatch"), store.ErrDenied, "AWS_SECRET_ACCESS_KEY"},
		{statusBefore(403, "RequestTimeTooSkewed"), store.ErrDenied, "clock"},
		{statusBefore(400, "ExpiredToken"), store.ErrDenied, "renew"},
		{statusBefore(403, "Whatever"), store.ErrDenied, "policy"},
		{statusBefore(301, "PermanentRedirect"), store.ErrDenied, "AWS_REGION"},
		{statusBefore(503, "SlowDown"), store.ErrUnavailable, "slow down"},
		{statusBefore(500, "InternalError"), store.ErrUnavailable, "InternalError, status 500"},
		{statusBefore(429, "TooManyRequests"), store.ErrUnavailable, "429"},
		{dropBefore, store.ErrUnavailable, "EOF"},
		{func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("part"))
		}, store.ErrUnavailable, "unexpected EOF"},
		{func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(502)
			_, _ = w.Write(bytes.Repeat([]byte("<html>no XML"), 1000))
		}, store.ErrUnavailable, "502"},
	} {
		script := scriptOn(&fake{}, func(*http.Request) bool { return true }, c.act)
		s := connect(t, serve(t, script), "bucket")
		_, _, err := s.Get(t.Context(), "k", 100)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), `get "k": `) || len(err.Error()) > 400 {
			t.Errorf("error %q, want %q that says %q", err, c.want, c.says)
			continue
		}
		for _, secret := range []string{versitygw.AccessKey, versitygw.SecretKey, "127.0.0.1:/", "X-Amz"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q shows %q", err, secret)
			}
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	s := connect(t, "http://127.0.0.1:1", "bucket")
	_, err := store.Probe(t.Context(), s)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
		t.Fatalf("Probe: %v", err)
	}
}

func TestServerThatIgnoresConditionsFailsTheProbe(t *testing.T) {
	backend := &fake{objects: map[string]string{}}
	for name, header := range map[string]string{"create-only": "If-None-Match", "compare-and-swap": "If-Match"} {
		s := connect(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("list-type") == "2" {
				w.Header().Set("Content-Type", "application/xml")
				_, _ = w.Write([]byte("<ListBucketResult></ListBucketResult>"))
				return
			}
			if r.Method == http.MethodDelete {
				backend.mu.Lock()
				delete(backend.objects, r.URL.Path)
				backend.mu.Unlock()
				w.WriteHeader(http.StatusNoContent)
				return
			}
			r.Header.Del(header)
			backend.ServeHTTP(w, r)
		})), "bucket")
		_, err := store.Probe(t.Context(), s)
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("Probe of a server that ignores %s: %v", header, err)
		}
		if len(backend.objects) != 0 {
			t.Errorf("left behind: %q", backend.objects)
		}
	}
}

func TestClockFarFromTheStoresFailsTheProbe(t *testing.T) {
	s := connect(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(-2*time.Minute).UTC().Format(http.TimeFormat))
		if r.URL.Query().Get("list-type") != "2" {
			refuse(w, 404, "NoSuchKey")
			return
		}
		_, _ = w.Write([]byte("<ListBucketResult></ListBucketResult>"))
	})), "bucket")
	result, err := store.Probe(t.Context(), s)
	if !errors.Is(err, store.ErrClock) || !result.Dated || result.Skew > -119*time.Second || result.Skew < -122*time.Second {
		t.Fatalf("Probe: %+v, %v; want %v and about -2m", result, err, store.ErrClock)
	}
}

func TestOpenRefusesBadAddressesWithoutShowingThem(t *testing.T) {
	for address, says := range map[string]string{
		"s3://":                               "bucket name",
		"s3:///prefix":                        "bucket name",
		"s3://AKIA:hunter2@bucket/p":          "bucket name",
		"https://bucket.example/":             "s3://bucket",
		"s3://bucket/a//b":                    "at most 100 bytes",
		"s3://bucket/../b":                    "at most 100 bytes",
		"s3://bucket/.tmp/b":                  "at most 100 bytes",
		"s3://bucket?sig=hunter2":             "bucket name",
		"s3://bb/" + strings.Repeat("p", 101): "at most 100 bytes",
	} {
		_, err := Open(t.Context(), address, Options{})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q): %v, want %q", address, err, says)
		}
	}
}

func TestOpenWithoutCredentialsSaysHowToGiveThem(t *testing.T) {

	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	_, err := Open(t.Context(), "s3://bucket", Options{})
	if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Fatalf("Open: %v", err)
	}
}

func TestStringIsTheAddress(t *testing.T) {
	for _, address := range []string{"s3://bucket", "s3://bucket/a", "s3://bucket/a/b"} {
		bucket, prefix, err := parse(address + "/")
		if got := (&Store{bucket: bucket, prefix: prefix}).String(); err != nil || got != address {
			t.Errorf("String() = %q (%v), want %q", got, err, address)
		}
	}
}

func TestWritesCarryEncryptionAndStorageClass(t *testing.T) {
	backend := &fake{objects: map[string]string{}}
	var got http.Header
	s := connect(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			got = r.Header.Clone()
		}
		backend.ServeHTTP(w, r)
	})), "bucket")
	s.options = Options{SSEKMSKey: "key-1", StorageClass: "STANDARD_IA"}
	if _, err := store.CreateBytes(t.Context(), s, "k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key-1",
		"X-Amz-Storage-Class": "STANDARD_IA", "If-None-Match": "*",
	} {
		if got.Get(header) != want {
			t.Errorf("%s: %q, want %q", header, got.Get(header), want)
		}
	}
}
