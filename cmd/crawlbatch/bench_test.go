package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/html"

	"crawlbatch.io/crawlbatch/stages/simweb"
)

// benchServer is an environment variable. If it is set, the test binary serves the pages of
// BenchmarkMap. A separate process keeps the CPU time of the server out of the benchmark.
const benchServer = "CRAWLBATCH_BENCH_SERVER"

const (
	benchHosts = 64
	benchPages = 3000
)

// benchDocuments returns real pages if they are present, otherwise generated pages.
func benchDocuments() (documents [][]byte, what string) {
	names, _ := filepath.Glob("../../../shared/data/pages/*.html.gz")
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if z, err := gzip.NewReader(f); err == nil {
			if body, err := io.ReadAll(z); err == nil {
				documents = append(documents, body)
			}
		}
		f.Close()
	}
	if len(documents) > 0 {
		return documents, "real"
	}
	web, err := simweb.New(simweb.Default())
	if err != nil {
		panic(err)
	}
	server := simweb.NewServer(web, nil)
	for h := range 10 {
		for p := range 9 {
			r, err := http.NewRequest("GET", web.URL(h, p), nil)
			if err != nil {
				panic(err)
			}
			w := &recorder{}
			server.ServeHTTP(w, r)
			documents = append(documents, w.body.Bytes())
		}
	}
	return documents, "generated"
}

// recorder keeps a response body.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// serveBenchPages answers /pN with a document and /zN with a compressed document, until stdin is
// closed.
func serveBenchPages() {
	documents, _ := benchDocuments()
	compressed := make([][]byte, len(documents))
	for i, body := range documents {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write(body) // a write to memory never fails
		_ = w.Close()
		compressed[i] = z.Bytes()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(ln.Addr())
	go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimLeft(r.URL.Path, "/pz"))
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		body, tail := documents[n%len(documents)], benchTail(r.URL.Path, false)
		if strings.HasPrefix(r.URL.Path, "/z") {
			body, tail = compressed[n%len(documents)], benchTail(r.URL.Path, true)
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+len(tail)))
		w.Write(body)
		w.Write(tail)
	}))
	io.Copy(io.Discard, os.Stdin)
}

// benchTail returns a unique end for a document, so that equal documents are not stored only once. For a
// compressed document, the end is a gzip member of its own.
func benchTail(path string, compressed bool) []byte {
	tail := []byte("<!-- " + path + " -->")
	if !compressed {
		return tail
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(tail) // a write to memory never fails
	_ = w.Close()
	return z.Bytes()
}

// cpu returns the user and system time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkMap measures a whole map task (robots.txt, capture, WARC, parse, segments, checkpoint)
// on 3,000 pages of 64 hosts, plain and compressed. In the same run, it measures a bare loop, called
// the floor, which for each page sends a GET, calls html.Parse, compresses with gzip -1 and computes
// two SHA-1 digests. BenchmarkMap reports the CPU per page of the task and of the floor. The task
// should handle at least as many pages per second as the floor.
//
// With plain pages, writing WARC (gzip -1, SHA-1 of the block) takes a third of the task's CPU, and
// parsing takes a third. Writing Parquet (mostly compressing links with Zstandard) takes a sixth,
// and package wire (system calls, SHA-1 of the payload) takes a tenth. Garbage collection takes the
// rest of the CPU.
func BenchmarkMap(b *testing.B) {
	addr := benchProcess(b, benchServer)
	for _, x := range []struct{ name, path string }{{"plain", "p"}, {"gzip", "z"}} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				floor := bareLoop(b, addr, x.path)
				task := mapTask(b, addr, x.path)
				b.ReportMetric(float64(task.Microseconds())/benchPages, "µs-cpu/page")
				b.ReportMetric(float64(floor.Microseconds())/benchPages, "µs-cpu/page-floor")
				b.ReportMetric(float64(floor)/float64(task), "×floor")
			}
		})
	}
}

func bareLoop(b *testing.B, addr, path string) time.Duration {
	began := cpu(b)
	for n := range benchPages {
		r, err := http.Get(fmt.Sprintf("http://%s/%s%d", addr, path, n))
		if err != nil {
			b.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := html.Parse(bytes.NewReader(body)); err != nil {
			b.Fatal(err)
		}
		sha1.Sum(body)
		sha1.Sum(body)
		z, _ := gzip.NewWriterLevel(io.Discard, 1)
		z.Write(body)
		z.Close()
	}
	return cpu(b) - began
}

func mapTask(b *testing.B, addr, path string) time.Duration {
	dir := b.TempDir()
	var urls strings.Builder
	for n := range benchPages {
		fmt.Fprintf(&urls, "http://h%d.d%d.test/%s%d\n", n%benchHosts, n%benchHosts, path, n)
	}
	files := map[string]string{"urls.txt": urls.String(), "c.yaml": "politeness: {delay: 0s}\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	run := func(args ...string) {
		var out, errs bytes.Buffer
		if code := execute(b.Context(), append(args, "--month", "2026-11", "--store", filepath.Join(dir, "store")), nil, &out, &errs); code != 0 {
			b.Fatalf("%v: exit %d: %s", args, code, errs.String())
		}
	}
	run("plan", "--source", filepath.Join(dir, "urls.txt"), "--config", filepath.Join(dir, "c.yaml"), "--connect-to", "::"+addr)
	began := cpu(b)
	run("task", "fetch")
	return cpu(b) - began
}
