package show

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// These constants are intervals of the display.
const (
	frameEvery = 500 * time.Millisecond // time between two frames on a terminal
	lookEvery  = time.Second            // time between two checks whether to write a line
	frameLeast = 50 * time.Millisecond  // time between two frames while lines are queued

	soon       = 10 * time.Second // pause until the next line if the reasons for waiting have changed, or if a stage younger than slowAge has recorded URLs
	slowAge    = 2 * time.Minute  // age of a stage from which lines about recorded URLs come after atLeast instead of soon
	atLeast    = time.Minute      // pause until the next line in all other cases
	adviseFrom = time.Minute      // shortest wait for which advice is shown
)

// linesState is the state of the lines about the current stage.
type linesState struct {
	at      time.Time // when the last line was written
	reasons string
	advised bool
	urls    int64
}

// show updates the display until ctx ends.
func (p *Progress) show(ctx context.Context) {
	defer close(p.ended)
	for ctx.Err() == nil {
		every := lookEvery
		if p.block != nil {
			p.frame(p.live())
			every = frameEvery
		} else {
			p.speak()
		}
		p.pause(ctx, every)
	}
	if p.block != nil {
		p.frame(nil)
	}
}

// pause waits until the next frame is due: after every, or after frameLeast if a new line is
// queued.
func (p *Progress) pause(ctx context.Context, every time.Duration) {
	sleep, cancel := context.WithCancel(ctx)
	defer cancel()
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		select {
		case <-p.wake:
			_ = p.Clock.Sleep(ctx, frameLeast)
			cancel()
		case <-sleep.Done():
		}
	}()
	_ = p.Clock.Sleep(sleep, every)
	cancel()
	<-woken
}

// frame draws the queued lines and the block.
func (p *Progress) frame(block []string) {
	p.mu.Lock()
	lines := p.lines
	if p.lost > 0 {
		lines = append(lines, fmt.Sprintf("%s left out", Count(int64(p.lost), "line")))
	}
	p.lines, p.lost = nil, 0
	p.mu.Unlock()
	_ = p.block.Draw(lines, block) // Draw fails only if the terminal is gone
}

// picture is the displayed state of the running stage.
type picture struct {
	name       string
	fetch      bool
	done, of   int64
	rate       float64
	took, left time.Duration
	activity   stages.Activity
	slowest    stages.Task     // the task that will end last
	holds      stages.Activity // activity of the slowest task
	asOf       time.Time       // time at which the activity was recorded; zero means now
	stopping   bool
}

// look takes a picture of the running stage. It returns false if no stage runs.
func (p *Progress) look() (*picture, bool) {
	p.mu.Lock()
	if !p.running || len(p.start.Missing) == 0 {
		p.mu.Unlock()
		return nil, false
	}
	tasks := slices.Collect(maps.Values(p.watched))
	p.mu.Unlock()
	// Asking a task takes a moment, so look asks the tasks without holding p.mu.
	slices.SortFunc(tasks, func(a, b *watchedTask) int { return cmp.Compare(a.task.Partition, b.task.Partition) })
	running := map[int]stages.Activity{}
	var all []stages.Activity
	for _, w := range tasks {
		a := w.recentActivity(p.Clock)
		running[w.task.Partition] = a
		all = append(all, a)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock.Now()
	pic := &picture{
		name: p.name, fetch: p.start.Stage == stages.Fetch, done: int64(p.done), of: int64(p.start.Tasks), took: now.Sub(p.began), stopping: p.stopping,
	}
	if !pic.fetch {
		if n := pic.done - int64(p.start.Tasks-len(p.start.Missing)); n > 0 {
			pic.left = time.Duration(float64(pic.took) / float64(n) * float64(pic.of-pic.done))
		}
		pic.activity = merge(all)
		return pic, true
	}
	for _, w := range tasks {
		p.scale.begin(w.task.Partition, w.since)
	}
	for _, f := range p.seen {
		if a, at, ok := activityOf(f); ok {
			a.Remaining = max(a.Remaining-now.Sub(at), 0)
			running[f.Partition] = a
			all = append(all, a)
			pic.asOf = at
		}
	}
	pic.done, pic.of = p.recorded(), p.start.URLs
	pic.rate = p.rate.take(now, pic.done)
	pic.activity = merge(all)
	for _, n := range slices.Sorted(maps.Keys(running)) {
		if a := running[n]; pic.slowest.Stage == "" || a.Remaining > pic.holds.Remaining {
			pic.holds, pic.slowest = a, stages.Task{Stage: stages.Fetch, Crawl: p.start.Plan.Crawl, Round: p.start.Plan.Round, Partition: n}
		}
	}
	if len(running) > 0 {
		pic.left = p.remaining(running)
	}
	return pic, true
}

// waiting reports whether all tasks of the stage do nothing but wait for hosts.
func (pic *picture) waiting() bool {
	a := pic.activity
	return a.InFlight == 0 && a.Ready == 0 && a.Delayed == 0 && len(a.Waits) > 0
}

// longestWait returns the host for which the slowest task waits longest, or "" if this wait is too
// short for advice.
func (pic *picture) longestWait(now time.Time) string {
	w := pic.holds.Waits
	if !pic.waiting() || len(w) == 0 || max(w[0].Until.Sub(now), pic.holds.Remaining) < adviseFrom {
		return ""
	}
	return w[0].Host
}

// counts describes the progress of the stage.
func (pic *picture) counts() string {
	what := "task"
	if pic.fetch {
		what = "URL"
	}
	return fmt.Sprintf("%s of %s", Thousands(pic.done), Count(pic.of, what))
}

// speed describes the rate and the remaining time, if known.
func (pic *picture) speed() []string {
	var out []string
	if pic.fetch && pic.rate >= 0.05 {
		out = append(out, fmt.Sprintf("%.3g a second", pic.rate))
	}
	if l := remainingTime(pic.left); l != "" {
		out = append(out, l)
	}
	return out
}

// shownLive is the number of waits that the block lists if the terminal has room.
const shownLive = 4

// live returns the lines of the block. On a terminal with few rows, live lists fewer waits, so that
// at least the longest wait and the advice are visible.
func (p *Progress) live() []string {
	pic, ok := p.look()
	if !ok {
		return nil
	}
	for n := shownLive; ; n-- {
		lines := p.blockOf(pic, n)
		if rows, most := p.block.rows(lines); n == 1 || len(rows) <= most {
			return lines
		}
	}
}

// blockOf returns the lines of the block, with at most shown waits.
func (p *Progress) blockOf(pic *picture, shown int) []string {
	now := p.Clock.Now()
	width, _ := p.block.Size()
	head := append([]string{pic.counts()}, pic.speed()...)
	out := []string{pic.name + ": " + bar(pic, width) + strings.Join(append(head, span(pic.took)), ", ")}
	a := pic.activity
	facts := append([]string{states(a), closing(a, now)}, waitLines(a, shown, now)...)
	if !pic.asOf.IsZero() {
		facts = append(facts, "as of "+clockTime(pic.asOf, now))
	}
	facts = append(facts, Failures(a.Failures, now))
	host := pic.longestWait(now)
	switch {
	case pic.stopping:
		facts = append(facts, "stopping: running requests end, finished work is kept; Ctrl-C again ends at once")
	case p.Advice != nil && host != "":
		facts = append(facts, p.Advice(pic.slowest, host))
	}
	for _, fact := range facts {
		if fact != "" {
			out = append(out, "  "+fact)
		}
	}
	return out
}

// bar returns a progress bar, or "" if the terminal is too narrow for one.
func bar(pic *picture, width int) string {
	const size = 20
	if width < 100 || pic.of == 0 {
		return ""
	}
	full := int(min(pic.done*size/pic.of, size))
	return "[" + strings.Repeat("=", full) + strings.Repeat("-", size-full) + "] "
}

// speak writes a line about the stage when one is due.
func (p *Progress) speak() {
	pic, ok := p.look()
	if !ok {
		return
	}
	now := p.Clock.Now()
	p.mu.Lock()
	said, began := p.said, p.began
	p.mu.Unlock()
	if said.at.IsZero() {
		said.at = began
	}
	since, reasons := now.Sub(said.at), pic.reasons()
	if since < pauseAfter(said, pic.done, reasons, now.Sub(began)) {
		return
	}
	p.say(pic.line(now, since >= atLeast))
	host := pic.longestWait(now)
	advise := host != "" && !said.advised && p.Advice != nil
	if advise {
		p.say(p.Advice(pic.slowest, host))
	}
	p.mu.Lock()
	p.said.reasons, p.said.urls, p.said.advised = reasons, pic.done, said.advised || advise
	p.mu.Unlock()
}

// pauseAfter returns the pause until the next line. The pause is ten seconds if the reasons for
// waiting have changed, or if URLs were recorded in the first minutes of the stage. Otherwise, the
// pause is one minute.
func pauseAfter(said linesState, done int64, reasons string, runs time.Duration) time.Duration {
	if done != said.urls && runs < slowAge || reasons != said.reasons && reasons != "" {
		return soon
	}
	return atLeast
}

// shownInLine is the number of waits that a line names.
const shownInLine = 2

// line describes the stage in one line.
func (pic *picture) line(now time.Time, failures bool) string {
	a := pic.activity
	line := pic.name + ": " + strings.Join(append([]string{pic.counts()}, pic.speed()...), ", ")
	if a.Sitemaps > 0 {
		line += "; " + sitemapsOf(a)
	}
	if c := closing(a, now); c != "" {
		line += "; " + c
	}
	for _, w := range waitLines(a, shownInLine, now) {
		line += "; " + w
	}
	if !pic.asOf.IsZero() {
		line += ", as of " + clockTime(pic.asOf, now)
	}
	if f := Failures(a.Failures, now); f != "" && failures {
		line += "; " + f
	}
	return line
}

// waitLines describes at most shown waits, and counts the other hosts for which tasks wait.
func waitLines(a stages.Activity, shown int, now time.Time) []string {
	var out []string
	for _, w := range a.Waits[:min(shown, len(a.Waits))] {
		out = append(out, Wait(w, now))
	}
	if n := len(a.Waits) - len(out) + a.More; n > 0 {
		out = append(out, fmt.Sprintf("waits for %s more", Count(int64(n), "host")))
	}
	return out
}

// reasons returns a text that changes when the reasons for waiting change. It is "" unless all tasks
// wait.
func (pic *picture) reasons() string {
	if !pic.waiting() {
		return ""
	}
	var out []string
	for _, w := range pic.activity.Waits[:min(shownInLine, len(pic.activity.Waits))] {
		out = append(out, w.Host+" "+w.Why+" "+w.Until.String())
	}
	return strings.Join(out, "\n")
}

// sameTerminal reports whether the writers a and b write to the same terminal.
func sameTerminal(a, b io.Writer) bool {
	f, g := file(a), file(b)
	if _, _, shows := Size(a); !shows {
		return false
	}
	i, err := f.Stat()
	j, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(i, j)
}

// OneLine folds an error into one line.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// peekEvery is the time between two reads of checkpoints. More reads would bring little news,
// because attempts write their activity about once a minute.
const peekEvery = time.Minute

// peek reads the checkpoints of tasks that run elsewhere.
func (p *Progress) peek(ctx context.Context) {
	for p.Clock.Sleep(ctx, peekEvery) == nil {
		p.mu.Lock()
		plan, fetching := p.start.Plan, p.running && p.start.Stage == stages.Fetch
		var tasks []stages.Task
		for _, t := range p.start.Missing {
			if !p.finished[t.Partition] {
				tasks = append(tasks, t)
			}
		}
		p.mu.Unlock()
		if !fetching {
			continue
		}
		found, err := p.Peek(ctx, plan, tasks)
		if err != nil {
			continue // the next peek tries again
		}
		p.mu.Lock()
		if p.start.Plan == plan && p.start.Stage == stages.Fetch {
			p.take(found)
		}
		p.mu.Unlock()
	}
}

// take updates the display with statuses that were read from checkpoints. The caller holds p.mu.
func (p *Progress) take(found []jobs.FetchStatus) {
	p.seen = slices.DeleteFunc(slices.Clone(found), func(f jobs.FetchStatus) bool { return p.finished[f.Partition] })
	n := p.start.URLs
	for _, t := range p.start.Missing {
		if !p.finished[t.Partition] {
			n -= p.start.Plan.Partitions[t.Partition].URLs
		}
	}
	for _, f := range p.seen {
		n += f.Recorded
	}
	p.urls.Store(n)
}
