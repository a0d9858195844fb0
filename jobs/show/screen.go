package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// Screen says how far a round is, how fast it goes, when it will end, what holds it up and what it
// costs. `run` makes a Screen from its own tasks, `status` makes one from the store. Both show it in the
// same way. The JSON form holds the same facts.
type Screen struct {
	Crawl  string       `json:"crawl"`
	Round  int          `json:"round"`
	State  string       `json:"state"`           // planned, running, stopping or sealed
	Stage  stages.Stage `json:"stage,omitempty"` // the first stage that is not done
	Stages []StageCount `json:"stages,omitempty"`
	Unit   string       `json:"unit,omitempty"` // what Done and Of count: URL or task
	Done   int64        `json:"done"`           // URLs with an outcome, whether or not a checkpoint lists it
	Of     int64        `json:"of"`

	Now     *Rate `json:"now,omitempty"`     // rate in the last minute, or between the last two reports of each task; nil: unknown
	Average *Rate `json:"average,omitempty"` // rate since the stage began in this run, or since the running attempts began; nil: unknown

	ElapsedMS   int64  `json:"elapsed_ms,omitempty"`    // time since the stage began in this run; `status`: since the round began
	LeftMS      int64  `json:"left_ms,omitempty"`       // remaining time of the stage; 0: unknown
	MostLeftMS  int64  `json:"most_left_ms,omitempty"`  // remaining time if the robots.txt of Activity.Latest goes on failing; 0: not longer than LeftMS
	LeastLeftMS int64  `json:"least_left_ms,omitempty"` // remaining time if the robots.txt of Activity.Latest goes on failing; 0: not shorter than LeftMS
	PredictedMS int64  `json:"predicted_ms,omitempty"`  // time of the whole fetch stage by the plan; 0: unknown
	Cost        *Spent `json:"cost,omitempty"`

	// Activity sums up the running tasks: what they do, why they wait, and which requests failed.
	Activity *manifest.Activity `json:"activity,omitempty"`
	Workers  []Worker           `json:"workers,omitempty"` // running fetch tasks, by partition
	Failed   []jobs.TaskStatus  `json:"failed,omitempty"`  // tasks that failed and have no result
	Notes    []string           `json:"notes,omitempty"`   // sentences that say what to do; the first is shown even on the smallest terminal

	activity stages.Activity // what Activity holds
	asOf     time.Time       // time of the newest report; zero: now
}

// StageCount says how many tasks of a stage have a result.
type StageCount struct {
	Stage stages.Stage `json:"stage"`
	Done  int          `json:"done"`
	Tasks int          `json:"tasks"`
}

// Rate is a speed.
type Rate struct {
	URLs  float64 `json:"urls_per_second"`
	Bytes float64 `json:"bytes_per_second"`
}

// Spent is what a round has cost so far, and what it was predicted to cost, in dollars.
type Spent struct {
	Used      float64 `json:"used_dollars"`
	Predicted float64 `json:"predicted_dollars"`
}

// Worker is a running fetch task.
type Worker struct {
	Partition int    `json:"partition"`
	Machine   string `json:"machine,omitempty"` // host or pod; empty: this process, or unknown
	Done      int64  `json:"done"`
	Of        int64  `json:"of"`
	LeftMS    int64  `json:"left_ms,omitempty"`

	activity stages.Activity
	asOf     time.Time
}

// Each of these constants is the lowest level of detail that shows its lines. A small terminal
// shows a lower level.
const (
	withRate     = 1
	withFailures = 2
	withStages   = 3
	withCost     = 4
	withWaits    = 4  // one more wait for each level above
	withWorkers  = 8  // two more workers for each level above
	mostDetail   = 20 // shows 16 waits and 24 workers
)

// lines returns the lines of the screen at a level of detail, for rows of the given width.
func (s *Screen) lines(level, width int, now time.Time) []string {
	out := []string{s.head(level, width)}
	add := func(from int, lines ...string) {
		for _, l := range lines {
			if level >= from && l != "" {
				out = append(out, "  "+l)
			}
		}
	}
	add(0, s.times(now))
	add(withRate, s.rates())
	add(withCost, s.costs())
	if level >= withStages && len(s.Stages) > 0 {
		add(withStages, s.stageCounts())
	}
	a := s.activity
	add(withFailures, states(a))
	add(0, closing(a, now))
	for _, l := range waitLines(shortHosts(a, width), min(1+max(0, level-withWaits), 8), now) {
		add(0, l)
	}
	add(withFailures, cutTo(Failures(a.Failures, now), 3*width))
	s.addWorkers(add, level, width, now)
	s.addFailed(add, level, width)
	if !s.asOf.IsZero() {
		add(withRate, "as of "+clockTime(s.asOf, now))
	}
	for i, n := range s.Notes {
		if i == 0 || level >= withCost {
			out = append(out, "  "+n)
		}
	}
	return out
}

// head names the stage and says how far it is.
func (s *Screen) head(level, width int) string {
	name := fmt.Sprintf("%s@%s.%d", s.Stage, s.Crawl, s.Round)
	if s.Stage == "" {
		return fmt.Sprintf("round %d of %s: %s", s.Round, s.Crawl, s.State)
	}
	percent := ""
	if s.Of > 0 && level >= withRate {
		percent = fmt.Sprintf(" (%d%%)", s.Done*100/s.Of)
	}
	return name + ": " + bar(s.Done, s.Of, width) + fmt.Sprintf("%s of %s", Thousands(s.Done), Count(s.Of, s.Unit)) + percent
}

// times says how long the stage has run, how long it will run, and what was predicted.
func (s *Screen) times(now time.Time) string {
	var out []string
	if s.ElapsedMS > 0 {
		out = append(out, span(milliseconds(s.ElapsedMS))+" so far")
	}
	left := milliseconds(s.LeftMS)
	switch l := remainingTime(left); {
	case s.MostLeftMS > 0:
		until, latest := now.Add(milliseconds(s.MostLeftMS)), s.activity.Latest
		out = append(out, fmt.Sprintf("ends between %s and %s, the later if the robots.txt of %s goes on failing (it %s)",
			clockTime(now.Add(left), now.Add(-time.Hour)), clockTime(until, now.Add(-time.Hour)), latest.Host, latest.Why))
	case s.LeastLeftMS > 0:
		until, latest := now.Add(milliseconds(s.LeastLeftMS)), s.activity.Latest
		out = append(out, fmt.Sprintf("ends between %s and %s, the earlier if the robots.txt of %s goes on failing (it %s)",
			clockTime(until, now.Add(-time.Hour)), clockTime(now.Add(left), now.Add(-time.Hour)), latest.Host, latest.Why))
	case l != "" && left >= time.Minute:
		out = append(out, l+", until "+clockTime(now.Add(left), now.Add(-time.Hour)))
	case l != "":
		out = append(out, l)
	}
	if s.PredictedMS > 0 {
		out = append(out, "predicted "+span(milliseconds(s.PredictedMS))+" in all")
	}
	return strings.Join(out, ", ")
}

// rates says how fast the stage goes. Its columns have fixed widths, so they stay in place.
func (s *Screen) rates() string {
	var out []string
	for _, r := range []struct {
		rate *Rate
		name string
	}{{s.Now, "now"}, {s.Average, "on average"}} {
		if r.rate == nil {
			continue
		}
		out = append(out, fmt.Sprintf("%5s URLs/s %7s/s %s", perSecond(r.rate.URLs), bytesPerSecond(r.rate.Bytes), r.name))
	}
	return strings.Join(out, ", ")
}

// perSecond writes a rate with three figures, such as 0.05, 4.5 or 1,230.
func perSecond(r float64) string {
	switch {
	case r < 0.005:
		return "0"
	case r < 1:
		return fmt.Sprintf("%.2f", r)
	case r < 100:
		return fmt.Sprintf("%.1f", r)
	}
	return Thousands(int64(r + 0.5))
}

func bytesPerSecond(b float64) string {
	if b < 1000 {
		return fmt.Sprintf("%d B", int64(b))
	}
	return shortNumber(int64(b), 1000, " kB", " MB", " GB", " TB")
}

func (s *Screen) costs() string {
	if s.Cost == nil {
		return ""
	}
	if s.Cost.Used == 0 && s.State != "sealed" {
		return fmt.Sprintf("cost: not known before the first attempt ends, %s predicted for the round", dollars(s.Cost.Predicted))
	}
	return fmt.Sprintf("cost: %s so far, %s predicted for the round", dollars(s.Cost.Used), dollars(s.Cost.Predicted))
}

func (s *Screen) stageCounts() string {
	out := make([]string, len(s.Stages))
	for i, st := range s.Stages {
		out[i] = fmt.Sprintf("%s %s/%s", st.Stage, Thousands(int64(st.Done)), Thousands(int64(st.Tasks)))
	}
	return "tasks: " + strings.Join(out, ", ")
}

// addWorkers adds the running partitions, if there are several or if they run elsewhere.
func (s *Screen) addWorkers(add func(int, ...string), level, width int, now time.Time) {
	if n := len(s.Workers); n == 0 || n == 1 && s.Workers[0].Machine == "" {
		return
	}
	shown := s.Workers[:min(len(s.Workers), max(0, 2*(level-withWorkers+1)))]
	for _, w := range shown {
		text := fmt.Sprintf("partition %d", w.Partition)
		if w.Machine != "" {
			text += " on " + w.Machine
		}
		if w.Of > 0 {
			text += fmt.Sprintf(": %s of %s", Thousands(w.Done), Count(w.Of, "URL"))
		}
		does := states(w.activity)
		if does == "" && len(w.activity.Waits) > 0 && w.activity.Waits[0].Host != "" {
			does = "waits for " + w.activity.Waits[0].Host
		}
		for _, t := range []string{remainingTime(milliseconds(w.LeftMS)), does} {
			if t != "" {
				text += ", " + t
			}
		}
		if !w.asOf.IsZero() {
			text += ", as of " + clockTime(w.asOf, now)
		}
		add(withWorkers, cutTo(visible.Text(text), width-2))
	}
	if n := len(s.Workers) - len(shown); n > 0 && len(shown) > 0 {
		add(withWorkers, fmt.Sprintf("%s more", Count(int64(n), "partition")))
	} else if n > 0 {
		add(withStages, Count(int64(n), "partition")+" run")
	}
}

// shownFailed is how many failed tasks the screen names.
const shownFailed = 3

func (s *Screen) addFailed(add func(int, ...string), level, width int) {
	for i, f := range s.Failed {
		if i == shownFailed || i == 1 && level < withCost {
			add(0, fmt.Sprintf("%s more failed: `status` lists them", Count(int64(len(s.Failed)-i), "task")))
			return
		}
		add(0, cutTo(visible.Text(fmt.Sprintf("%s failed %s (%s): %s", f.Task, Count(int64(f.Attempts), "time"), f.Class, f.Error)), 2*width), "  rerun: `"+f.Rerun+"`")
	}
}

// shortHosts cuts the names of hosts that would take more than half of a row.
func shortHosts(a stages.Activity, width int) stages.Activity {
	waits := make([]stages.Wait, len(a.Waits))
	for i, w := range a.Waits {
		w.Host = cutTo(w.Host, max(width/2, 16))
		waits[i] = w
	}
	a.Waits = waits
	return a
}

// cutTo cuts a text to at most width cells.
func cutTo(text string, width int) string { return runewidth.Truncate(text, max(width, 1), "…") }

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// bar returns a progress bar, or "" if the terminal is too narrow for one.
func bar(done, of int64, width int) string {
	const size = 20
	if width < 72 || of == 0 {
		return ""
	}
	full := int(min(done*size/of, size))
	return "[" + strings.Repeat("=", full) + strings.Repeat("-", size-full) + "] "
}

// fitted returns the lines of the screen with as much detail as the terminal has rows for.
func (s *Screen) fitted(b *Block, now time.Time) []string {
	width, _ := b.Size()
	for level := mostDetail; ; level-- {
		lines := s.lines(level, min(width-1, maxBlock), now)
		if rows, most := b.rows(lines); level == 0 || len(rows) <= most {
			return lines
		}
	}
}
