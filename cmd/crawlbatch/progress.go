package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// progress shows how a round goes: a bar a stage on a terminal, a line when a
// stage starts, ends, and every ten seconds in between elsewhere. It is the
// observer of the driver and the progress of its tasks.
type progress struct {
	say   func(line string) // where w is no terminal
	clock stages.Clock
	bars  *mpb.Progress // nil where w is no terminal

	// Tasks run in other processes: of a fetch task, all URLs count when it is done.
	elsewhere bool

	mu      sync.Mutex
	urls    int64 // recorded in the running fetch stage
	bar     *mpb.Bar
	plan    *manifest.Plan
	stage   stages.Stage
	name    string
	total   int64 // URLs to fetch, or tasks
	done    int   // tasks
	missing int   // tasks, at the start
	started time.Time
	said    time.Time
}

// newProgress shows progress on w: as lines of its own, or as entries of log where
// that is what w is read as (structured).
func newProgress(w io.Writer, clock stages.Clock, log *slog.Logger, structured bool) *progress {
	p := &progress{clock: clock, say: func(line string) { fmt.Fprintln(w, line) }}
	if structured {
		p.say = func(line string) { log.Info(line) }
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		// A terminal that does not know its size can show no bars.
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
		}
	}
	return p
}

// quiet is a log that shows warnings above the bars, nothing less.
func (p *progress) quiet(format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelWarn}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(p.bars, o))
	}
	return slog.New(slog.NewTextHandler(p.bars, o))
}

// StageStarted implements jobs.Observer.
func (p *progress) StageStarted(plan *manifest.Plan, stage stages.Stage, missing int, urls int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tasks := stage.Tasks(plan)
	p.plan, p.stage, p.name = plan, stage, fmt.Sprintf("%s@%s.%d", stage, plan.Crawl, plan.Round)
	p.done, p.missing, p.started, p.said = tasks-missing, missing, p.clock.Now(), p.clock.Now()
	p.urls = 0
	p.total = int64(tasks)
	if stage == stages.Fetch {
		p.total = urls
	}
	if p.bars == nil {
		if stage == stages.Fetch && missing > 0 {
			p.say(fmt.Sprintf("%s: %s in %s", p.name, count(urls, "URL"), count(int64(missing), "partition")))
		}
		return
	}
	p.bar = p.bars.AddBar(p.total,
		mpb.PrependDecorators(decor.Name(p.name, decor.WC{W: 20, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.CountersNoUnit("%d/%d"), decor.Name(" "), decor.Elapsed(decor.ET_STYLE_GO)))
	if stage != stages.Fetch {
		p.bar.SetCurrent(int64(p.done))
	}
}

// TaskDone implements jobs.Observer.
func (p *progress) TaskDone(t stages.Task, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.bars == nil {
			p.say(fmt.Sprintf("%s failed: %s", t, oneLine(err)))
		}
		return
	}
	p.done++
	if p.elsewhere && p.stage == stages.Fetch {
		p.add(p.plan.Partitions[t.Partition].URLs)
	}
	if p.bar != nil && p.stage != stages.Fetch {
		p.bar.SetCurrent(int64(p.done))
	}
}

// StageDone implements jobs.Observer.
func (p *progress) StageDone(stage stages.Stage, failed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		if failed > 0 {
			p.bar.Abort(false)
		} else {
			p.bar.SetTotal(p.total, true)
		}
		p.bar.Wait()
		p.bar = nil
		return
	}
	if p.bars != nil || p.missing == 0 {
		return
	}
	took := p.clock.Now().Sub(p.started).Round(time.Millisecond)
	what := count(int64(p.done), "task")
	if stage == stages.Fetch {
		what = count(p.urls, "URL")
	}
	line := fmt.Sprintf("%s: %s done in %s", p.name, what, took)
	if failed > 0 {
		line += fmt.Sprintf(", %s failed", count(int64(failed), "task"))
	}
	p.say(line)
}

// Add implements stages.Progress.
func (p *progress) Add(name string, n int64) {
	if name != stages.CountURLs {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(n)
}

// add counts URLs, and shows them now and then. p.mu is held.
func (p *progress) add(n int64) {
	p.urls += n
	done := p.urls
	if p.bar != nil {
		p.bar.SetCurrent(done)
		return
	}
	if now := p.clock.Now(); p.bars == nil && now.Sub(p.said) >= 10*time.Second {
		p.said = now
		p.say(fmt.Sprintf("%s: %d of %s, %.0f a second", p.name, done, count(p.total, "URL"), float64(done)/now.Sub(p.started).Seconds()))
	}
}

// Close ends the display.
func (p *progress) Close() {
	if p.bars == nil {
		return
	}
	p.mu.Lock()
	if p.bar != nil {
		p.bar.Abort(false)
	}
	p.mu.Unlock()
	p.bars.Wait()
}
