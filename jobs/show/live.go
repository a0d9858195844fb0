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

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// These constants are intervals of the display.
const (
	frameEvery = time.Second           // time between two frames on a terminal
	lookEvery  = time.Second           // time between two checks whether to write a line
	frameLeast = 50 * time.Millisecond // time between two frames while lines are queued

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
	plan       *manifest.Plan
	stage      stages.Stage
	fetch      bool
	done, of   int64
	base       int64   // URLs that were done before this run
	rate       float64 // URLs per second in the last minute
	bytes      float64 // bytes per second in the last minute
	received   int64   // bytes since the stage began
	took, left time.Duration
	least      time.Duration // as stages.Activity.Least
	predicted  time.Duration // time of the stage by the plan
	stages     []StageCount
	workers    []Worker
	activity   stages.Activity
	slowest    stages.Task     // the task that will end last
	holds      stages.Activity // activity of the slowest task
	asOf       time.Time       // time at which the activity was recorded; zero means now
	moved      string          // that the predicted end moved, and why; "" if it did not lately
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
	running, machines, when := map[int]stages.Activity{}, map[int]string{}, map[int]time.Time{}
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
		name: p.name, plan: p.start.Plan, stage: p.start.Stage, base: p.base, stages: p.stageCounts(), fetch: p.start.Stage == stages.Fetch, done: int64(p.done), of: int64(p.start.Tasks), took: now.Sub(p.began), stopping: p.stopping,
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
			if at.After(pic.asOf) {
				pic.asOf = at
			}
			machines[f.Partition], when[f.Partition] = f.Activity.Machine, at
		}
	}
	pic.done, pic.of = p.recorded(), p.start.URLs
	pic.received = p.bytes.Load()
	pic.rate, pic.bytes = p.rate.take(now, pic.done), p.byteRate.take(now, pic.received)
	pic.predicted = time.Duration(p.start.Plan.EstimatedSeconds * float64(time.Second))
	if p.FetchTasks > 0 {
		pic.predicted = time.Duration(p.start.Plan.SecondsAt(p.FetchTasks) * float64(time.Second))
	}
	pic.activity = merge(all)
	for _, n := range slices.Sorted(maps.Keys(running)) {
		w := Worker{Partition: n, Machine: machines[n], LeftMS: running[n].Remaining.Milliseconds(), activity: running[n], asOf: when[n]}
		if of := p.start.Plan.Partitions[n].URLs; running[n].Left > 0 {
			w.Done, w.Of = max(of-running[n].Left, 0), of
		}
		pic.workers = append(pic.workers, w)
		if a := running[n]; pic.slowest.Stage == "" || a.Remaining > pic.holds.Remaining {
			pic.holds, pic.slowest = a, stages.Task{Stage: stages.Fetch, Crawl: p.start.Plan.Crawl, Round: p.start.Plan.Round, Partition: n}
		}
	}
	if len(running) > 0 {
		pic.left = p.remaining(running)
	}
	switch {
	case pic.took < firstGuess && pic.left < time.Minute:
		pic.left = 0 // so far only the quick hosts have answered
	case pic.left == pic.activity.Remaining:
		pic.least = pic.activity.Least
	}
	if pic.took >= settles {
		pic.moved = p.forecast.take(now, pic.left, pic.holds)
	}
	return pic, true
}

// waiting reports whether all tasks of the stage do nothing but wait for hosts.
func (pic *picture) waiting() bool {
	a := pic.activity
	return a.InFlight == 0 && a.Ready == 0 && a.Delayed == 0 && len(a.Waits) > 0
}

// longestWaits returns the host for which the slowest task waits longest, and the hosts that end at nearly
// the same time. It returns nil if this wait is too short for advice, or if the task waits for no host.
func (pic *picture) longestWaits(now time.Time) (hosts []string) {
	w := pic.holds.Waits
	if !pic.waiting() || len(w) == 0 || w[0].Host == "" || max(w[0].Until.Sub(now), pic.holds.Remaining) < adviseFrom {
		return nil
	}
	for _, h := range pic.holds.EndTogether() {
		hosts = append(hosts, h.Host)
	}
	if !slices.Contains(hosts, w[0].Host) {
		return []string{w[0].Host}
	}
	return hosts
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
func (pic *picture) speed(now time.Time) []string {
	var out []string
	if pic.fetch && pic.rate >= 0.05 {
		out = append(out, fmt.Sprintf("%.3g a second", pic.rate))
	}
	a := pic.activity
	if a.Remaining, a.Least = pic.left, pic.least; a.Remaining > 0 {
		out = append(out, leftOf(a, now))
	}
	return out
}

// live returns the lines of the block.
func (p *Progress) live() []string {
	pic, ok := p.look()
	if !ok {
		return nil
	}
	return p.screen(pic).fitted(p.block, p.Clock.Now())
}

// screen makes the screen of a picture.
func (p *Progress) screen(pic *picture) *Screen {
	now := p.Clock.Now()
	s := &Screen{
		Crawl: pic.plan.Crawl, Round: pic.plan.Round, State: "running", Stage: pic.stage, Unit: "task", Done: pic.done, Of: pic.of, Stages: pic.stages,
		ElapsedMS: pic.took.Milliseconds(), LeftMS: pic.left.Milliseconds(), Cost: p.spent(pic), activity: pic.activity, asOf: pic.asOf, Workers: pic.workers,
	}
	if len(pic.workers) > 0 || len(pic.activity.Waits) > 0 {
		s.Activity = stored(pic.activity, now)
	}
	if pic.fetch {
		s.Unit, s.PredictedMS, s.MostLeftMS = "URL", pic.predicted.Milliseconds(), mostLeft(pic.left, pic.activity.Latest, now)
		if a := pic.activity; s.MostLeftMS == 0 {
			a.Remaining, a.Least = pic.left, pic.least
			s.LeastLeftMS = leastLeft(a)
		}
		if pic.took >= 2*time.Second { // a rate of less than two seconds says little
			s.Now = &Rate{pic.rate, pic.bytes}
			s.Average = &Rate{float64(pic.done-pic.base) / pic.took.Seconds(), float64(pic.received) / pic.took.Seconds()}
		}
	}
	late := pic.longestWaits(now)
	switch {
	case pic.stopping:
		s.State = "stopping"
		s.Notes = append(s.Notes, "stopping: running requests end, finished work is kept; Ctrl-C again ends at once")
	case p.Advice != nil && len(late) > 0:
		s.Notes = append(s.Notes, p.Advice(pic.slowest, late))
	}
	if pic.moved != "" {
		s.Notes = append(s.Notes, pic.moved)
	}
	return s
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
	p.tell(pic.line(now, since >= atLeast), p.screen(pic))
	late := pic.longestWaits(now)
	advise := len(late) > 0 && !said.advised && p.Advice != nil
	if advise {
		p.say(p.Advice(pic.slowest, late))
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
	line := pic.name + ": " + strings.Join(append([]string{pic.counts()}, pic.speed(now)...), ", ")
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
	if pic.moved != "" {
		line += "; " + pic.moved
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
	f, g := File(a), File(b)
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
		if p.Costs != nil {
			p.account.ask()
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
		n += f.Done
	}
	p.urls.Store(n)
}
