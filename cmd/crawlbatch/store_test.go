package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/k8s"
)

// planInto plans one URL into a store and returns the exit code and the output.
func planInto(t *testing.T, store string) (int, string) {
	t.Helper()
	urls := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(urls, []byte("http://a.test/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	code := execute(t.Context(), []string{"plan", "--month", "2026-11", "--source", urls, "--store", store, "--connect-to", "::127.0.0.1:1"}, nil, &out, &errw)
	return code, errw.String()
}

func TestS3MistakesAreToldWithTheReason(t *testing.T) {
	server := versitygw.Start(t)
	bucket := server.NewBucket(t)
	for _, c := range []struct {
		name, store string
		env         []string
		says        string
	}{
		{"no such bucket", "s3://no-such-bucket/crawl", nil, "there is no such bucket; create it or correct the address"},
		{"wrong access key", "s3://" + bucket, []string{"AWS_ACCESS_KEY_ID=wrong"}, "check AWS_ACCESS_KEY_ID and the endpoint"},
		{"wrong secret", "s3://" + bucket, []string{"AWS_SECRET_ACCESS_KEY=wrong"}, "check AWS_SECRET_ACCESS_KEY"},
		{"no credentials", "s3://" + bucket, []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="}, "no AWS credentials found"},
		{"no bucket's name", "s3://key:secret@host/x", nil, "the text after s3:// does not begin with a bucket name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			crawltest.Setenv(t, append(server.Env(server.Endpoint), c.env...))
			code, said := planInto(t, c.store)
			if code != exitUsage || !strings.Contains(said, c.says) || strings.Count(said, "\n") != 1 {
				t.Errorf("exit %d, it says %q; want %d and %q in one line", code, said, exitUsage, c.says)
			}
			if strings.Contains(said, versitygw.SecretKey) || strings.Contains(said, versitygw.AccessKey) {
				t.Errorf("the message shows a credential: %q", said)
			}
		})
	}
	left, err := os.ReadDir(filepath.Join(server.Dir, bucket))
	if err != nil || len(left) > 0 {
		t.Errorf("the bucket holds %v (%v)", left, err)
	}
	crawltest.Setenv(t, server.Env(server.Endpoint))
	if code, said := planInto(t, "s3://"+bucket+"/crawl"); code != exitDone {
		t.Errorf("without a mistake: exit %d, %s", code, said)
	}
}

// An outage of STS passes, so a pod must not take it for a wrong configuration, which ends its Job.
func TestInAPodAnOutageOfTheServiceOfCredentialsPasses(t *testing.T) {
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer sts.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	crawltest.Setenv(t, []string{
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_REGION=eu-central-1",
		"AWS_MAX_ATTEMPTS=1", "AWS_ENDPOINT_URL_STS=" + sts.URL, "AWS_ROLE_ARN=arn:aws:iam::123456789012:role/crawl", "AWS_WEB_IDENTITY_TOKEN_FILE=" + token,
	})
	var errw bytes.Buffer
	if code := execute(t.Context(), []string{"run", "--month", "2026-11", "--store", "s3://bucket"}, nil, io.Discard, &errw); code != exitInterrupted || !strings.Contains(errw.String(), "status 503") {
		t.Errorf("run: exit %d, %s", code, errw.String())
	}
	t.Setenv(k8s.PodName, "crawl-1")
	if code, said := planInto(t, "s3://bucket"); code != exitInterrupted || !strings.Contains(said, "status 503") {
		t.Errorf("plan: exit %d, %s", code, said)
	}
}

// unconditional implements the parts of S3 that a plan needs. Like old servers, it ignores the conditions
// of conditional writes.
type unconditional struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func (u *unconditional) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	stored, exists := u.objects[r.URL.Path]
	switch {
	case r.URL.Query().Get("list-type") == "2":
		fmt.Fprint(w, "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")
	case r.Method == http.MethodPut:
		u.objects[r.URL.Path] = body
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(body)))
	case r.Method == http.MethodDelete:
		delete(u.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case !exists:
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(stored)))
		_, _ = w.Write(stored)
	}
}

func TestAStoreWithoutConditionalWritesIsRefused(t *testing.T) {
	u := &unconditional{objects: map[string][]byte{}}
	server := httptest.NewServer(u)
	defer server.Close()
	crawltest.Setenv(t, (*versitygw.Server)(nil).Env(server.URL))
	code, said := planInto(t, "s3://bucket/crawl")
	if code != exitPermanent || !strings.Contains(said, "store lacks a needed operation: 8 of 8 racing writers won, but exactly one must win (create-only writes)") {
		t.Errorf("exit %d, it says %q", code, said)
	}
	if len(u.objects) > 0 {
		t.Errorf("the command left %d objects in the store", len(u.objects))
	}
}
