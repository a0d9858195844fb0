package show

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// drawnText returns what a new block of the given size shows for the lines.
func drawnText(t *testing.T, width, height int, lines []string) []string {
	t.Helper()
	var out bytes.Buffer
	b := Block{W: &out, Size: func() (int, int) { return width, height }}
	if err := b.Draw(nil, lines); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestABlockThatIsTooHighKeepsItsHeadAndItsEnd(t *testing.T) {
	lines := []string{"crawl 2026-11"}
	for i := 1; i < 40; i++ {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	for height, want := range map[int][]string{
		41: lines,
		40: slices.Concat([]string{"crawl 2026-11", "(2 lines left out)"}, lines[3:]),
		6:  {"crawl 2026-11", "(36 lines left out)", "line 37", "line 38", "line 39"},
		4:  {"crawl 2026-11", "(38 lines left out)", "line 39"},
		3:  {"line 38", "line 39"},
		1:  {"line 39"},
	} {
		if got := drawnText(t, 80, height, lines); !slices.Equal(got, want) {
			t.Errorf("on %d rows: %q, want %q", height, got, want)
		}
	}
}

// If a block has no room for all waits, it shows the longest wait and the advice.
func TestTheLiveBlockKeepsTheLongestWaitAndTheAdvice(t *testing.T) {
	p := &Progress{Options: Options{Err: &syncBuffer{}, Clock: stages.SystemClock{}, FetchTasks: 1, Advice: func(_ stages.Task, hosts []string) string {
		return "to end the wait: " + strings.Repeat("do this and that, ", 10) + "for " + hosts[0]
	}}, watched: map[int]*watchedTask{}, wake: make(chan struct{}, 1)}
	begin(p, planOf(10))
	now := stages.Activity{Remaining: time.Hour}
	for i := range 5 {
		now.Waits = append(now.Waits, stages.Wait{Host: fmt.Sprintf("h%d.test", i), Why: "robots.txt answered 503, asked again", Until: time.Now().Add(time.Hour), URLs: 4})
	}
	defer p.Watch(fetchTask(0), func() stages.Activity { return now })()
	for height, waits := range map[int]int{40: 5, 17: 1} {
		p.block = &Block{Size: func() (int, int) { return 40, height }}
		shown := strings.Join(drawnText(t, 40, height, p.live()), "\n")
		if !strings.Contains(shown, "for h0.test: robots.txt") || strings.Count(shown, "asked again") != waits || !strings.HasSuffix(shown, "for h0.test") || strings.Contains(shown, "left out") {
			t.Errorf("on %d rows it shows\n%s", height, shown)
		}
	}
}
