package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// smallWeb is a web of a few hosts. Its directory has the files urls.txt and c.yaml for a crawl of
// the web.
type smallWeb struct {
	dir     string
	connect string       // value of --connect-to
	refuse  atomic.Bool  // true: the first host answers 503 for robots.txt
	asked   atomic.Int64 // number of requests so far
}

func newSmallWeb(t *testing.T, hosts, pages int, delay time.Duration) *smallWeb {
	t.Helper()
	w := &smallWeb{dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		switch {
		case r.URL.Path == "/robots.txt" && strings.HasPrefix(r.Host, "h0.") && w.refuse.Load():
			rw.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/robots.txt":
			rw.WriteHeader(http.StatusNotFound)
		default:
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(rw, "<title>%s%s</title><p>words", r.Host, r.URL.Path)
		}
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w.connect = "::127.0.0.1:" + port
	var urls strings.Builder
	for h := range hosts {
		for p := range pages {
			fmt.Fprintf(&urls, "http://h%d.test/page%d\n", h, p)
		}
	}
	w.file(t, "urls.txt", urls.String())
	w.file(t, "c.yaml", fmt.Sprintf("politeness: {delay: %s}\nfetch: {pauses: {server_error: 10m, rate_limited: 100ms}, retries: {rate_limited: 1}}\n", delay))
	return w
}

func (w *smallWeb) file(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// args returns the arguments of a command for the web's crawl.
func (w *smallWeb) args(command string, more ...string) []string {
	return append([]string{command, "--month", "2026-11", "--config", "c.yaml", "--connect-to", w.connect}, more...)
}

// plan plans the crawl.
func (w *smallWeb) plan(t *testing.T) {
	t.Helper()
	cmd := exec.Command("crawlbatch", w.args("plan", "--source", "urls.txt")...)
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("plan: %v\n%s", err, out)
	}
}

// widths lists the terminal widths to test. A short run tests only one width.
func widths() []int {
	if testing.Short() {
		return []int{40}
	}
	return []int{120, 80, 40}
}

func TestRunOnATerminalIsInterruptedResumedAndResized(t *testing.T) {
	for _, width := range widths() {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			w := newSmallWeb(t, 3, 12, 250*time.Millisecond)
			w.plan(t)
			s := onTerminal(t, w.dir, width, nil, w.args("run", "--rounds", "1")...)
			s.waitFor("of 36 URLs")
			for end := time.Now().Add(patience); w.asked.Load() < 12 && time.Now().Before(end); {
				time.Sleep(20 * time.Millisecond)
			}
			s.interrupt()
			s.waitForEnd(exitInterrupted)
			if !strings.Contains(strings.Join(strings.Fields(s.text()), " "), "go on with `crawlbatch run --month 2026-11 --rounds 1") {
				t.Errorf("the run does not say how to continue:\n%s", s.text())
			}

			// The resumed run starts with the finished URLs and ends by itself.
			s = onTerminal(t, w.dir, width, []string{"NO_COLOR=1"}, w.args("run", "--rounds", "1")...)
			s.waitFor("of them done")
			s.waitFor("of 36 URLs")
			for _, to := range []int{41, 120, 40, width} {
				s.resize(to)
				time.Sleep(100 * time.Millisecond)
			}
			s.waitForEnd(exitDone)
			for _, want := range []string{"fetch@2026-11.0: 36 URLs done in", "publish@2026-11.0: 1 task done", "round 0 of 2026-11: 36 URLs", "frontier: "} {
				if !strings.Contains(strings.Join(strings.Fields(s.text()), " "), want) {
					t.Errorf("no %q in\n%s", want, s.text())
				}
			}
			if strings.Contains(s.text(), "URLs/s") {
				t.Errorf("the display was left on the screen:\n%s", s.text())
			}
		})
	}
}

func TestOnADumbTerminalThereAreLinesAlone(t *testing.T) {
	w := newSmallWeb(t, 1, 2, time.Millisecond)
	w.plan(t)
	s := onTerminal(t, w.dir, 40, []string{"TERM=dumb"}, w.args("run", "--rounds", "1")...)
	s.waitFor("round 0 of 2026-11: 2 URLs")
	<-s.gone
	if raw := s.raw.String(); strings.Contains(raw, "\x1b") {
		t.Errorf("it wrote escape sequences: %q", raw)
	}
}

// TestAWaitOnATerminalSaysWhyAndHowToEndIt lets a host answer 503 for robots.txt.
func TestAWaitOnATerminalSaysWhyAndHowToEndIt(t *testing.T) {
	w := newSmallWeb(t, 2, 3, 10*time.Millisecond)
	w.refuse.Store(true)
	w.plan(t)
	for i, width := range widths() {
		s := onTerminal(t, w.dir, width, nil, w.args("run", "--rounds", "1")...)
		s.waitFor("waits for h0.test: robots.txt answered 503, asked again at ")
		if i == 0 {
			s.waitFor("failed requests: http_5xx")
		}
		s.interrupt()
		s.waitForEnd(exitInterrupted)

		// The command `status` shows the wait for the host from the checkpoint.
		s = onTerminal(t, w.dir, width, nil, w.args("status")...)
		s.waitForEnd(exitDone)
		if shown := strings.Join(strings.Fields(s.text()), " "); !strings.Contains(shown, "waits for h0.test: robots.txt answered 503, asked again at ") || !strings.Contains(shown, "as of ") {
			t.Errorf("status does not mention the wait:\n%s", s.text())
		}
	}
	if !testing.Short() {
		// The command in the advice ends the wait by stopping the host while the crawl runs.
		stopped := newSmallWeb(t, 2, 3, 10*time.Millisecond)
		stopped.refuse.Store(true)
		stopped.plan(t)
		s := onTerminal(t, stopped.dir, 80, nil, stopped.args("run", "--rounds", "1")...)
		s.waitFor("waits for h0.test: robots.txt answered 503")
		stopped.file(t, "c.yaml", "politeness: {delay: 10ms, domains: {h0.test: {stop: not now}}}\nfetch: {pauses: {server_error: 10m, rate_limited: 100ms}, retries: {rate_limited: 1}}\n")
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.waitFor("politeness was read again")
		s.waitFor("stopped 3")
		s.waitForEnd(exitDone)
	}
	// A user can also end the wait by giving up the partition. After giving up, the round
	// continues.
	s := onTerminal(t, w.dir, 80, nil, w.args("retry", "--give-up", "--partition", "0")...)
	s.waitFor("1 task given up")
	s.waitForEnd(exitDone)
	s = onTerminal(t, w.dir, 80, nil, w.args("run", "--rounds", "1")...)
	s.waitFor("deferred 3")
	s.waitForEnd(exitDone)
}

func TestOtherLongCommandsOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, width := range widths() {
		w := newSmallWeb(t, 2, 4, 50*time.Millisecond)
		for _, c := range []struct {
			args []string
			want string
		}{
			{w.args("plan", "--source", "urls.txt"), "planned round 0 of 2026-11: 8 URLs"},
			{w.args("run", "--rounds", "1"), "round 0 of 2026-11: 8 URLs"},
			{w.args("retry"), "nothing to retry"},
			{w.args("verify"), "no violation in 1 round"},
			{w.args("reparse", "--as", "2026-11r1"), "round 0 of 2026-11r1: 8 URLs"},
			{w.args("status"), "round 0: sealed"},
		} {
			s := onTerminal(t, w.dir, width, nil, c.args...)
			s.waitFor(c.want)
			s.waitForEnd(exitDone)
		}
		// The command `status --watch` runs until the user interrupts it, and follows the
		// terminal's width.
		s := onTerminal(t, w.dir, width, nil, w.args("status", "--watch", "--every", "200ms")...)
		s.waitFor("round 0 of 2026-11: sealed")
		s.resize(41)
		time.Sleep(300 * time.Millisecond)
		s.resize(width)
		time.Sleep(300 * time.Millisecond)
		s.interrupt()
		s.waitForEnd(exitDone)
		if n := strings.Count(s.text(), "round 0 of 2026-11: sealed"); n != 1 {
			t.Errorf("the status is on the screen %d times:\n%s", n, s.text())
		}
	}
}

func TestDemoOnATerminalIsInterruptedAndResumed(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole demo: make test-crawl")
	}
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	s := onTerminal(t, dir, 80, nil, "demo")
	// The test interrupts the crawl as soon as the display counts a recorded URL. Round 0 plans
	// 1,018 URLs, and its fetch takes seconds.
	s.waitForMatch(regexp.MustCompile(`[1-9][0-9]* of 1,018 URLs`))
	s.interrupt()
	s.waitForEnd(exitInterrupted)
	if !strings.Contains(strings.Join(strings.Fields(s.text()), " "), "go on with `crawlbatch demo`") {
		t.Errorf("it does not say how to go on:\n%s", s.text())
	}
	s = onTerminal(t, dir, 40, nil, "demo")
	s.waitFor("of them done")
	s.waitForEnd(exitDone)
}
