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

// How often things are shown.
const (
	frameEvery = 500 * time.Millisecond // on a terminal
	lookEvery  = time.Second            // at lines that may be due
	frameLeast = 50 * time.Millisecond  // between frames, however many lines come

	soon       = 10 * time.Second // between lines of the first minutes, and of reasons that change
	often      = 2 * time.Minute  // after which a stage's lines come less often
	atLeast    = time.Minute      // between lines later
	adviseFrom = time.Minute      // of a wait that nothing shortens
)

// saying is what lines have told of the stage.
type saying struct {
	at      time.Time // of the last line
	reasons string
	advised bool
	urls    int64
}

// show runs until the display ends.
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

// pause waits until the next frame, or a moment if there is something new.
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

// frame draws the lines that came, and the block.
func (p *Progress) frame(block []string) {
	p.mu.Lock()
	lines := p.lines
	if p.lost > 0 {
		lines = append(lines, fmt.Sprintf("%s left out", Count(int64(p.lost), "line")))
	}
	p.lines, p.lost = nil, 0
	p.mu.Unlock()
	_ = p.block.Draw(lines, block) // of a terminal that is gone nobody is told
}

// picture is what there is to show of the running stage.
type picture struct {
	name       string
	fetch      bool
	done, of   int64
	rate       float64
	took, left time.Duration
	activity   stages.Activity
	slowest    stages.Task     // that takes longest
	holds      stages.Activity // of the slowest
	asOf       time.Time       // of activity; zero: now
	stopping   bool
}

// look takes a picture; false: no stage runs.
func (p *Progress) look() (*picture, bool) {
	p.mu.Lock()
	if !p.running || len(p.start.Missing) == 0 {
		p.mu.Unlock()
		return nil, false
	}
	tasks := slices.Collect(maps.Values(p.watched))
	p.mu.Unlock()
	// A task that is asked takes a moment, in which the counters go on.
	slices.SortFunc(tasks, func(a, b *watched) int { return cmp.Compare(a.task.Partition, b.task.Partition) })
	running := map[int]stages.Activity{}
	var all []stages.Activity
	for _, w := range tasks {
		a := w.now(p.Clock)
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
		if a, at, ok := told(f); ok {
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

// waiting reports whether nothing goes on but waits that are worth telling of.
func (pic *picture) waiting() bool {
	a := pic.activity
	return a.InFlight == 0 && a.Ready == 0 && a.Delayed == 0 && len(a.Waits) > 0
}

// holder is the host that the slowest task waits for, if the wait is one that somebody may
// want to end; else "".
func (pic *picture) holder(now time.Time) string {
	w := pic.holds.Waits
	if !pic.waiting() || len(w) == 0 || max(w[0].Until.Sub(now), pic.holds.Remaining) < adviseFrom {
		return ""
	}
	return w[0].Host
}

// counts is how far the stage is.
func (pic *picture) counts() string {
	what := ""
	if !pic.fetch {
		what = "task"
	} else {
		what = "URL"
	}
	return fmt.Sprintf("%s of %s", Thousands(pic.done), Count(pic.of, what))
}

// speed is how fast it goes, and how long that takes.
func (pic *picture) speed() []string {
	var out []string
	if pic.fetch && pic.rate >= 0.05 {
		out = append(out, fmt.Sprintf("%.3g a second", pic.rate))
	}
	if l := left(pic.left); l != "" {
		out = append(out, l)
	}
	return out
}

// shownLive is how many waits the block lists, where there is room.
const shownLive = 4

// live are the lines of the block. On a low terminal it lists fewer waits, so that the
// longest one and the advice stay.
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

// blockOf are the lines of the block, with at most so many waits.
func (p *Progress) blockOf(pic *picture, shown int) []string {
	now := p.Clock.Now()
	width, _ := p.block.Size()
	head := append([]string{pic.counts()}, pic.speed()...)
	out := []string{pic.name + ": " + bar(pic, width) + strings.Join(append(head, span(pic.took)), ", ")}
	a := pic.activity
	if s := states(a); s != "" {
		out = append(out, "  "+s)
	}
	if c := closing(a, now); c != "" {
		out = append(out, "  "+c)
	}
	for i, w := range a.Waits {
		if i == shown {
			break
		}
		out = append(out, "  "+Wait(w, now))
	}
	if n := max(len(a.Waits)-shown, 0) + a.More; n > 0 {
		out = append(out, fmt.Sprintf("  waits for %s more", Count(int64(n), "host")))
	}
	if !pic.asOf.IsZero() {
		out = append(out, "  as of "+clockTime(pic.asOf, now))
	}
	if f := Failures(a.Failures, now); f != "" {
		out = append(out, "  "+f)
	}
	switch {
	case pic.stopping:
		out = append(out, "  stopping: what is under way ends, what is done is kept; Ctrl-C again ends at once")
	case p.Advice != nil:
		if host := pic.holder(now); host != "" {
			out = append(out, "  "+p.Advice(pic.slowest, host))
		}
	}
	return out
}

// bar is a bar, where there is room for one.
func bar(pic *picture, width int) string {
	const size = 20
	if width < 100 || pic.of == 0 {
		return ""
	}
	full := int(min(pic.done*size/pic.of, size))
	return "[" + strings.Repeat("=", full) + strings.Repeat("-", size-full) + "] "
}

// speak says a line if one is due: every ten seconds at first and each minute later,
// when the reasons of a wait change, and once a minute whatever happens.
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
	reasons := ""
	if pic.waiting() {
		reasons = p.reasons(pic)
	}
	since, due := now.Sub(said.at), atLeast
	if moves := pic.done != said.urls; moves && now.Sub(began) < often || reasons != said.reasons && reasons != "" {
		due = soon
	}
	if since < due {
		return
	}
	parts := append([]string{pic.counts()}, pic.speed()...)
	line := pic.name + ": " + strings.Join(parts, ", ")
	a := pic.activity
	if c := closing(a, now); c != "" {
		line += "; " + c
	}
	var waits []string
	for i, w := range a.Waits {
		if i == 2 {
			break
		}
		waits = append(waits, Wait(w, now))
	}
	if len(waits) > 0 {
		line += "; " + strings.Join(waits, "; ")
		if n := len(a.Waits) - len(waits) + a.More; n > 0 {
			line += fmt.Sprintf("; waits for %s more", Count(int64(n), "host"))
		}
	}
	if !pic.asOf.IsZero() {
		line += ", as of " + clockTime(pic.asOf, now)
	}
	if f := Failures(a.Failures, now); f != "" && since >= atLeast {
		line += "; " + f
	}
	p.say(line)
	host := pic.holder(now)
	advise := host != "" && !said.advised && p.Advice != nil
	if advise {
		p.say(p.Advice(pic.slowest, host))
	}
	p.mu.Lock()
	p.said.reasons, p.said.urls, p.said.advised = reasons, pic.done, said.advised || advise
	p.mu.Unlock()
}

// reasons tells one state of waiting from another.
func (p *Progress) reasons(pic *picture) string {
	var out []string
	for i, w := range pic.activity.Waits {
		if i == 2 {
			break
		}
		out = append(out, w.Host+" "+w.Why+" "+w.Until.String())
	}
	return strings.Join(out, "\n")
}

// sameTerminal reports whether both are one terminal.
func sameTerminal(a, b io.Writer) bool {
	f, g := file(a), file(b)
	if _, _, shows := Size(a); !shows {
		return false
	}
	i, err := f.Stat()
	j, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(i, j)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// elsewhere is what checkpoints tell of tasks that run in other processes.
type elsewhere struct {
	seen []jobs.FetchStatus
}

// peekEvery is how often checkpoints are looked at: holders write what they do as
// often, about.
const peekEvery = time.Minute

// peek looks at the checkpoints of tasks that run elsewhere.
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
			continue // it is asked again soon
		}
		p.mu.Lock()
		if p.start.Plan == plan && p.start.Stage == stages.Fetch {
			p.take(found)
		}
		p.mu.Unlock()
	}
}

// take takes over what checkpoints list. p.mu is held.
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
