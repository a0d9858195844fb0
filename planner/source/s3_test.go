package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

// useServer sets the environment of a user whose S3 server answers at endpoint.
func useServer(t *testing.T, server *versitygw.Server, endpoint string) {
	t.Helper()
	for _, pair := range server.Env(endpoint) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// openS3 opens a bucket as the commands do, but with short pauses between tries.
func openS3(ctx context.Context, address string) (store.Bucket, error) {
	s, err := s3store.Open(ctx, address, s3store.Options{})
	if err != nil {
		return nil, err
	}
	return store.WithRetry(s, store.Retry{Sleep: func(context.Context, time.Duration) error { return ctx.Err() }}), nil
}

// put stores an object in a folder of the server, as another program would.
func put(t *testing.T, server *versitygw.Server, bucket, key string, body []byte) {
	t.Helper()
	b, err := openS3(t.Context(), "s3://"+bucket)
	if err == nil {
		_, err = store.CreateBytes(t.Context(), b, key, body)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// entriesOf reads a source with buckets.
func entriesOf(t *testing.T, name string) ([]Entry, error) {
	t.Helper()
	s, err := Open(t.Context(), name, Options{Bucket: openS3})
	if err != nil {
		return nil, err
	}
	return collect(t.Context(), s)
}

func TestS3ObjectsPrefixesAndPatternsAreSources(t *testing.T) {
	server := versitygw.Start(t)
	useServer(t, server, server.Endpoint)
	bucket := server.NewBucket(t)
	one, two := "http://a/1", "http://a/2"
	put(t, server, bucket, "lists/b.txt.gz", gzipped(t, "b1\nb2"))
	put(t, server, bucket, "lists/a/x.csv", []byte("rank,url\n1,x1\n"))
	put(t, server, bucket, "lists/a/_SUCCESS", []byte("no"))
	put(t, server, bucket, "lists/.hidden/y", []byte("no"))
	put(t, server, bucket, "lists/p.parquet", parquetFile(t, []urlRow{{1, &one}, {2, &two}}))
	put(t, server, bucket, "lists/z.zst", zstdOf(t, "z1\n", "z2"))
	put(t, server, bucket, "listsmore", []byte("no"))
	put(t, server, bucket, "odd#column=x/?*.txt", []byte("odd"))
	for name, want := range map[string][]string{
		"/lists/b.txt.gz":                    {"1 b1", "2 b2"},
		"/lists/":                            {"2 x1", "1 b1", "2 b2", "1 http://a/1", "2 http://a/2", "1 z1", "2 z2"},
		"/lists":                             {"2 x1", "1 b1", "2 b2", "1 http://a/1", "2 http://a/2", "1 z1", "2 z2"},
		"/lists/[bz].*":                      {"1 b1", "2 b2", "1 z1", "2 z2"},
		"/lists/*/x.csv#column=rank":         {"2 1"},
		"/lists/p.parquet#where=url > 'i'":   nil,
		"/lists/p.parquet#where=rank IN (2)": {"2 http://a/2"},
		"/odd[#]column=x/?*.txt":             {"1 odd"},
	} {
		got, err := entriesOf(t, "s3://"+bucket+name)
		if d := cmp.Diff(want, urls(got)); d != "" || (err != nil) != (want == nil) || err != nil && !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
		for _, e := range got {
			if !strings.HasPrefix(e.File, "s3://"+bucket+"/") {
				t.Errorf("%s: file %q", name, e.File)
			}
		}
	}
}

func TestS3MistakesAreToldInOneLine(t *testing.T) {
	server := versitygw.Start(t)
	useServer(t, server, server.Endpoint)
	bucket := server.NewBucket(t)
	put(t, server, bucket, "u.txt", []byte("a"))
	for name, want := range map[string]error{
		bucket + "/absent.txt":           ErrMissing,
		bucket + "/absent/":              ErrMissing,
		bucket + "/absent*":              ErrMissing,
		bucket + "/[":                    ErrMissing,
		bucket + "//u.txt":               ErrMissing,
		bucket + "/u.txt#column=x":       ErrOption,
		"no-such-bucket/u.txt":           store.ErrDenied,
		"no-such-bucket/":                store.ErrDenied,
		"ACCESS:" + "SECRETKEY@b/u.txt":  nil,
		bucket + "/u.txt#where=a SECRET": ErrWhere,
	} {
		_, err := entriesOf(t, "s3://"+name)
		if err == nil || want != nil && !errors.Is(err, want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "SECRETKEY") {
			t.Errorf("%s: %v; want %v, in one line", name, err, want)
		}
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	for _, name := range []string{"/u.txt", "/"} {
		_, err := entriesOf(t, "s3://"+bucket+name)
		if !errors.Is(err, store.ErrDenied) || strings.Contains(err.Error(), "\n") {
			t.Errorf("wrong credentials: %v", err)
		}
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	useServer(t, server, dead.URL)
	if _, err := entriesOf(t, "s3://"+bucket+"/u.txt"); !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "\n") {
		t.Errorf("no server: %v", err)
	}
}

// cutter forwards requests to a server. It breaks the body of an answer to a range where a reader
// begins, but not to a range where the reader continues after such a break.
type cutter struct {
	next http.Handler
	hook func(get int) // runs before each GET of a range

	mu   sync.Mutex
	gets int
	sent int // bytes of bodies
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil || r.Method != http.MethodGet {
		c.next.ServeHTTP(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gets++
	if c.hook != nil {
		c.hook(c.gets)
	}
	answer := httptest.NewRecorder()
	c.next.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	first := from%aheadBytes == 0
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	if first {
		body = body[:len(body)/2]
	}
	n, _ := w.Write(body)
	c.sent += n
	if first {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (c *cutter) start(t *testing.T, server *versitygw.Server) {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c.next = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	proxy := httptest.NewServer(c)
	proxy.Config.ErrorLog = nil
	t.Cleanup(proxy.Close)
	useServer(t, server, proxy.URL)
}

func TestS3BrokenBodiesContinueWhereTheyStopped(t *testing.T) {
	server := versitygw.Start(t)
	useServer(t, server, server.Endpoint)
	bucket := server.NewBucket(t)
	var lines bytes.Buffer
	for i := range 1_500_000 {
		fmt.Fprintf(&lines, "http://host%d/\n", i)
	}
	put(t, server, bucket, "u.txt", lines.Bytes())
	c := &cutter{}
	c.start(t, server)
	got, err := entriesOf(t, "s3://"+bucket+"/u.txt")
	if err != nil || len(got) != 1_500_000 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i, e := range got {
		if e.URL != fmt.Sprintf("http://host%d/", i) || e.Line != int64(i+1) {
			t.Fatalf("entry %d is %d %q", i, e.Line, e.URL)
		}
	}
	if want := lines.Len() + len("PAR1"); c.gets < 6 || c.sent != want { // an earlier request read the first bytes
		t.Errorf("%d GETs sent %d bytes, want %d", c.gets, c.sent, want)
	}
}

func TestS3ObjectThatChangesWhileItIsReadIsNoMixture(t *testing.T) {
	server := versitygw.Start(t)
	useServer(t, server, server.Endpoint)
	bucket := server.NewBucket(t)
	put(t, server, bucket, "u.txt", bytes.Repeat([]byte("http://old/\n"), 1_000_000))
	path := filepath.Join(server.Dir, bucket, "u.txt")
	c := &cutter{hook: func(get int) {
		if get == 2 {
			b, err := openS3(t.Context(), "s3://"+bucket)
			if err == nil {
				err = b.Delete(t.Context(), "u.txt")
			}
			if err == nil {
				_, err = store.CreateBytes(t.Context(), b, "u.txt", bytes.Repeat([]byte("http://new/\n"), 1_000_000))
			}
			if err != nil {
				t.Error(err)
			}
		}
	}}
	c.start(t, server)
	got, err := entriesOf(t, "s3://"+bucket+"/u.txt")
	if _, serr := os.Stat(path); serr != nil {
		t.Fatal(serr)
	}
	if !errors.Is(err, ErrChanged) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%d entries, %v", len(got), err)
	}
	for _, e := range got {
		if e.URL != "http://old/" {
			t.Fatalf("an entry of the new object: %+v", e)
		}
	}
}
