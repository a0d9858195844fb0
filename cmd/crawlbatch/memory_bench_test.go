package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
)

// BenchmarkMapMemory runs a map task of 200 slots in a new process and reports its peak resident memory
// (VmHWM). In one case, all slots fetch documents of 5 MiB at once, every second one compressed. In two other
// cases, partitions of two sizes have small documents. The peak must stay below 512 MiB in all cases.
func BenchmarkMapMemory(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		b.Skip("peak memory is read from /proc, which is missing here")
	}
	for _, x := range []struct {
		name        string
		urls, hosts int
		path        string
	}{
		{"600 URLs of 5 MiB", 600, 300, "large"},
		{"10k URLs", 10_000, 300, "small"},
		{"100k URLs", 100_000, 300, "small"},
		{"100k URLs of 100k hosts", 100_000, 100_000, "small"},
	} {
		b.Run(x.name, func(b *testing.B) {
			addr := benchProcess(b, benchMemory)
			for b.Loop() {
				dir := b.TempDir()
				var urls strings.Builder
				for n := range x.urls {
					fmt.Fprintf(&urls, "http://h%d.d%d.test/%s%d\n", n%x.hosts, n%x.hosts, x.path, n)
				}
				source, conf := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
				store := filepath.Join(dir, "store")
				crawltest.Write(b, source, urls.String())
				crawltest.Write(b, conf, "politeness: {delay: 0s}\nplan: {partition_urls: 1000000}\n")
				var out, errs bytes.Buffer
				if code := execute(b.Context(), []string{"plan", "--month", "2026-11", "--store", store, "--source", source, "--config", conf, "--connect-to", "::" + addr}, nil, &out, &errs); code != 0 {
					b.Fatalf("plan: exit %d: %s", code, errs.String())
				}
				peak, cpu, err := crawltest.PeakOf(exec.CommandContext(b.Context(), "crawlbatch", "task", "fetch", "--month", "2026-11", "--store", store))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(peak)/(1<<20), "MiB-peak")
				b.ReportMetric(float64(cpu.Microseconds())/float64(x.urls), "µs-cpu/page")
			}
		})
	}
}

// benchMemory is an environment variable. If it is set, the test binary serves the documents of
// BenchmarkMapMemory.
const benchMemory = "CRAWLBATCH_BENCH_MEMORY"

// benchProcess starts the test binary as a server and returns the server's address. mode is the name of the
// environment variable that selects the server.
func benchProcess(b *testing.B, mode string) (addr string) {
	b.Helper()
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), mode+"=1")
	in, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = server.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// serveMemoryPages answers /largeN with 5 MiB of HTML and /smallN with 2 kB, until stdin is closed.
// Answers to /largeN with an odd N are compressed.
func serveMemoryPages() {
	var page bytes.Buffer
	for n := 0; page.Len() < 5<<20-200; n++ {
		fmt.Fprintf(&page, "<p>Paragraph %d tells of <a href=\"/large%d\">another page</a> of the same length.\n", n, n)
	}
	large := page.Bytes()
	small := large[:2000]
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(large) // a write to memory never fails
	_ = w.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(ln.Addr())
	go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:errcheck // the server ends with the process
		body, tail := small, benchTail(r.URL.Path, false)
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/large"))
		switch {
		case r.URL.Path == "/robots.txt":
			w.WriteHeader(http.StatusNotFound)
			return
		case err == nil && n%2 == 1:
			w.Header().Set("Content-Encoding", "gzip")
			body, tail = z.Bytes(), benchTail(r.URL.Path, true)
		case err == nil:
			body = large
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+len(tail)))
		_, _ = w.Write(body) // the client may go away at any time
		_, _ = w.Write(tail)
	}))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
