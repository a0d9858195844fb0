package show

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/longest"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
)

// shownTasks is how many unfinished fetch tasks are shown.
const shownTasks = 20

// Status writes a crawl's status in lines of at most width cells. Only lines with commands to copy
// may be longer.
func Status(w io.Writer, s *jobs.Status, now time.Time, width int) error {
	p := &printer{width: width}
	p.line("crawl %s in %s", s.Crawl, s.Store)
	if s.Paused != nil {
		p.line("%s", s.Paused)
	}
	if s.Takedown != "" {
		p.line("%s", s.Takedown)
	}
	if s.Held != "" {
		p.line("%s", s.Held)
	}
	if s.Pruned != "" {
		p.line("%s", s.Pruned)
	}
	for i := range s.Stops {
		p.line("stopped: %s", &s.Stops[i])
	}
	var failed []jobs.TaskStatus
	var meter Meter
	screen := meter.Screen(s, now)
	if s.Paused != nil { // the second line of the output already says so
		screen.Notes = slices.DeleteFunc(screen.Notes, func(n string) bool { return n == s.Paused.String() })
	}
	for _, r := range s.Rounds {
		p.line("")
		p.line("round %d: %s, %s in %s, plan %s", r.Round, r.State, Count(r.URLs, "URL"), Count(int64(r.Partitions), "partition"), r.Plan)
		if r.Advice != "" {
			p.line("  %s", r.Advice)
		}
		p.table(r.Stages)
		p.predicted(r)
		p.longest(r.Longest, now)
		if r.Round == screen.Round {
			p.now(screen, now)
			for _, st := range r.Stages {
				if s.Paused == nil {
					p.advise(st.Fetching, now)
				}
			}
		}
		for _, st := range r.Stages {
			p.printFetching(st, r.URLs, s.Paused != nil, now)
			failed = append(failed, st.Failed...)
		}
	}
	for _, lost := range s.Lost {
		p.line("")
		p.line("%v", lost)
	}
	for _, f := range failed {
		p.line("")
		p.line("%s failed %s, last (%s): %s", f.Task, Count(int64(f.Attempts), "time"), f.Class, f.Error)
		fmt.Fprintf(&p.out, "  rerun: %s\n", f.Rerun)
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

// shownReasons is how many reasons to wait are shown above the list of the partitions.
const shownReasons = 2

// now writes how far the running stage is, how long it takes, and what it waits for.
func (p *printer) now(s *Screen, now time.Time) {
	if s.Stage == "" {
		return
	}
	facts := []string{s.times(now), s.rates()}
	if len(s.Workers) > 1 { // the only partition shows its own waits
		facts = append(facts, waitLines(s.activity, shownReasons, now)...)
	}
	head := s.head(withRate, 0)
	if age := now.Sub(s.asOf); !s.asOf.IsZero() && age > time.Minute {
		head += ", as of " + clockTime(s.asOf, now) + ", " + span(age) + " ago"
	}
	p.line("%s", head)
	for _, fact := range append(facts, s.Notes...) {
		if fact != "" {
			p.line("  %s", strings.TrimSpace(fact))
		}
	}
}

type printer struct {
	out   strings.Builder
	width int
}

func (p *printer) line(format string, args ...any) {
	for _, row := range Fold(visible.Text(fmt.Sprintf(format, args...)), p.width) {
		p.out.WriteString(row + "\n")
	}
}

// fullTable is the smallest width at which the table also shows the cost of each stage.
const fullTable = 78

// table writes one row for each stage.
func (p *printer) table(all []jobs.StageStatus) {
	head := []string{"stage", "tasks", "done", "running", "failed"}
	full := p.width >= fullTable
	if full {
		head = append(head, "PUT", "GET", "LIST", "written", "read", "time")
	}
	rows := [][]string{head}
	for _, st := range all {
		running := ""
		if st.Stage == stages.Fetch {
			running = fmt.Sprint(st.Running)
		}
		row := []string{string(st.Stage), fmt.Sprint(st.Tasks), fmt.Sprint(st.Done), running, fmt.Sprint(len(st.Failed))}
		if u := st.Usage; full {
			row = append(row, shortCount(u.Puts), shortCount(u.Gets), shortCount(u.Lists), shortBytes(u.BytesWritten), shortBytes(u.BytesRead), taskTime(u.Wall()))
		}
		rows = append(rows, row)
	}
	p.align(rows)
}

// align writes rows with aligned columns.
func (p *printer) align(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], len(c))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("  %-*s", widths[0], row[0])
		for i, c := range row[1:] {
			line += fmt.Sprintf(" %*s", widths[i+1], c)
		}
		p.out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// predicted compares what the stages of a round were predicted to use with what they used.
func (p *printer) predicted(r jobs.RoundStatus) {
	if r.Prices == "" || p.width < fullTable {
		return
	}
	var will, used manifest.Usage
	var willCost, usedCost cost.Dollars
	for _, st := range r.Stages {
		will, willCost = will.Add(st.Predicted.Usage), willCost.Add(st.Predicted.Dollars)
		used, usedCost = used.Add(st.Usage), usedCost.Add(st.Dollars)
	}
	row := func(name string, u manifest.Usage, d cost.Dollars) []string {
		return []string{name, shortCount(u.Puts), shortCount(u.Gets), shortCount(u.Lists), shortBytes(u.BytesWritten), taskTime(u.Wall()), dollars(d.Once()), dollars(d.Monthly)}
	}
	rows, unknown := [][]string{{"whole round", "PUT", "GET", "LIST", "written", "time", "dollars", "a month"}, row("predicted", will, willCost)}, false
	switch {
	case r.State == "sealed":
		rows = append(rows, row("used", used, usedCost))
	case used == manifest.Usage{}:
		unknown = r.State == "running"
	default:
		rows = append(rows, row("ended attempts", used, usedCost))
	}
	p.align(rows)
	if unknown {
		p.line("  what it used is not known before the first attempt ends")
	}
}

// longest says what decided the length of a finished round.
func (p *printer) longest(r *longest.Round, now time.Time) {
	if r == nil {
		return
	}
	if fetch := hours(r.FetchHours); fetch > 0 {
		text := "fetched for " + span(fetch)
		if predicted := hours(r.PredictedHours); predicted > 0 {
			text += fmt.Sprintf(", predicted %s (%.1f times as long)", span(predicted), float64(fetch)/float64(predicted))
		}
		if r.PausedMS > 0 {
			text += ", paused by people for " + span(milliseconds(r.PausedMS))
		}
		p.line("  %s", text)
	}
	if r.Killed > 0 {
		p.line("  killed while they fetched: %s, whose requests after the last checkpoint are in no table", Count(r.Killed, "attempt"))
	}
	h := r.Host
	if h == nil {
		return
	}
	took := max(milliseconds(h.Last-h.First), 0)
	p.line("  the last host to end was %s in partition %d: %s and %s in %s, from %s to %s", h.Host, r.Partition,
		Count(h.URLs, "URL"), Count(h.Requests, "request"), span(took), clockTime(moment(h.First), now), clockTime(moment(h.Last), now))
	for _, t := range h.Before {
		if milliseconds(t.MS) >= took/shownPart {
			p.line("    before, %s %s", span(milliseconds(t.MS)), t.On)
		}
	}
	for _, t := range h.Spent {
		if milliseconds(t.MS) < took/shownPart {
			break // the parts are sorted
		}
		text := span(milliseconds(t.MS)) + " " + t.On
		if t.On == longest.OnDelay {
			text += ", up to " + span(milliseconds(h.DelayMS))
			if h.Cause != "" {
				text += " (" + h.Cause + ")"
			}
		}
		p.line("    %s", text)
	}
	if h.Unreachable {
		p.line("    its robots.txt could not be fetched, so its URLs ended without a request")
	}
}

// Parts of a host's time that are shorter than 1/shownPart of it are not shown.
const shownPart = 20

func hours(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

func shortCount(n int64) string { return shortNumber(n, 1000, "k", "M") }

func shortBytes(n int64) string { return shortNumber(n, 1000, "kB", "MB", "GB", "TB") }

// Bytes writes a number of bytes with its unit, such as 999 bytes or 1.5 MB.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n) + " bytes"
	}
	return shortNumber(n, 1000, " kB", " MB", " GB", " TB")
}

// shortNumber writes a number in at most six cells, such as 999, 12.3k or 1.5 MB.
func shortNumber(n, unit int64, names ...string) string {
	if n < 10*unit && len(names[0]) == 1 || n < unit {
		return fmt.Sprint(n)
	}
	f, i := float64(n)/float64(unit), 0
	for f >= 999.5 && i < len(names)-1 {
		f, i = f/float64(unit), i+1
	}
	return fmt.Sprintf("%.3g%s", f, names[i])
}

// taskTime writes a sum of times, such as 0s, 1.2s, 1m1s or 3h20m.
func taskTime(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// printFetching writes the state of unfinished fetch tasks from their checkpoints.
func (p *printer) printFetching(st jobs.StageStatus, urls int64, paused bool, now time.Time) {
	if len(st.Fetching) == 0 {
		return
	}
	done := st.Recorded
	for _, f := range st.Fetching {
		done += f.Done - f.Recorded
	}
	p.line("%s: %s planned = %s done + %s left, by the last reports", st.Stage, Count(urls, "URL"), Thousands(done), Thousands(urls-done))
	if done > 0 {
		p.line("  of the %s done, a crash keeps the %s in checkpoints%s", Thousands(done), Thousands(st.Recorded), outcomes(st))
	}
	for i, f := range st.Fetching {
		if i == shownTasks {
			p.line("  and %d more: -o json lists all", len(st.Fetching)-i)
			return
		}
		state := "held"
		switch {
		case f.Complete:
			state = "complete, result missing"
		case f.Released && paused:
			state = "released during the pause"
		case f.Released:
			state = "released, `run` continues it"
		}
		elapsed := milliseconds(f.ElapsedMS)
		if f.Activity != nil {
			elapsed = max(elapsed, milliseconds(f.Activity.ElapsedMS))
		}
		p.line("  partition %d: %s = %s done + %s left, epoch %d, %s, %s of its window",
			f.Partition, Count(f.Planned, "URL"), Thousands(f.Done), Thousands(f.Planned-f.Done), f.Epoch, state, elapsed.Round(time.Second))
		p.activity(f, paused, now)
	}
}

// outcomes writes the recorded outcomes of a stage's tasks.
func outcomes(st jobs.StageStatus) string {
	sums := map[string]int64{}
	var order []string
	add := func(name string, n int64) {
		if _, ok := sums[name]; !ok {
			order = append(order, name)
		}
		sums[name] += n
	}
	for _, c := range st.Counts {
		if name, ok := strings.CutPrefix(c.Name, stages.CountOutcomes); ok {
			add(name, c.N)
		}
	}
	for _, f := range st.Fetching {
		for _, c := range f.Outcomes {
			add(c.Name, c.N)
		}
	}
	if len(order) == 0 {
		return ""
	}
	for i, name := range order {
		order[i] = name + " " + Thousands(sums[name])
	}
	return ": " + strings.Join(order, ", ")
}

// activity writes the activity of an attempt at its last checkpoint.
func (p *printer) activity(f jobs.FetchStatus, paused bool, now time.Time) {
	a, at, ok := activityOf(f)
	if !ok || f.Complete {
		if f.Activity != nil && !f.Released && !f.Complete {
			p.line("    %s", unreported(f.Activity, now))
		}
		return
	}
	if age := now.Sub(at); age > silence && !f.Released {
		p.line("    no report for %s, though one is due every minute: the process may have died; then `run` continues", span(age))
		return
	}
	head := []string{"as of " + clockTime(at, now)}
	if f.Released {
		head = append(head, "nothing since")
	} else if s := states(a); s != "" {
		head = append(head, s)
	}
	if l := leftOf(aged(a, now.Sub(at), at.UnixMilli(), f.Activity.Began), now); l != "" && !f.Released {
		head = append(head, l)
	}
	p.line("    %s", strings.Join(head, ", "))
	if c := closing(a, at); c != "" && !f.Released {
		p.line("      %s", c)
	}
	waits := waitLines(a, len(a.Waits), now)
	if paused {
		waits = pausedLines(a)
	}
	for _, w := range waits {
		p.line("      %s", w)
	}
	if t := Failures(a.Failures, now); t != "" {
		p.line("      %s", t)
	}
}

// advise says how to end the waits of the task that ends last, because it decides when the stage ends.
func (p *printer) advise(all []jobs.FetchStatus, now time.Time) {
	var last jobs.FetchStatus
	var end time.Time
	for _, f := range all {
		a, at, ok := activityOf(f)
		if !ok || f.Complete || f.GiveUp == "" || now.Sub(at) > silence && !f.Released {
			continue
		}
		ends := at.Add(a.Remaining)
		if a.Latest != nil && a.Latest.Until.After(ends) {
			ends = a.Latest.Until
		}
		if ends.After(now) && ends.Sub(at) >= adviseFrom && ends.After(end) {
			last, end = f, ends
		}
	}
	if end.IsZero() {
		return
	}
	if hosts := last.Activity.Slowest; len(hosts) > 1 {
		p.line("  %s; to stop only one of them gains little", Together(hosts))
	}
	for _, s := range last.Stops {
		urls := "its URLs without an outcome end"
		if s.URLs > 0 {
			urls = "its " + Count(s.URLs, "URL") + " left end"
		}
		p.line("  not to wait for %s: `%s`; %s as stopped, other hosts go on", s.Host, s.Command, urls)
	}
	first := "stop `run`, then "
	if last.Released {
		first = ""
	}
	p.line("  to end all of partition %d: %s`%s`, which defers its %s left", last.Partition, first, last.GiveUp, Count(last.Planned-last.Done, "URL"))
}

// unreported says when an attempt that has not reported yet took its partition.
func unreported(a *manifest.Activity, now time.Time) string {
	began := moment(a.Began)
	text := "taken " + span(now.Sub(began)) + " ago"
	if a.Machine != "" {
		text += " on " + a.Machine
	}
	switch due := status.FirstReport - now.Sub(began); {
	case due > 0:
		text += "; its first report is due in " + span(due)
	case due > -time.Minute:
		text += "; its first report is due now: first it loads its URLs"
	default:
		text += "; its first report is " + span(-due) + " late: it loads many URLs, or it died; then `run` continues"
	}
	return text
}

// activityOf returns the last report of a task's attempt and the time of the report. If there is none,
// activityOf returns false.
func activityOf(f jobs.FetchStatus) (stages.Activity, time.Time, bool) {
	c := f.Activity
	if c == nil || !c.Reported() {
		return stages.Activity{}, time.Time{}, false
	}
	a := stages.Activity{
		Left: f.Planned - f.Done, Bytes: c.Bytes, Elapsed: milliseconds(c.ElapsedMS), InFlight: c.InFlight, Ready: c.Ready, Delayed: c.Delayed, Sitemaps: c.Sitemaps, More: c.More,
		Remaining: milliseconds(c.RemainingMS), Least: milliseconds(c.LeastMS), Closes: moment(c.Closes),
	}
	for _, w := range c.Waits {
		a.Waits = append(a.Waits, waitOf(w))
	}
	if c.Latest != nil {
		w := waitOf(*c.Latest)
		a.Latest = &w
	}
	for _, host := range c.Slowest {
		a.Slowest = append(a.Slowest, stages.SlowHost{Host: host, Rest: a.Remaining})
	}
	for _, n := range c.Failures {
		a.Failures = append(a.Failures, stages.Failure{Class: n.Class, N: n.N, Host: n.Host, Text: n.Text, At: moment(n.At)})
	}
	return a, moment(c.At), true
}

func waitOf(w manifest.Wait) stages.Wait {
	return stages.Wait{Host: w.Host, Why: w.Why, Until: moment(w.Until), URLs: w.URLs}
}

// moment converts a time in a manifest to a time.Time.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// StatusWidth is the width of a status that is not shown on a terminal, in cells.
const StatusWidth = 80

// WatchStatus reads a status at each interval, and redraws its screen in place on a terminal. It returns
// when ctx ends or the status cannot be read.
func WatchStatus(ctx context.Context, w io.Writer, clock stages.Clock, every time.Duration, read func(context.Context) (*jobs.Status, error)) error {
	block := newBlock(w)
	var meter Meter
	for {
		s, err := read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// Draw once a second, because the size of the terminal may change.
		for until := clock.Now().Add(every); clock.Now().Before(until); {
			screen := meter.Screen(s, clock.Now())
			if err := block.Draw(nil, append(screen.fitted(block, clock.Now()), lossLines(s)...)); err != nil {
				return err
			}
			if clock.Sleep(ctx, min(every, time.Second)) != nil {
				return nil
			}
		}
	}
}

// lossLines names the lost objects.
func lossLines(s *jobs.Status) (out []string) {
	for _, lost := range s.Lost {
		out = append(out, "  "+lost.Error())
	}
	return out
}
