package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// outputBuffer collects the output of a command. Other goroutines may read the output while the
// command writes.
type outputBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *outputBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *outputBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

var metricsURL = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/metrics`)

// scrapedWhileCrawling serves a site of one page. When the page is requested, the site scrapes the
// metrics URL that the command printed on stderr.
func scrapedWhileCrawling(t *testing.T, stderr *outputBuffer) (addr string, scraped func() string) {
	t.Helper()
	var mu sync.Mutex
	var text string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		if url := metricsURL.FindString(stderr.String()); url != "" {
			if resp, err := http.Get(url); err == nil {
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				mu.Lock()
				text = string(body)
				mu.Unlock()
			}
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>a page</title>")
	}))
	t.Cleanup(site.Close)
	return site.Listener.Addr().String(), func() string { mu.Lock(); defer mu.Unlock(); return text }
}

func TestMetricsAreServedAsLongAsTheCommandRuns(t *testing.T) {
	for _, args := range [][]string{
		{"task", "fetch", "--round", "0", "--partition", "0"},
		{"run", "--rounds", "1"},
		{"retry", "--stage", "fetch"},
	} {
		t.Run(args[0], func(t *testing.T) {
			var stdout bytes.Buffer
			stderr := &outputBuffer{}
			addr, scraped := scrapedWhileCrawling(t, stderr)
			dir := t.TempDir()
			urls, conf := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "crawlbatch.yaml")
			if err := errors.Join(os.WriteFile(urls, []byte("http://a.test/\n"), 0o644), os.WriteFile(conf, []byte("politeness: {delay: 10ms}\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
			common := []string{"--month", "2026-11", "--store", filepath.Join(dir, "store"), "--connect-to", "::" + addr, "--config", conf}
			if code := execute(t.Context(), append([]string{"plan", "--source", urls}, common...), nil, &stdout, stderr); code != exitDone {
				t.Fatalf("plan: exit %d: %s", code, stderr)
			}
			if args[0] == "retry" { // retry needs a round that has begun
				if code := execute(t.Context(), append([]string{"task", "merge", "--round", "0", "--partition", "0"}, common...), nil, &stdout, stderr); code != exitInterrupted {
					t.Fatalf("merge before fetch: exit %d: %s", code, stderr)
				}
			}
			line := append(append(args, common...), "--metrics-listen", "127.0.0.1:0", "--metrics-legacy-names")
			if code := execute(t.Context(), line, nil, &stdout, stderr); code != exitDone {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			progress := ""
			if args[0] != "task" { // only drivers know the round
				progress = "\ncrawler_round_planned_urls 1\n"
			}
			for _, want := range []string{
				progress, "\ncrawler_worker_active_fetches 1\n", "\ncrawler_urls_queued 1\n", "\ncrawler_urls_queued_total 1\n", "\ncrawler_http_response_total{status_code=\"404\"} 1\n",
				"\ncrawler_tasks_running{stage=\"fetch\"} 1\n", "\ncrawler_hosts_suspended 0\n", "\ncrawlbatch_build_info{version=\"dev\"} 1\n",
			} {
				if !strings.Contains(scraped(), want) {
					t.Errorf("while the page was fetched, no %q in:\n%s", want, scraped())
				}
			}
			where := metricsURL.FindStringSubmatch(stderr.String())[1]
			if c, err := net.Dial("tcp", where); !errors.Is(err, syscall.ECONNREFUSED) {
				if err == nil {
					c.Close()
				}
				t.Errorf("after the command ended, the metrics URL gave: %v", err)
			}
		})
	}
}

// occupied returns an address that is already in use.
func occupied(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func TestMetricsThatCannotBeServedAreAMistakeOfTheCommandLine(t *testing.T) {
	taken := occupied(t)
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"task", "fetch", "--metrics-listen", taken}, `--metrics-listen "` + taken + `": another program listens on this port`},
		{[]string{"run", "--metrics-listen", taken}, "another program listens on this port"},
		{[]string{"retry", "--metrics-listen", taken}, "another program listens on this port"},
		{[]string{"run", "--metrics-listen", "9090"}, `--metrics-listen "9090" names no port: write ADDR:PORT`},
		{[]string{"run", "--metrics-listen", ":9090", "--detach", "--executor", "kubernetes"}, "kubernetes.metrics_port"},
	} {
		var out bytes.Buffer
		stderr := &outputBuffer{}
		code := execute(t.Context(), append(c.args, "--month", "2026-11", "--store", dir), nil, &out, stderr)
		if text := stderr.String(); code != exitUsage || !strings.Contains(text, c.says) || strings.Count(text, "\n") != 1 {
			t.Errorf("%v: exit %d, %q; want %d and %q in one line", c.args, code, text, exitUsage, c.says)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("the store was written to: %v, %v", left, err)
	}
}
