package show

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// Options configures a Progress.
type Options struct {
	Out        io.Writer // gets the summaries of rounds; if nil, no summaries are written
	Err        io.Writer // gets all other output
	Clock      stages.Clock
	Log        *slog.Logger
	Structured bool // whether lines are written as entries of Log
	FetchTasks int  // number of fetch tasks that run at the same time; 0 if all tasks run in other processes
	// Advice returns a sentence that tells people how to end a task's wait for hosts early. If
	// Advice is nil, no advice is shown.
	Advice func(t stages.Task, hosts []string) string
	// Peek reads the checkpoints of tasks in other processes. It is nil if the tasks run in this
	// process.
	Peek  func(ctx context.Context, p *manifest.Plan, tasks []stages.Task) ([]jobs.FetchStatus, error)
	Costs *Costs // nil: no costs are shown
}

// Progress shows the progress of rounds. It implements jobs.Observer, stages.Progress and
// stages.Watcher.
type Progress struct {
	Options
	block *Block // nil if only lines are shown
	urls  atomic.Int64
	bytes atomic.Int64 // bytes that the tasks of this process received since the stage began

	mu       sync.Mutex
	start    jobs.StageStart
	running  bool // whether a stage is running
	name     string
	began    time.Time
	done     int // number of tasks with a result
	base     int64
	watched  map[int]*watchedTask
	watches  int
	finished map[int]bool // partitions whose tasks have ended in this run
	scale    scale
	rate     rate
	byteRate rate
	forecast forecast
	account  account
	seen     []jobs.FetchStatus // states of tasks in other processes, from their checkpoints

	stopping bool
	lines    []string // lines that are queued for the space above the block
	lost     int      // number of lines dropped because too many were queued
	said     linesState

	wake  chan struct{}
	end   context.CancelFunc
	ended chan struct{}
}

// watchedTask is a running task.
type watchedTask struct {
	task  stages.Task
	look  func() stages.Activity
	since time.Time

	last stages.Activity // activity at the last call of look; only one goroutine uses it
	next time.Time       // earliest time of the next call of look
}

// share limits the calls of look to 1/share of a task's time. During a call, the task walks through
// all its hosts and sends no requests.
const share = 100

// recentActivity returns the recent activity of the task.
func (w *watchedTask) recentActivity(clock stages.Clock) stages.Activity {
	began := clock.Now()
	if began.Before(w.next) {
		return w.last
	}
	w.last = w.look()
	ended := clock.Now()
	w.next = began.Add(max(lookEvery, share*ended.Sub(began)))
	return w.last
}

// New returns a Progress that shows progress until Close. When ctx ends, it shows that the command
// is stopping.
func New(ctx context.Context, o Options) *Progress {
	p := &Progress{Options: o, watched: map[int]*watchedTask{}, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if _, _, ok := Size(o.Err); ok && !o.Structured {
		p.block = newBlock(o.Err)
	}
	showing, end := context.WithCancel(context.WithoutCancel(ctx))
	p.end = end
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.stopping = true
		p.mu.Unlock()
		p.poke()
	})
	go p.show(showing)
	if o.Peek != nil {
		go p.peek(showing)
	}
	if p.block == nil && !o.Structured {
		p.Costs = nil // the lines do not name costs
	}
	if p.Costs != nil {
		p.account.due = make(chan struct{}, 1)
		go p.keepAccount(showing)
	}
	return p
}

// Live reports whether a block is redrawn in place. If it is, all other output to the terminal must
// go through Write.
func (p *Progress) Live() bool { return p.block != nil }

// maxLines limits how many lines are queued while the terminal blocks.
const maxLines = 1000

// Write queues lines to show above the block. It never waits for the terminal.
func (p *Progress) Write(text []byte) (int, error) {
	if p.block == nil {
		return p.Err.Write(text)
	}
	p.mu.Lock()
	p.add(string(text))
	p.mu.Unlock()
	p.poke()
	return len(text), nil
}

// add queues a text for the terminal. The caller holds p.mu.
func (p *Progress) add(text string) {
	if len(p.lines) >= maxLines {
		p.lost++
		return
	}
	p.lines = append(p.lines, strings.TrimSuffix(text, "\n"))
}

// say shows a line that stays above the block. The caller must not hold p.mu.
func (p *Progress) say(line string) { p.tell(line, nil) }

// tell is like say. If lines are entries of a log, the entry has the facts of the screen too.
func (p *Progress) tell(line string, s *Screen) {
	switch {
	case p.block != nil:
		_, _ = p.Write([]byte(line))
	case p.Structured && s != nil:
		p.Log.Info(line, "live", s)
	case p.Structured:
		p.Log.Info(line)
	default:
		fmt.Fprintln(p.Err, line)
	}
	p.mu.Lock()
	p.said.at = p.Clock.Now()
	p.mu.Unlock()
}

func (p *Progress) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// StageStarted implements jobs.Observer.
func (p *Progress) StageStarted(s jobs.StageStart) {
	p.mu.Lock()
	p.start, p.running = s, true
	p.name = fmt.Sprintf("%s@%s.%d", s.Stage, s.Plan.Crawl, s.Plan.Round)
	p.began = p.Clock.Now()
	p.done, p.base = s.Tasks-len(s.Missing), s.Recorded
	p.urls.Store(s.Recorded)
	p.finished, p.scale, p.rate, p.byteRate, p.forecast, p.said = map[int]bool{}, scale{}, rate{}, rate{}, forecast{}, linesState{}
	p.bytes.Store(0)
	p.account.begin(p)
	if p.seen = nil; p.Peek != nil {
		p.seen = s.Fetching
	}
	p.mu.Unlock()
	if s.Stage == stages.Fetch && len(s.Missing) > 0 {
		line := fmt.Sprintf("%s: %s in %s", p.name, Count(s.URLs, "URL"), Count(int64(s.Tasks), "partition"))
		if s.Recorded > 0 {
			line += fmt.Sprintf(", %s of them done", Thousands(s.Recorded))
		}
		p.say(line)
	}
}

// Watch implements stages.Watcher.
func (p *Progress) Watch(t stages.Task, look func() stages.Activity) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches++
	n := p.watches
	p.watched[n] = &watchedTask{task: t, look: look, since: p.Clock.Now()}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watched, n)
	}
}

// Add implements stages.Progress.
func (p *Progress) Add(name string, n int64) {
	switch name {
	case stages.CountURLs:
		p.urls.Add(n)
	case stages.CountBytes:
		p.bytes.Add(n)
	}
}

// TaskDone implements jobs.Observer.
func (p *Progress) TaskDone(t stages.Task, err error) {
	if err != nil {
		p.say(fmt.Sprintf("%s failed: %s", t, OneLine(err)))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.finished[t.Partition] = true
	if t.Stage != stages.Fetch {
		return
	}
	part := p.start.Plan.Partitions[t.Partition]
	if p.Peek != nil {
		p.take(p.seen)
	}
	p.scale.learn(t.Partition, part.EstimatedSeconds, p.Clock.Now())
}

// StageDone implements jobs.Observer.
func (p *Progress) StageDone(stage stages.Stage, failed int) {
	p.mu.Lock()
	p.running = false
	line := fmt.Sprintf("%s: %s", p.name, Count(int64(p.done), "task"))
	if stage == stages.Fetch {
		line = fmt.Sprintf("%s: %s", p.name, Count(p.recorded(), "URL"))
	}
	took := p.Clock.Now().Sub(p.began).Round(time.Millisecond)
	line += " done in " + took.String()
	if stage == stages.Fetch && p.base > 0 {
		line += fmt.Sprintf(", %s of them before", Thousands(p.base))
	}
	missing := len(p.start.Missing)
	p.mu.Unlock()
	if failed > 0 {
		line += fmt.Sprintf(", %s failed", Count(int64(failed), "task"))
	}
	if missing > 0 && (stage != stages.Plan || took >= time.Second) { // no line for a plan that existed already: this takes less than a second
		p.say(line)
	}
	p.poke()
}

// RoundDone implements jobs.Observer.
func (p *Progress) RoundDone(s *manifest.Sealed) {
	switch {
	case p.Out == nil:
	case p.block != nil && sameTerminal(p.Out, p.Err):
		Summary(p, s)
	default:
		Summary(p.Out, s)
	}
}

// Recorded returns how many URLs of the running fetch stage have an outcome. URLs of tasks in other
// processes count when a checkpoint lists them.
func (p *Progress) Recorded() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recorded()
}

// recorded returns how many of the stage's URLs have an outcome. A failed attempt may count URLs
// twice, so recorded returns at most the number of planned URLs. The caller holds p.mu.
func (p *Progress) recorded() int64 { return min(max(p.urls.Load(), 0), p.start.URLs) }

// patience is how long Close waits for a blocked terminal.
const patience = time.Second

// Close ends the display.
func (p *Progress) Close() {
	p.mu.Lock()
	p.running = false
	p.mu.Unlock()
	p.end()
	select {
	case <-p.ended:
	case <-time.After(patience):
	}
}
