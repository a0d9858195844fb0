// Package versitygw starts a real S3 server on loopback for tests.
//
// The input is the path of a versitygw binary, in an environment variable. The binary must be v1.8.0
// or newer: conditional writes of older versions are not atomic. The output is a server whose objects
// are plain files in a temporary directory. The server stops when the test ends. Package versitygw
// imports only the standard library.
package versitygw

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Binary is the environment variable that holds the path of the versitygw binary.
const Binary = "CRAWLBATCH_VERSITYGW"

// Every server that Start starts has these credentials.
const (
	AccessKey = "crawlbatch-test-access"
	SecretKey = "crawlbatch-test-secret"
)

// Server is a running S3 server.
type Server struct {
	Endpoint string // URL of the server, such as http://127.0.0.1:PORT
	Dir      string // directory with one folder per bucket and one file per object
}

// Start starts a server for the test and returns as soon as it answers. Without the versitygw
// binary, Start skips the test.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartOn(t, "127.0.0.1")
}

// StartOn is like Start, but the server listens on the given address of this machine. Pods of a
// test cluster can reach such a server.
func StartOn(t testing.TB, ip string) *Server {
	t.Helper()
	binary := os.Getenv(Binary)
	if binary == "" {
		t.Skipf("%s is not set, so there is no S3 server to test against; `make test-s3` builds one and runs this", Binary)
	}
	// Another process may take the free port before the server does.
	for try := 1; ; try++ {
		s, err := start(t, binary, ip)
		if err == nil {
			return s
		}
		if try == 3 {
			t.Fatalf("start %s: %v", binary, err)
		}
	}
}

func start(t testing.TB, binary, ip string) (*Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	s := &Server{Endpoint: "http://" + address, Dir: t.TempDir()}
	cmd := exec.Command(binary, "--access", AccessKey, "--secret", SecretKey, "--region", "us-east-1",
		"--port", address, "--health", "/health", "--quiet", "--keep-alive", "posix", s.Dir)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.Dir
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said := func() []byte {
		text, _ := os.ReadFile(log.Name()) // after an error the message only lacks the output
		return text
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the exit status does not matter
	}()
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	if err := waitForAnswer(s.Endpoint+"/health", ended); err != nil {
		stop()
		return nil, fmt.Errorf("%w; its output:\n%s", err, said())
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", binary, said())
		}
	})
	return s, nil
}

// waitForAnswer waits until url answers with status 200. It fails if the server ends first, or after
// 30 seconds.
func waitForAnswer(url string, ended <-chan struct{}) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	client := &http.Client{Timeout: time.Second}
	for {
		if response, err := client.Get(url); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			return fmt.Errorf("the server ended before it answered")
		case <-limit:
			return fmt.Errorf("no answer within 30 seconds")
		}
	}
}

// NewBucket makes an empty bucket and returns its name.
func (s *Server) NewBucket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(s.Dir, "bucket-")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Base(dir)
}

// Env returns the environment of a test process. In this environment, the AWS default chain uses
// the given endpoint: the server s, or a proxy before it. The settings of the user who runs the
// test have no effect.
func (s *Server) Env(endpoint string) []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_SESSION_TOKEN=",
		"AWS_ENDPOINT_URL_S3=" + endpoint, "AWS_REGION=us-east-1", "AWS_PROFILE=",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
	}
}
