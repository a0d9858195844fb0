package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// session is a program on its own terminal. A test reads the program's output from the screen and
// sends keys to the program.
type session struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	gone chan struct{} // closed when the program has ended and all its output was read

	mu     sync.Mutex
	screen *screen
	raw    bytes.Buffer
}

// onTerminal starts crawlbatch in a directory on a terminal with the given number of columns.
func onTerminal(t *testing.T, dir string, columns int, env []string, args ...string) *session {
	t.Helper()
	return onTerminalRun(t, dir, columns, env, exec.Command("crawlbatch", args...))
}

// onTerminalRun starts any program in a directory on a terminal.
func onTerminalRun(t *testing.T, dir string, columns int, env []string, cmd *exec.Cmd) *session {
	t.Helper()
	const rows = 30
	s := &session{t: t, cmd: cmd, gone: make(chan struct{}), screen: newScreen(columns, rows)}
	s.cmd.Dir = dir
	s.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color"), env...)
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: rows, Cols: uint16(columns)})
	if err != nil {
		t.Fatal(err)
	}
	s.tty = tty
	go func() {
		defer close(s.gone)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.raw.Write(buf[:n])
			s.screen.write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return // the program has closed its end of the terminal
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		killSession(s.cmd.Process.Pid)
		_ = tty.Close()
	})
	return s
}

// killSession kills the processes of a session, such as the jobs that a killed shell left.
func killSession(id int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, group, session
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && len(fields) > 3 && fields[3] == strconv.Itoa(id) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// A test that fails while a shell has a job, such as simweb, leaves no process.
func TestATerminalThatIsGivenUpLeavesNoJob(t *testing.T) {
	job := 0
	t.Run("given up", func(t *testing.T) {
		s := onTerminalRun(t, t.TempDir(), 80, nil, exec.Command("sh", "-c", "set -m; sleep 1000 & echo job $! runs; wait"))
		s.waitForMatch(regexp.MustCompile(`job \d+ runs`))
		if _, err := fmt.Sscanf(strings.TrimSpace(s.text()), "job %d runs", &job); err != nil {
			t.Fatal(err)
		}
	})
	for end := time.Now().Add(patience); syscall.Kill(job, 0) == nil; runtime.Gosched() {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", job)); err != nil || strings.Contains(string(stat), ") Z ") {
			break // dead; whoever adopted it has not noticed
		}
		if time.Now().After(end) {
			_ = syscall.Kill(job, syscall.SIGKILL)
			t.Fatal("the job still runs")
		}
	}
}

// text returns the text that the screen has shown, without redrawn lines.
func (s *session) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.text()
}

// patience bounds how long a test waits for output. It is long because machines may be slow.
const patience = time.Minute

// waitFor waits until the screen shows one of the texts. Folded rows count as one line.
func (s *session) waitFor(texts ...string) {
	s.t.Helper()
	for i, text := range texts {
		texts[i] = regexp.QuoteMeta(text)
	}
	s.waitForMatch(regexp.MustCompile(strings.Join(texts, "|")))
}

// waitForMatch waits until the screen shows a matching text. Folded rows count as one line.
func (s *session) waitForMatch(wanted *regexp.Regexp) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		shown := strings.Join(strings.Fields(s.text()), " ")
		if wanted.MatchString(shown) {
			return
		}
		select {
		case <-s.gone:
			if shown == strings.Join(strings.Fields(s.text()), " ") {
				s.t.Fatalf("it ended without showing %q:\n%s", wanted, s.text())
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatalf("it does not show %q:\n%s", wanted, s.text())
}

// press sends keys to the program, as a user types them.
func (s *session) press(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// interrupt presses Ctrl-C.
func (s *session) interrupt() { s.t.Helper(); s.press("\x03") }

// resize changes the width of the terminal.
func (s *session) resize(columns int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.resize(columns, s.screen.height)
	if err := pty.Setsize(s.tty, &pty.Winsize{Rows: uint16(s.screen.height), Cols: uint16(columns)}); err != nil {
		s.t.Fatal(err)
	}
}

// waitForEnd waits until the program has ended, and checks its exit code and its screen.
func (s *session) waitForEnd(code int) {
	s.t.Helper()
	select {
	case <-s.gone:
	case <-time.After(patience):
		s.t.Fatalf("it does not end:\n%s", s.text())
	}
	_ = s.cmd.Wait() // the exit code is in ProcessState
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("it ended with %d, want %d:\n%s", got, code, s.text())
	}
	s.checkScreen()
}

// checkScreen checks that the screen has no unknown control sequence and no folded row. Only rows
// with a long word or a command to copy may be folded.
func (s *session) checkScreen() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.screen.odd {
		s.t.Errorf("it wrote the sequence %s", o)
	}
	for _, w := range s.screen.wrapped {
		if !strings.Contains(w, "`") && !isCommandRow(w) && strings.Contains(strings.TrimSpace(w), " ") {
			s.t.Errorf("it wrote beyond the edge of %d columns: %q", s.screen.width, w)
		}
	}
}

// isCommandRow reports whether a row has a command that a user copies.
func isCommandRow(row string) bool {
	for _, lead := range []string{"next: ", "rerun: ", "crawlbatch query "} {
		if strings.HasPrefix(strings.TrimSpace(row), lead) {
			return true
		}
	}
	return false
}
