package metrics_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/stages"
)

func listen(t *testing.T, m *metrics.Metrics) *metrics.Server {
	t.Helper()
	s, err := m.Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnAddressThatCannotBeListenedOnIsToldOf(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m := metrics.New("test", stages.SystemClock{})
	for addr, says := range map[string]string{
		taken.Addr().String():  "another program listens on this port",
		"9090":                 "names no port: write ADDR:PORT, or :PORT",
		"127.0.0.1:":           "names no port",
		"::1:9090":             "names no port",
		"127.0.0.1:99999":      "invalid port",
		"192.0.2.1:9090":       "cannot assign requested address", // TEST-NET-1, RFC 5737
		"127.0.0.1:x y":        "unknown port",
		"no such host\x00:901": "no such host",
	} {
		s, err := m.Listen(addr, slog.New(slog.DiscardHandler))
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), fmt.Sprintf("%q", addr)) {
			t.Errorf("%q: %v, want %q", addr, err, says)
		}
	}
}

func TestABarePortIsListenedOnAtAllAddresses(t *testing.T) {
	m := metrics.New("test", stages.SystemClock{})
	s, err := m.Listen(":0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if addr, ok := s.Addr().(*net.TCPAddr); !ok || !addr.IP.IsUnspecified() {
		t.Errorf("it listens on %v", s.Addr())
	}
}

func TestOnlyScrapesAreAnswered(t *testing.T) {
	s := listen(t, metrics.New("test", stages.SystemClock{}))
	defer s.Close()
	for request, want := range map[string]int{
		"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n":                                          200,
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                                                 404,
		"GET /metrics/../debug/pprof HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":      307, // the server redirects to the clean path
		"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc":                 405,
		"\x16\x03\x01 hello\r\n\r\n":                                                        400,
		"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n": 431,
	} {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(conn, request) //nolint:errcheck // the server closes one of the connections
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%.40q: %v", request, err)
		} else if resp.StatusCode != want {
			t.Errorf("%.40q: status %d, want %d", request, resp.StatusCode, want)
		}
		conn.Close()
	}
}

func TestCloseEndsTheServerWhateverItsClientsDo(t *testing.T) {
	s := listen(t, metrics.New("test", stages.SystemClock{}))
	silent, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	slow, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /metrics HT"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if c, err := net.Dial("tcp", s.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			c.Close()
		}
		t.Errorf("after Close: %v", err)
	}
	if _, err := slow.Read(make([]byte, 1)); err == nil {
		t.Error("a request that was never whole was answered")
	}
}

func TestSeriesAreBoundedWhateverIsCounted(t *testing.T) {
	m := metrics.New("bad\xffversion", stages.SystemClock{})
	p := m.Progress(stages.NoProgress{})
	s := listen(t, m)
	defer s.Close()
	for status := range 1000 {
		p.Add(fmt.Sprintf("%s%d", stages.CountAnswers, status), 1)
	}
	for _, name := range []string{"", "status", stages.CountAnswers + "\xff", stages.CountOutcomes + "novel\xff", stages.CountOutcomes, stages.CountRetries + "\x00", "bytes"} {
		p.Add(name, 1)
	}
	l := lab{t: t, url: "http://" + s.Addr().String() + "/metrics"}
	got := l.scrape()
	if n := len(withPrefixes(got, "crawler_http_response_total")); n != 501 {
		t.Errorf("%d series of status codes", n)
	}
	if other := got[`crawler_http_response_total{status_code="other"}`]; other != 501 {
		t.Errorf("%v other statuses", other)
	}
	if got := withPrefixes(got, "crawler_urls", "crawler_retries"); len(got) > 0 {
		t.Errorf("unknown names are counted: %v", got)
	}
	if got[`crawlbatch_build_info{version="bad?version"}`] != 1 {
		t.Errorf("%v", withPrefixes(got, "crawlbatch"))
	}
}

func TestWithoutMetricsNothingIsWrapped(t *testing.T) {
	var none *metrics.Metrics
	var b store.Bucket
	if none.Progress(stages.NoProgress{}) != (stages.NoProgress{}) || none.Bucket(b) != b {
		t.Error("the returned store is not the given one")
	}
}
