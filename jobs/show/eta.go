package show

import (
	"fmt"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/stages"
)

// rate measures the number of URLs per second that got an outcome in the last minute.
type rate struct {
	samples []sample
}

type sample struct {
	at time.Time
	n  int64
}

const rateSpan = time.Minute

// take adds a sample and returns the rate over the last minute.
func (r *rate) take(now time.Time, n int64) float64 {
	r.samples = append(r.samples, sample{now, n})
	for len(r.samples) > 2 && now.Sub(r.samples[1].at) >= rateSpan {
		r.samples = r.samples[1:]
	}
	first := r.samples[0]
	if d := now.Sub(first.at); d >= time.Second && n > first.n {
		return float64(n-first.n) / d.Seconds()
	}
	return 0
}

// scale compares the real duration of tasks with the plan's prediction.
type scale struct {
	began          map[int]time.Time
	planned, taken float64 // predicted and real seconds of the tasks that this process has run from start to end
}

func (s *scale) begin(partition int, now time.Time) {
	if s.began == nil {
		s.began = map[int]time.Time{}
	}
	if _, ok := s.began[partition]; !ok {
		s.began[partition] = now
	}
}

func (s *scale) learn(partition int, planned float64, now time.Time) {
	if began, ok := s.began[partition]; ok && planned > 0 {
		s.planned += planned
		s.taken += now.Sub(began).Seconds()
	}
}

func (s *scale) of(planned float64) float64 {
	if s.planned == 0 {
		return planned
	}
	return planned * s.taken / s.planned
}

// remaining predicts the remaining time of the fetch stage. It assigns the tasks to lanes: there is
// one lane for each task that may run at the same time, and a lane runs one task after another. At
// least one task must be running, and each running task predicts its own end. The caller holds
// p.mu.
func (p *Progress) remaining(running map[int]stages.Activity) time.Duration {
	var lanes []float64
	for _, a := range running {
		lanes = append(lanes, a.Remaining.Seconds())
	}
	at := p.FetchTasks
	if at == 0 {
		at = len(p.start.Missing)
	}
	for len(lanes) < min(at, len(p.start.Missing)) {
		lanes = append(lanes, 0)
	}
	for _, t := range p.start.Missing {
		if _, ok := running[t.Partition]; ok || p.finished[t.Partition] {
			continue
		}
		first := slices.Index(lanes, slices.Min(lanes))
		lanes[first] += p.scale.of(p.start.Plan.Partitions[t.Partition].EstimatedSeconds)
	}
	return time.Duration(slices.Max(lanes) * float64(time.Second))
}

// forecast notices when the predicted end of a stage moves by much. The zero value is ready for use.
type forecast struct {
	end   time.Time // predicted end when it was first known, or when it last moved by much
	note  string
	until time.Time // when the note is old
}

const (
	settles  = time.Minute     // age of a stage from which its prediction is compared
	muchTime = 5 * time.Minute // least change of the predicted end that is told; it must also be a quarter of the time left
	noteFor  = 5 * time.Minute // how long the change is shown
)

// take compares the predicted end with the one before. It returns a sentence about the last change that is
// not old, or "". late is the activity of the task that ends last: a later end is its fault.
func (f *forecast) take(now time.Time, left time.Duration, late stages.Activity) string {
	end := now.Add(left)
	switch moved := end.Sub(f.end); {
	case left <= 0:
	case f.end.IsZero():
		f.end = end
	case moved.Abs() >= max(muchTime, f.end.Sub(now)/4):
		f.note = fmt.Sprintf("the predicted end moved from %s to %s", clockTime(f.end, now), clockTime(end, now))
		if len(late.Waits) > 0 && moved > 0 {
			f.note += ", because of " + visible.Text(wait(late.Waits[0], now))
		}
		f.end, f.until = end, now.Add(noteFor)
	}
	if now.Before(f.until) {
		return f.note
	}
	return ""
}
