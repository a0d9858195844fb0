package show

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
)

// Meter makes screens from the statuses of a crawl. Between two statuses it measures how fast the
// running tasks go. The zero value is ready for use.
type Meter struct {
	last map[int]report
	now  map[int]Rate
	ends forecast
}

// report is what a fetch task reported about itself.
type report struct {
	at          int64 // milliseconds since 1970
	epoch       int
	urls, bytes int64
}

// silence is the age of a task's newest report after which the task may have died: tasks report every
// minute. Nothing that such a task reported is taken for the present.
const silence = 2*time.Minute + 10*time.Second

// Screen returns the screen of a status: of its first round that is not sealed, or of its last round.
func (m *Meter) Screen(s *jobs.Status, now time.Time) *Screen {
	if len(s.Rounds) == 0 {
		return &Screen{Crawl: s.Crawl, State: "planned"}
	}
	r := &s.Rounds[len(s.Rounds)-1]
	for i := range s.Rounds {
		if s.Rounds[i].State != "sealed" {
			r = &s.Rounds[i]
			break
		}
	}
	out := &Screen{Crawl: s.Crawl, Round: r.Round, State: r.State}
	var will, used cost.Dollars
	for _, st := range r.Stages {
		out.Stages = append(out.Stages, StageCount{st.Stage, st.Done, st.Tasks})
		out.Failed = append(out.Failed, st.Failed...)
		if st.Predicted != nil {
			will, used = will.Add(st.Predicted.Dollars), used.Add(st.Dollars)
		}
	}
	if r.Prices != "" {
		out.Cost = &Spent{used.Once(), will.Once()}
	}
	if began, err := time.Parse(time.RFC3339, r.StartedAt); err == nil && r.State == "running" {
		out.ElapsedMS = max(now.Sub(began), 0).Milliseconds()
	}
	if s.Paused != nil && r.State != "sealed" {
		out.Notes = append(out.Notes, s.Paused.String())
	}
	switch r.State {
	case "running":
		m.stage(out, r, now)
		if s.Paused != nil { // nothing is requested, and nobody knows when the crawl continues
			out.activity.Waits, out.activity.More, out.LeftMS, out.MostLeftMS, out.LeastLeftMS, out.Now = nil, 0, 0, 0, 0, nil
		}
	case "planned":
		if s.Paused == nil {
			out.Notes = append(out.Notes, "nothing of it is fetched yet: `run` begins it")
		}
	}
	return out
}

// stage fills in the first stage that is not done.
func (m *Meter) stage(out *Screen, r *jobs.RoundStatus, now time.Time) {
	for i := range r.Stages {
		st := &r.Stages[i]
		if st.Done == st.Tasks {
			continue
		}
		out.Stage, out.Unit, out.Done, out.Of = st.Stage, "task", int64(st.Done), int64(st.Tasks)
		if st.Stage == stages.Fetch {
			m.fetch(out, r, st, now)
		}
		return
	}
}

// fetch fills in the fetch stage.
func (m *Meter) fetch(out *Screen, r *jobs.RoundStatus, st *jobs.StageStatus, now time.Time) {
	out.Unit, out.Done, out.Of = "URL", st.Recorded, r.URLs
	rates := m.take(st.Fetching)
	var all []stages.Activity
	var average, fast Rate
	var silent []jobs.FetchStatus
	begun := int64(0)
	for _, f := range st.Fetching {
		begun += f.Planned
		out.Done += f.Done - f.Recorded
		a, at, ok := activityOf(f)
		if f.Released || f.Complete {
			continue
		}
		if !ok {
			silent = append(silent, f)
			continue
		}
		a = aged(a, now.Sub(at), at.UnixMilli(), f.Activity.Began)
		all = append(all, a)
		out.Workers = append(out.Workers, Worker{Partition: f.Partition, Machine: f.Activity.Machine, Done: f.Done, Of: f.Planned, LeftMS: a.Remaining.Milliseconds(), activity: a, asOf: at})
		if at.After(out.asOf) {
			out.asOf = at
		}
		if n, ok := rates[f.Partition]; ok && now.Sub(at) < silence {
			out.Now = &fast
			fast.URLs, fast.Bytes = fast.URLs+n.URLs, fast.Bytes+n.Bytes
		}
		if n, ok := averageOf(f); ok && now.Sub(at) < silence {
			out.Average = &average
			average.URLs, average.Bytes = average.URLs+n.URLs, average.Bytes+n.Bytes
		}
	}
	out.activity = merge(all)
	if len(all)+len(silent) > 0 || len(out.Notes) == 0 { // the processes of a paused crawl hold no partitions
		out.Notes = append(out.Notes, newsOf(len(all), silent, out.asOf, now)...)
	}
	if len(all) > 0 && now.Sub(out.asOf) <= silence {
		out.Activity = stored(out.activity, out.asOf)
		finished := st.Recorded - recordedOf(st.Fetching) // URLs of the finished tasks
		out.predict(r, max(r.URLs-finished-begun, 0))
		out.MostLeftMS = mostLeft(milliseconds(out.LeftMS), out.activity.Latest, now)
		if out.MostLeftMS == 0 && milliseconds(out.LeftMS) == out.activity.Remaining {
			out.LeastLeftMS = leastLeft(out.activity)
		}
		if note := m.ends.take(now, milliseconds(out.LeftMS), out.activity); note != "" && out.ElapsedMS >= settles.Milliseconds() {
			out.Notes = append(out.Notes, note)
		}
	}
}

// newsOf says what the absence of reports means. reporting is the number of held partitions with a
// report, silent are those without, and newest is the time of the newest report.
func newsOf(reporting int, silent []jobs.FetchStatus, newest, now time.Time) []string {
	switch {
	case reporting+len(silent) == 0:
		return []string{"no process fetches now: `run` continues the crawl"}
	case len(silent) > 0:
		text := Count(int64(len(silent)), "partition") + " without news: "
		if a := silent[0].Activity; a != nil {
			return []string{text + fmt.Sprintf("partition %d was %s", silent[0].Partition, unreported(a, now))}
		}
		return []string{text + "a process reports within a minute after it takes a partition; if it died, `run` continues"}
	case now.Sub(newest) > silence:
		return []string{"no news for " + span(now.Sub(newest)) + ", though a report is due every minute: the processes may have died or been stopped; `run` continues the crawl"}
	}
	return nil
}

// predict fills in the remaining time, and the plan's prediction for as many tasks at a time as run
// now. unbegun is the number of URLs in partitions that nobody has taken; these run after the
// running ones.
func (s *Screen) predict(r *jobs.RoundStatus, unbegun int64) {
	lanes := float64(len(s.Workers))
	var longest, sum int64
	for _, w := range s.Workers {
		longest, sum = max(longest, w.LeftMS), sum+w.LeftMS
	}
	const hour = 3_600_000 // milliseconds
	rest := r.PodHours * hour * float64(unbegun) / float64(max(r.URLs, 1))
	s.LeftMS = max(longest, int64((float64(sum)+rest)/lanes))
	s.PredictedMS = int64(max(r.Hours, r.PodHours/lanes) * hour)
}

func recordedOf(all []jobs.FetchStatus) (n int64) {
	for _, f := range all {
		n += f.Recorded
	}
	return n
}

// averageOf returns how fast the running attempt at a task has been since it began. It returns false if this
// is unknown.
func averageOf(f jobs.FetchStatus) (Rate, bool) {
	a := f.Activity
	switch {
	case a.BeganLeft > 0 && a.At > a.Began && a.Began > 0:
		return Rate{perMS(max(a.BeganLeft-a.Left, 0), a.At-a.Began), perMS(a.Bytes, a.At-a.Began)}, true
	case f.Epoch == 1 && a.ElapsedMS > 0:
		return Rate{perMS(f.Done, a.ElapsedMS), perMS(a.Bytes, a.ElapsedMS)}, true
	}
	return Rate{}, false // what earlier attempts did says nothing about this one
}

func perMS(n, ms int64) float64 { return float64(n) * 1000 / float64(ms) }

// take compares the newest reports of tasks with those before. It returns the rates of the tasks that
// have made two reports.
func (m *Meter) take(all []jobs.FetchStatus) map[int]Rate {
	if m.last == nil {
		m.last, m.now = map[int]report{}, map[int]Rate{}
	}
	for _, f := range all {
		if f.Activity == nil {
			continue
		}
		n, before := report{f.Activity.At, f.Epoch, f.Done, f.Activity.Bytes}, m.last[f.Partition]
		if n.at == before.at {
			continue
		}
		m.last[f.Partition] = n
		delete(m.now, f.Partition)
		if ms := n.at - before.at; before.at > 0 && ms > 0 && n.epoch == before.epoch {
			m.now[f.Partition] = Rate{max(perMS(n.urls-before.urls, ms), 0), max(perMS(n.bytes-before.bytes, ms), 0)}
		}
	}
	return m.now
}

// StatusJSON writes a status and its screen as one JSON document. If compact is true, the document is one
// line.
func StatusJSON(w io.Writer, s *jobs.Status, m *Meter, now time.Time, compact bool) error {
	enc := json.NewEncoder(w)
	if !compact {
		enc.SetIndent("", " ")
	}
	return enc.Encode(struct {
		*jobs.Status
		Live *Screen `json:"live"`
	}{s, m.Screen(s, now)})
}

// stored converts an activity to its JSON form.
func stored(a stages.Activity, at time.Time) *manifest.Activity {
	out := status.Stored(a, at)
	out.Machine = "" // the tasks may run on several machines
	return out
}
