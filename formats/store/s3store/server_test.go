package s3store

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

// connect opens the store of a bucket at endpoint, with the environment variables of a user.
func connect(t *testing.T, endpoint, bucket string) *Store {
	t.Helper()
	for _, pair := range (*versitygw.Server)(nil).Env(endpoint) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	s, err := Open(t.Context(), Scheme+bucket+"/some/prefix", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fake is an S3 server that holds objects in memory. The fake knows PUT, GET, If-Match and
// If-None-Match.
type fake struct {
	mu      sync.Mutex
	objects map[string]string
}

func etag(body string) string {
	sum := md5.Sum([]byte(body))
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s with %s</Message></Error>", code, versitygw.AccessKey, versitygw.SecretKey)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, 400, "IncompleteBody")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now, exists := f.objects[r.URL.Path]
	switch match := r.Header.Get("If-Match"); {
	case r.Method == http.MethodPut && match != "" && !exists:
		refuse(w, 404, "NoSuchKey")
	case r.Method == http.MethodPut && match != "" && match != etag(now), r.Method == http.MethodPut && r.Header.Get("If-None-Match") == "*" && exists:
		refuse(w, 412, "PreconditionFailed")
	case r.Method == http.MethodPut:
		f.objects[r.URL.Path] = string(body)
		w.Header().Set("ETag", etag(string(body)))
	case !exists:
		refuse(w, 404, "NoSuchKey")
	default:
		w.Header().Set("ETag", etag(now))
		_, _ = io.WriteString(w, now)
	}
}

// action handles one request: it passes the request to next, fails the request, or loses the
// response.
type action func(w http.ResponseWriter, r *http.Request, next http.Handler)

func pass(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) }

// dropBefore and dropAfter close the connection without a response, before or after the request
// takes effect.
func dropBefore(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

func dropAfter(_ http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

func statusBefore(status int, code string) action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { refuse(w, status, code) }
}

func statusAfter(status int, code string) action {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		refuse(w, status, code)
	}
}

// scripted is a server that applies the next action of a script to each matching request, and logs
// the methods of all requests.
type scripted struct {
	next  http.Handler
	match func(*http.Request) bool

	mu     sync.Mutex
	script []action
	log    []string
	sums   map[string]bool // signed body digests of all conditional writes
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.log = append(s.log, r.Method)
	if conditionalWrite(r) {
		s.sums[r.Header.Get("X-Amz-Content-Sha256")] = true
	}
	act := action(pass)
	if s.match(r) && len(s.script) > 0 {
		act, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	act(w, r, s.next)
}

func (s *scripted) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(strings.Join(s.log, " "), method)
}

func conditionalWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "")
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	return server.URL
}

func scriptOn(next http.Handler, match func(*http.Request) bool, script ...action) *scripted {
	return &scripted{next: next, match: match, script: script, sums: map[string]bool{}}
}

// proxy returns a handler that forwards requests to a real server. The proxy keeps the Host that
// the signature covers.
func proxy(t *testing.T, endpoint string) http.Handler {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
}

func TestMain(m *testing.M) {
	// The AWS settings of this machine must not affect the tests.
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}
