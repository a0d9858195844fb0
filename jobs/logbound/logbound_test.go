package logbound

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// manual is a clock that the test moves.
type manual struct {
	stages.SystemClock
	now time.Time
}

func (m *manual) Now() time.Time { return m.now }

// lab is a bounded logger that writes into a buffer.
type lab struct {
	*slog.Logger
	out   bytes.Buffer
	clock manual
	end   func()
}

func newLab(level slog.Level) *lab {
	l := &lab{clock: manual{now: time.Unix(0, 0)}}
	l.Logger, l.end = New(slog.New(slog.NewTextHandler(&l.out, &slog.HandlerOptions{Level: level})), &l.clock)
	return l
}

// lines returns the lines since the last call.
func (l *lab) lines() []string {
	all := strings.Split(strings.TrimSuffix(l.out.String(), "\n"), "\n")
	l.out.Reset()
	if len(all) == 1 && all[0] == "" {
		return nil
	}
	return all
}

func TestAFloodOfLinesIsCounted(t *testing.T) {
	l := newLab(slog.LevelInfo)
	for i := range 100_000 {
		l.Warn("host suspended", "host", fmt.Sprintf("h%d.example", i))
		l.clock.now = l.clock.now.Add(time.Millisecond)
	}
	got := l.lines() // 100 seconds
	if len(got) != linesAKind || !strings.Contains(got[0], "host=h0.example") || strings.Contains(strings.Join(got, ""), "more=") {
		t.Errorf("in the first minutes: %d lines: %q", len(got), got)
	}
	l.clock.now = l.clock.now.Add(every)
	l.Warn("host suspended", "host", "later.example")
	l.Warn("host suspended", "host", "last.example")
	got = l.lines()
	if len(got) != 2 || !strings.Contains(got[0], "host=later.example more=99980") || strings.Contains(got[1], "more=") {
		t.Errorf("in the next minutes: %q", got)
	}
	l.end()
	if got := l.lines(); got != nil {
		t.Errorf("nothing was left out, but the end says %q", got)
	}
}

func TestTheEndSaysWhatWasLeftOut(t *testing.T) {
	l := newLab(slog.LevelInfo)
	child := l.With("task", "fetch@2026-11.0:17").WithGroup("g")
	for range 30 {
		l.Info("host resumed")
		child.Error("a document could not be parsed", "url", "x")
	}
	if got := l.lines(); len(got) != 2*linesAKind {
		t.Errorf("%d lines", len(got))
	}
	l.end()
	got := l.lines()
	if len(got) != 2 || !strings.Contains(got[0], `level=ERROR msg="a document could not be parsed" more=10`) || !strings.Contains(got[1], `level=INFO msg="host resumed" more=10`) {
		t.Errorf("%q", got)
	}
	l.end()
	if got := l.lines(); got != nil {
		t.Errorf("said twice: %q", got)
	}
}

func TestKindsAndLevelsDoNotShareABound(t *testing.T) {
	l := newLab(slog.LevelInfo)
	for range linesAKind {
		l.Warn("a")
		l.Warn("b")
		l.Error("a")
	}
	if got := l.lines(); len(got) != 3*linesAKind {
		t.Errorf("%d lines", len(got))
	}
}

func TestWhoeverDebugsSeesEveryLine(t *testing.T) {
	l := newLab(slog.LevelDebug)
	for range 50 {
		l.Debug("a")
		l.Warn("b")
	}
	got := strings.Join(l.lines(), "\n")
	if n := strings.Count(got, "level=DEBUG msg=b"); n != 50-linesAKind || strings.Count(got, "msg=a") != 50 {
		t.Errorf("%d omitted lines: %s", n, got)
	}
}

// Messages are constants, but a fault must not fill the memory.
func TestTheNumberOfKindsIsBounded(t *testing.T) {
	l := newLab(slog.LevelInfo)
	for i := range 10 * maxKinds {
		l.Info(fmt.Sprint("message ", i))
	}
	if got := l.lines(); len(got) != maxKinds+linesAKind {
		t.Errorf("%d lines", len(got))
	}
	l.end()
	if got := l.lines(); len(got) != 1 || !strings.Contains(got[0], fmt.Sprint("more=", 9*maxKinds-linesAKind)) {
		t.Errorf("%q", got)
	}
}
